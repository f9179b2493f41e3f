/** A control of a form under its label. Faults whose JSON pointer is `pointer` are shown at it. */

import { h } from "../lib/dom";

export function formField(label: string, pointer: string, control: HTMLElement, hint?: string): HTMLElement {
  return h(
    "div",
    { class: "field", "data-pointer": pointer },
    h("label", { for: control.id }, label),
    control,
    hint === undefined ? null : h("span", { class: "hint" }, hint),
  );
}
