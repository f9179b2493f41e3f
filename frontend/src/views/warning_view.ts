/** A sentence that something does not work as it seems to. */

import { h, icon } from "../lib/dom";

export function warningNotice(text: string): HTMLElement {
  return h("p", { class: "notice notice-high" }, icon("triangle-alert"), h("span", {}, text));
}
