/** Which rows and columns feed the input events and fluents of the rules. */

import {
  columnsRead,
  textWithoutInputs,
  type CalculusEntries,
  type InputEntry,
  type InputKind,
} from "../../../data/calculus_document_data";
import { definedAlike, type Names } from "../../../data/calculus_program_data";
import type { Feed } from "../../../lib/shapes";
import { h, icon, replace } from "../../../lib/dom";
import { t } from "../../../lib/texts";

const KIND_NAMES: Record<InputKind, string> = {
  event: t("an event"),
  points: t("a fluent at ticks"),
  intervals: t("a fluent over intervals"),
};

export class InputsView {
  readonly element = h("div", { class: "stack", "data-pointer": "/inputs" });
  private shown = "";

  constructor(
    private readonly feed: Feed,
    private readonly onChange: (inputs: InputEntry[]) => void,
  ) {}

  show({ inputs, others }: CalculusEntries, names: Names): void {
    // A field that is being edited keeps its focus: the rows are rebuilt only when
    // the set of inputs changes.
    const key = JSON.stringify([inputs, names.inputs]);
    if (key === this.shown) return;
    this.shown = key;
    if (inputs.length === 0) {
      replace(this.element, h("p", { class: "small muted" }, textWithoutInputs(others)));
      return;
    }
    replace(
      this.element,
      h("p", { class: "small muted" }, t("A row is the event of its name. Each argument is read from a column.")),
      ...inputs.map((entry) => this.row(entry, inputs, names)),
    );
  }

  private row(entry: InputEntry, inputs: readonly InputEntry[], names: Names): HTMLElement {
    const set = (change: Partial<InputEntry>): void => {
      const next = inputs.map((one) => (one === entry ? { ...one, ...change, isGuessed: false } : one));
      this.shown = JSON.stringify([next, names.inputs]);
      this.onChange(next);
      // The rows of this table hold the entries before the change.
      this.shown = "";
      this.show({ inputs: next } as CalculusEntries, names);
    };
    const wanted = names.inputs.find((one) => one.name === entry.name)?.args ?? [];
    const kind = h(
      "select",
      { class: "select select-sm", id: `input-kind-${entry.name}`, "aria-label": t("What {name} is", { name: entry.name }) },
      ...(Object.keys(KIND_NAMES) as InputKind[]).map((one) => h("option", { value: one, selected: one === entry.kind }, KIND_NAMES[one])),
    );
    kind.addEventListener("change", () => {
      set({ kind: kind.value as InputKind });
      document.getElementById(kind.id)?.focus();
    });
    const columns = columnsRead(entry, names).map((column, place) =>
      this.column(entry, place, column, wanted[place] ?? t("argument {place}", { place: place + 1 }), set),
    );
    return h(
      "div",
      { class: "calculus-input", "data-pointer": `/inputs/${entry.name}` },
      h("div", { class: "row spread" }, h("code", { class: "mono" }, entry.name), kind),
      entry.isGuessed ? misspelt(entry.name, names) : null,
      h("div", { class: "calculus-columns" }, ...columns),
    );
  }

  private column(
    entry: InputEntry,
    place: number,
    value: string,
    argument: string,
    set: (change: Partial<InputEntry>) => void,
  ): HTMLElement {
    const names = ["entity", ...Object.keys(this.feed.columns), "x", "y", "t", "t_end"];
    const known = names.includes(value) ? names : [...names, value];
    const id = `input-${entry.name}-${place}`;
    const select = h(
      "select",
      { class: "select select-sm", id, "aria-label": t("Column of {argument} in {name}", { argument, name: entry.name }) },
      ...known.map((one) =>
        h("option", { value: one, selected: one === value }, names.includes(one) ? one : t("{one} (missing)", { one })),
      ),
    );
    select.addEventListener("change", () => {
      set({ columns: entry.columns.map((one, i) => (i === place ? select.value : one)) });
      document.getElementById(id)?.focus();
    });
    return h("label", { class: "calculus-column" }, h("span", { class: "mono" }, argument), select);
  }
}

/** A notice if the name resembles one that the rules define. */
function misspelt(name: string, names: Names): HTMLElement | null {
  const alike = definedAlike(name, names);
  if (alike === null) return null;
  const text = t("No rule defines “{name}”, so rows must provide it. Did you mean “{alike}”?", { name, alike });
  return h("p", { class: "notice notice-high" }, icon("triangle-alert"), h("span", {}, text));
}
