/** A warning about something that does not work as expected. */

import { h, icon } from "../lib/dom";

export function warningNotice(text: string): HTMLElement {
  return h("p", { class: "notice notice-high" }, icon("triangle-alert"), h("span", {}, text));
}
