/**
 * A length of time: an amount and a unit, as the specification writes it ("PT3M", or a
 * number on a feed of ticks).
 */

import { h } from "../../lib/dom";
import type { Fault } from "../../lib/api";
import { t } from "../../lib/texts";
import type { TimeUnit } from "../../lib/time";
import { fromDuration, toDuration, type SpanUnit } from "../../data/query_form_data";
import { unitSelect } from "./unit_select";

export interface DurationOptions {
  /** The id of the amount's input; the unit's is `${id}-unit`. */
  id: string;
  label: string;
  time: TimeUnit;
  /** As in the specification; undefined or null begins empty. */
  value: unknown;
  pointer?: string;
  /** A hint of one line below the field. */
  hint?: string;
  placeholder?: string;
  onChange: () => void;
}

export class DurationField {
  readonly element: HTMLElement;
  private amount: string;
  private unit: SpanUnit;

  constructor({ id, label, time, value, pointer, hint, placeholder = "", onChange }: DurationOptions) {
    ({ amount: this.amount, unit: this.unit } = fromDuration(value, time));
    const amount = h("input", { class: "input num", id, inputmode: "decimal", value: this.amount, placeholder, autocomplete: "off" });
    const unit = unitSelect(amount, { time, unit: this.unit, label, id: `${id}-unit` });
    unit.addEventListener("change", () => {
      this.unit = unit.value as SpanUnit;
      onChange();
    });
    amount.addEventListener("input", () => {
      this.amount = amount.value;
      this.mark(label);
      onChange();
    });
    this.element = h(
      "div",
      { class: "field", ...(pointer === undefined ? {} : { "data-pointer": pointer }) },
      h("label", { for: id }, label),
      h("div", { class: "within" }, amount, unit),
      hint === undefined ? null : h("span", { class: "hint" }, hint),
    );
  }

  /** For `inWordsOfField`: the label, while the amount is not a number. */
  private mark(label: string): void {
    const isUnread = this.amount.trim() !== "" && toDuration(this.amount, this.unit) === null;
    if (isUnread) this.element.dataset["unread"] = label;
    else delete this.element.dataset["unread"];
  }

  /** Null for an empty field; an invalid number is kept as typed, for the server to refuse. */
  value(): string | number | null {
    return this.amount.trim() === "" ? null : (toDuration(this.amount, this.unit) ?? this.amount.trim());
  }
}

/** The server expects a duration as in a document; the reader enters a number next to a unit. */
export function inWordsOfField(root: HTMLElement, fault: Fault): Fault {
  const field = [...root.querySelectorAll<HTMLElement>("[data-unread]")].find(({ dataset }) => dataset["pointer"] === fault.pointer);
  const label = field?.dataset["unread"];
  return label === undefined ? fault : { ...fault, message: t("{label}: a number of 0 or more.", { label }) };
}
