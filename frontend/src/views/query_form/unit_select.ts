/**
 * The unit of a length of time, in the grammatical number of the amount: "1 minute", "2 minutes".
 */

import { h } from "../../lib/dom";
import type { TimeUnit } from "../../lib/time";
import { SPAN_UNITS, unitName, type SpanUnit } from "../../data/query_form_data";
import { t } from "../../lib/texts";

export interface UnitOptions {
  time: TimeUnit;
  unit: SpanUnit;
  /** From the length of time. */
  label: string;
  kind?: string;
  id?: string;
}

/** The list of units for the number typed in `amount`; its value is a SpanUnit. */
export function unitSelect(amount: HTMLInputElement, { time, unit, label, kind = "select", id }: UnitOptions): HTMLSelectElement {
  const units: SpanUnit[] = time === "ms" ? (Object.keys(SPAN_UNITS) as SpanUnit[]) : ["ticks"];
  const options = units.map((one) => h("option", { value: one, selected: one === unit }));
  const agree = (): void => options.forEach((option, i) => (option.textContent = unitName(units[i]!, amount.value)));
  amount.addEventListener("input", agree);
  agree();
  return h("select", { class: kind, id, "aria-label": t("Unit: {label}", { label }) }, ...options);
}
