/** The frame of one part of the form. */

import { h, type Child } from "../../lib/dom";

export function section(title: string, ...children: Child[]): HTMLElement {
  return h("section", { class: "form-section" }, h("h2", {}, title), ...children);
}

/** Rarely needed parts, collapsed; open from the start when something in them is set. */
export function more(title: string, isOpen: boolean, ...children: Child[]): HTMLDetailsElement {
  return h("details", { class: "more", open: isOpen }, h("summary", {}, title), h("div", { class: "stack more-body" }, ...children));
}
