/** How long ago something was, kept true while it is shown. */

import { h } from "./dom";
import { formatAgo } from "./time";

/** "12 s ago"; `tellAges` of the page says it anew each second, of all at the same moment. */
export function age(at: number): HTMLElement {
  return h("span", { "data-age": at }, formatAgo(at, Date.now()));
}

/** Says all ages in `root` as they are now: none is older than one below it that is not. */
export function tellAges(root: ParentNode): void {
  const now = Date.now();
  for (const one of root.querySelectorAll<HTMLElement>("[data-age]")) {
    const text = formatAgo(Number(one.dataset["age"]), now);
    if (one.textContent !== text) one.textContent = text;
  }
}
