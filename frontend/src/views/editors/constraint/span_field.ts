/** A length of time that may be negative or unbounded. */

import { fromSigned, toSigned, type SignedSpan } from "../../../data/constraint_spans";
import type { SpanUnit } from "../../../data/query_form_data";
import { h } from "../../../lib/dom";
import type { TimeUnit } from "../../../lib/time";
import { unitSelect } from "../../query_form/unit_select";

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
  const amount = h("input", { class: "input num", id, value: from.amount, placeholder, autocomplete: "off" });
  const unit = unitSelect(amount, { time, unit: from.unit, label, id: `${id}-unit` });
  const notify = (): void => onChange(toSigned(amount.value, unit.value as SpanUnit));
  amount.addEventListener("input", notify);
  unit.addEventListener("change", notify);
  return h("div", { class: "field", "data-pointer": pointer }, h("label", { for: id }, label), h("div", { class: "within" }, amount, unit));
}
