/** Modal dialogs with the browser's dialog element: focus stays inside, Escape closes. */

import { t } from "../lib/texts";
import { button, h, iconButton, twinOf, type Child } from "../lib/dom";

export interface Dialog {
  element: HTMLDialogElement;
  body: HTMLElement;
  foot: HTMLElement;
  close: () => void;
}

export function openDialog(title: string, ...content: Child[]): Dialog {
  const body = h("div", { class: "dialog-body" }, ...content);
  const foot = h("div", { class: "dialog-foot" });
  const close = (): void => {
    element.close();
    element.remove();
  };
  /** As the browser does on Escape. */
  const isLeft = (): boolean => element.dispatchEvent(new Event("cancel", { cancelable: true }));
  const element = h(
    "dialog",
    { class: "dialog", "aria-label": title },
    h(
      "div",
      { class: "dialog-head" },
      h("h2", {}, title),
      iconButton(t("Close"), "x", { kind: "button-quiet button-sm", onClick: () => isLeft() && close() }),
    ),
    body,
    foot,
  );
  // The element that opened it gets the focus back, unless it was redrawn meanwhile.
  const focused = document.activeElement;
  const opener = focused instanceof HTMLElement && focused !== document.body ? twinOf(document.body, focused) : null;
  element.addEventListener("close", () => {
    element.remove();
    if (document.activeElement === document.body) opener?.()?.focus();
  });
  element.addEventListener("keydown", (event) => {
    const isField = event.target instanceof HTMLInputElement && LINES.includes(event.target.type);
    if (event.key !== "Enter" || !isField || event.isComposing || event.defaultPrevented) return;
    event.preventDefault();
    foot.querySelector<HTMLElement>(".button-primary")?.click();
  });
  document.body.append(element);
  element.showModal();
  // The foot is filled after this, and some dialogs choose the focus themselves.
  const given = document.activeElement;
  queueMicrotask(() => {
    if (document.activeElement === given) firstPlace(body, foot)?.focus();
  });
  return { element, body, foot, close };
}

/** Fields of one line, in which Enter does what the dialog is for, as in any form. */
const LINES = ["text", "url", "email", "number", "password", "time", "date", "datetime-local"];
const FIELDS = ["input", "select", "textarea"].map((tag) => `${tag}:not(:disabled, [type=hidden])`).join();

/**
 * Where somebody begins in a dialog: its first field, else its main action if that does no harm,
 * else the first button, such as Cancel.
 */
function firstPlace(body: HTMLElement, foot: HTMLElement): HTMLElement | null {
  const field = [...body.querySelectorAll<HTMLElement>(FIELDS)].find((one) => one.checkVisibility());
  if (field !== undefined) return field;
  const isHarmful = foot.querySelector(".button-danger") !== null;
  const main = isHarmful ? null : foot.querySelector<HTMLElement>(".button-primary:not(:disabled)");
  return main ?? foot.querySelector<HTMLElement>(".button:not(.button-danger, :disabled)");
}

/** Escape, the cross and leaving the page ask before entries are lost. */
export function keepEntries(dialog: Dialog): void {
  let isChanged = false;
  dialog.body.addEventListener("input", () => (isChanged = true));
  const leaving = (event: Event): void => {
    if (isChanged) event.preventDefault();
  };
  window.addEventListener("beforeunload", leaving);
  dialog.element.addEventListener("close", () => window.removeEventListener("beforeunload", leaving));
  dialog.element.addEventListener("cancel", (event) => {
    // A field for files has an event of this name, too.
    if (!isChanged || event.target !== dialog.element) return;
    event.preventDefault();
    void confirmDanger(t("Close without saving?"), t("What you entered would be lost."), t("Close without saving")).then((isSure) => {
      if (isSure) dialog.close();
    });
  });
}

/** Asks before something that cannot be undone. */
export function confirmDanger(title: string, text: string, action: string): Promise<boolean> {
  return new Promise((resolve) => {
    const dialog = openDialog(title, h("p", { class: "muted" }, text));
    let isConfirmed = false;
    dialog.foot.append(
      button(t("Cancel"), { onClick: dialog.close }),
      button(action, {
        kind: "button-danger",
        onClick: () => {
          isConfirmed = true;
          dialog.close();
        },
      }),
    );
    dialog.element.addEventListener("close", () => resolve(isConfirmed));
  });
}
