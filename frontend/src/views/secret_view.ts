import { button, h, icon } from "../lib/dom";
import { openDialog } from "./dialog_view";
import { toast } from "./shell_view";

/** A field with a button that copies what stands in it; where the browser does not permit that, the text is marked instead. */
export function copyRow(field: HTMLInputElement): HTMLElement {
  const copy = (): void =>
    void navigator.clipboard.writeText(field.value).then(
      () => toast("Copied.", "good"),
      () => field.select(),
    );
  return h("div", { class: "row" }, h("div", { class: "grow" }, field), button("Copy", { icon: "copy", onClick: copy }));
}

/** A secret is shown once: after this dialog only its hash is left. */
export function showSecret(title: string, text: string, secret: string): void {
  const field = h("input", { class: "input mono", readonly: true, value: secret, "aria-label": title, id: "secret" });
  const notice = h("p", { class: "notice notice-high" }, icon("triangle-alert"), h("span", {}, text));
  const dialog = openDialog(title, notice, copyRow(field));
  dialog.foot.append(button("Done", { kind: "button-primary", onClick: dialog.close }));
  field.select();
}
