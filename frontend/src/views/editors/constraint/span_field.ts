/** A length of time that may be negative or not bounded. */

import { fromSigned, toSigned, type SignedSpan } from "../../../data/constraint_spans";
import { SPAN_UNITS, type SpanUnit } from "../../../data/query_form_data";
import { h } from "../../../lib/dom";
import type { TimeUnit } from "../../../lib/time";

const NAMES: Record<SpanUnit, string> = { s: "seconds", min: "minutes", h: "hours", d: "days", ticks: "ticks" };

export interface SpanOptions {
  id: string;
  label: string;
  time: TimeUnit;
  value: SignedSpan;
  pointer: string;
  placeholder: string;
  onChange: (value: SignedSpan) => void;
}

export function spanField({ id, label, time, value, pointer, placeholder, onChange }: SpanOptions): HTMLElement {
  const from = fromSigned(value, time);
  const units: SpanUnit[] = time === "ms" ? (Object.keys(SPAN_UNITS) as SpanUnit[]) : ["ticks"];
  const unit = h("select", { class: "select", id: `${id}-unit`, "aria-label": `Unit: ${label}` }, ...units.map((one) => h("option", { value: one, selected: one === from.unit }, NAMES[one])));
  const amount = h("input", { class: "input num", id, value: from.amount, placeholder, autocomplete: "off" });
  const tell = (): void => onChange(toSigned(amount.value, unit.value as SpanUnit));
  amount.addEventListener("input", tell);
  unit.addEventListener("change", tell);
  return h("div", { class: "field", "data-pointer": pointer }, h("label", { for: id }, label), h("div", { class: "within" }, amount, unit));
}
