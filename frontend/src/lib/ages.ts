/** How long ago something was, kept true while it is shown. */

import { h } from "./dom";
import { formatAgo } from "./time";

/** "12 s ago"; `updateAges` of the page updates it each second, all at the same moment. */
export function age(at: number): HTMLElement {
  return h("span", { "data-age": at }, formatAgo(at, Date.now()));
}

/** Updates all ages in `root` to one moment, so that they agree with the order of the list. */
export function updateAges(root: ParentNode): void {
  const now = Date.now();
  for (const one of root.querySelectorAll<HTMLElement>("[data-age]")) {
    const text = formatAgo(Number(one.dataset["age"]), now);
    if (one.textContent !== text) one.textContent = text;
  }
}
