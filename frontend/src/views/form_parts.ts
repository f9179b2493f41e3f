/** Building blocks of forms in dialogs. */

import { ApiError } from "../lib/api";
import { h, type Child } from "../lib/dom";
import type { Dialog } from "./dialog_view";
import { showFaults } from "./faults_view";
import { fail } from "./shell_view";

/** Only the changed values: changes of other users to the other fields stay. */
export function changesIn(values: Readonly<Record<string, unknown>>, before: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])));
}

export function choice(elementId: string, options: readonly (readonly [string, string])[], value = ""): HTMLSelectElement {
  const element = h("select", { class: "select", id: elementId }, ...options.map(([one, text]) => h("option", { value: one }, text)));
  element.value = value;
  if (element.selectedIndex < 0) element.selectedIndex = 0;
  return element;
}

export function field(pointer: string, text: string, control: HTMLElement, hint: Child = null): HTMLElement {
  if (hint !== null) control.setAttribute("aria-describedby", `${control.id}-hint`);
  return h(
    "div",
    { class: "field", "data-pointer": `/${pointer}` },
    h("label", { for: control.id }, text),
    control,
    hint === null ? null : h("span", { class: "hint", id: `${control.id}-hint` }, hint),
  );
}

/** Shows faults next to their fields, the first one in view; all others as a message. */
export function refusedIn(dialog: Dialog): (error: unknown) => void {
  return (error) => {
    const isRefused = error instanceof ApiError && error.status === 400;
    if (!isRefused || showFaults(dialog.body, error.faults).length > 0) fail(error);
    if (isRefused) goToFault(dialog.body);
  };
}

/** Brings the first field with a fault into view, for a form that may be longer than its window. */
export function goToFault(root: HTMLElement): void {
  const first = root.querySelector<HTMLElement>(".field-error");
  first?.querySelector<HTMLElement>("input, select, textarea")?.focus({ preventScroll: true });
  first?.scrollIntoView({ block: "center" });
}
