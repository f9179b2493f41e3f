import { t } from "../lib/texts";
import { button, h, icon } from "../lib/dom";
import { openDialog } from "./dialog_view";
import { toast } from "./shell_view";

/**
 * Copies the text to the clipboard; whether that succeeded. Browsers permit it only on
 * HTTPS and on this machine.
 */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * A field with a button that copies its text; if the browser does not permit that, the
 * text is selected instead.
 */
export function copyRow(field: HTMLInputElement): HTMLElement {
  const copy = async (): Promise<void> => {
    if (await copied(field.value)) toast(t("Copied."), "good");
    else field.select();
  };
  return h("div", { class: "row" }, h("div", { class: "grow" }, field), button(t("Copy"), { icon: "copy", onClick: () => copy() }));
}

/**
 * Copies the address of the current view to the clipboard, or shows it in a field to copy it from.
 */
export async function copyLink(address: string): Promise<void> {
  if (await copied(address)) {
    toast(t("The link to this view is copied."), "good");
    return;
  }
  const field = h("input", { class: "input mono", readonly: true, value: address, "aria-label": t("The link to this view") });
  openDialog(t("The link to this view"), copyRow(field));
  field.select();
}

/** A secret is shown once: after this dialog only its hash is stored. */
export function showSecret(title: string, text: string, secret: string): void {
  const field = h("input", { class: "input mono", readonly: true, value: secret, "aria-label": title, id: "secret" });
  const notice = h("p", { class: "notice notice-high" }, icon("triangle-alert"), h("span", {}, text));
  const dialog = openDialog(title, notice, copyRow(field));
  dialog.foot.append(button(t("Done"), { kind: "button-primary", onClick: dialog.close }));
  field.select();
}
