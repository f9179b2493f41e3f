/** Rows of conditions `[column, operator, constant]`: which events count. */

import { button, h, iconButton, replace } from "../../lib/dom";
import { columnsOf } from "../../lib/columns";
import { completions, hasKnownValues } from "../../data/known_values";
import { fromConditions, OPERATORS, toConditions, type ConditionEntry } from "../../data/query_form_data";
import type { Feed } from "../../lib/shapes";
import { t } from "../../lib/texts";
import { valuesOf } from "./frequent_values";

export interface ConditionsOptions {
  feed: Feed;
  /** As in the specification; any other value begins empty. */
  value: unknown;
  /** JSON pointer of the list; rows have `${pointer}/0` and so on. */
  pointer: string;
  /** Prefix of the ids of inputs: must be unique on the page. */
  id: string;
  /** Text shown without conditions, and above some. */
  texts?: { none: string; some: string };
  onChange: () => void;
}

const TEXTS = { none: t("Every event counts."), some: t("Only events that meet all of these count.") };
const SIGNS: Record<string, string> = { "!=": "≠", "<=": "≤", ">=": "≥", in: t("is one of") };

export class ConditionsField {
  readonly element: HTMLElement;
  private entries: ConditionEntry[];

  constructor(private readonly options: ConditionsOptions) {
    this.entries = fromConditions(options.value);
    this.element = h("div", { class: "stack", "data-pointer": options.pointer });
    this.render();
  }

  /** In the form of the specification; an empty list means every event. */
  value(): unknown[] {
    return toConditions(this.entries, this.options.feed);
  }

  private set(entries: ConditionEntry[]): void {
    this.entries = entries;
    this.render();
    this.options.onChange();
  }

  private add(entry: ConditionEntry): void {
    this.set([...this.entries, entry]);
    document.getElementById(`${this.options.id}-column-${this.entries.length - 1}`)?.focus();
  }

  private change(entry: ConditionEntry, part: Partial<ConditionEntry>): void {
    Object.assign(entry, part);
    this.options.onChange();
  }

  private render(): void {
    const { none, some } = this.options.texts ?? TEXTS;
    const first = Object.keys(this.options.feed.columns)[0] ?? "entity";
    const add = button(t("Add a condition"), {
      icon: "plus",
      kind: "button-sm",
      onClick: () => this.add({ column: first, operator: "=", value: "" }),
    });
    replace(
      this.element,
      h("p", { class: "small muted" }, this.entries.length === 0 ? none : some),
      ...this.entries.map((entry, i) => this.row(entry, i)),
      h("div", {}, add),
    );
  }

  /** Offers values that the feed's newest rows have; any other can be typed. */
  private async offer(entry: ConditionEntry, known: HTMLElement): Promise<void> {
    const { feed } = this.options;
    const { column } = entry;
    const values = hasKnownValues(feed, column) ? await valuesOf(feed, column) : [];
    if (column !== entry.column) return;
    replace(known, ...completions(values, entry.operator, entry.value).map((value) => h("option", { value })));
  }

  private row(entry: ConditionEntry, i: number): HTMLElement {
    const { id, pointer, feed } = this.options;
    const columns = Object.keys(columnsOf(feed)).concat("event", "entity");
    const known = h("datalist", { id: `${id}-known-${i}` });
    const value = h("input", {
      class: "input num",
      id: `${id}-value-${i}`,
      list: known.id,
      placeholder: placeholder(entry.operator),
      value: entry.value,
      "aria-label": t("Value"),
      autocomplete: "off",
    });
    const offer = (): void => void this.offer(entry, known);
    value.addEventListener("focus", offer);
    value.addEventListener("input", () => {
      this.change(entry, { value: value.value });
      offer();
    });
    const operator = h(
      "select",
      { class: "select", id: `${id}-operator-${i}`, "aria-label": t("Comparison") },
      ...OPERATORS.map((one) => h("option", { value: one, selected: one === entry.operator }, SIGNS[one] ?? one)),
    );
    operator.addEventListener("change", () => {
      value.placeholder = placeholder(operator.value);
      this.change(entry, { operator: operator.value });
    });
    return h(
      "div",
      { class: "entry-row where-row", "data-pointer": `${pointer}/${i}` },
      columnSelect(`${id}-column-${i}`, columns, entry.column, (column) => this.change(entry, { column })),
      operator,
      value,
      known,
      iconButton(t("Remove this condition"), "trash-2", {
        kind: "button-quiet button-sm",
        onClick: () => this.set(this.entries.filter((one) => one !== entry)),
      }),
    );
  }
}

function placeholder(operator: string): string {
  return operator === "in" ? "a, b, c" : t("value");
}

/**
 * A choice of columns; a column that the feed no longer has stays on the list, so that
 * the server can report it.
 */
export function columnSelect(id: string, names: readonly string[], value: string, onChange: (name: string) => void): HTMLSelectElement {
  const known = names.includes(value) || value === "" ? names : [...names, value];
  const select = h(
    "select",
    { class: "select", id, "aria-label": t("Column") },
    ...known.map((name) => h("option", { value: name, selected: name === value }, name)),
  );
  select.addEventListener("change", () => onChange(select.value));
  return select;
}
