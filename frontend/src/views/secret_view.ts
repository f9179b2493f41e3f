import { button, h, icon } from "../lib/dom";
import { openDialog } from "./dialog_view";
import { toast } from "./shell_view";

/** A secret is shown once: after this dialog only its hash is left. */
export function showSecret(title: string, text: string, secret: string): void {
  const field = h("input", { class: "input mono", readonly: true, value: secret, "aria-label": title, id: "secret" });
  const dialog = openDialog(
    title,
    h("p", { class: "notice notice-high" }, icon("triangle-alert"), h("span", {}, text)),
    h(
      "div",
      { class: "row" },
      h("div", { class: "grow" }, field),
      button("Copy", {
        icon: "copy",
        onClick: () =>
          void navigator.clipboard.writeText(secret).then(
            () => toast("Copied.", "good"),
            () => field.select(),
          ),
      }),
    ),
  );
  dialog.foot.append(button("Done", { kind: "button-primary", onClick: dialog.close }));
  field.select();
}
