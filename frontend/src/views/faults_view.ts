/**
 * Faults next to the fields they belong to: the element whose `data-pointer` is the longest prefix
 * of the fault's pointer.
 */

import type { Fault } from "../lib/api";
import { h, icon } from "../lib/dom";

/** Shows the faults below `root` and returns those that no field claims. */
export function showFaults(root: HTMLElement, faults: readonly Fault[]): Fault[] {
  for (const old of root.querySelectorAll(".fault")) old.remove();
  for (const marked of root.querySelectorAll("[data-pointer].field-error")) marked.classList.remove("field-error");
  const fields = [...root.querySelectorAll<HTMLElement>("[data-pointer]")].filter((field) => field.offsetParent !== null);
  return faults.filter((fault) => {
    const field = owner(fields, fault.pointer);
    if (field === null) return true;
    field.classList.add("field-error");
    field.append(h("p", { class: "fault", role: "alert" }, icon("circle-alert"), h("span", {}, fault.message)));
    return false;
  });
}

/** Each fault once: several faults of the server may have the same text for a field. */
export function distinct(faults: readonly Fault[]): Fault[] {
  return [...new Map(faults.map((fault) => [JSON.stringify([fault.pointer, fault.message]), fault])).values()];
}

function owner(fields: HTMLElement[], pointer: string): HTMLElement | null {
  let best: HTMLElement | null = null;
  let length = 0;
  for (const field of fields) {
    const own = field.dataset["pointer"] ?? "";
    const isPrefix = own !== "" && (pointer === own || pointer.startsWith(`${own}/`));
    if (isPrefix && own.length > length) [best, length] = [field, own.length];
  }
  return best;
}
