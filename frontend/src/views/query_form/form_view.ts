/** The fields of the query form: entries in, changed entries out. The map and the server's word live elsewhere. */

import { button, h, icon, iconButton, replace } from "../../lib/dom";
import { describe } from "../../lib/regions";
import { columnsOf, hasForm, OPERATORS, SPAN_UNITS, TRANSITIONS, type ConditionEntry, type QueryEntries, type RangeEntry, type SpanUnit, type TransitionKind } from "../../data/query_form_data";
import type { Feed, RegionRow } from "../../data/shapes";
import { familyName } from "../../lib/words";
import { CoordinateTableView } from "../coordinate_table_view";
import { fileButton } from "../region_editor_view";

const SENTENCES: Record<TransitionKind, [string, string]> = {
  passed: ["Passes through", "enters, and leaves again in time"],
  stayed_in: ["Stays in", "enters, and has not left when the time is up"],
  returned: ["Comes back", "leaves, and enters again in time"],
  stayed_out: ["Stays out", "leaves, and has not come back when the time is up"],
};
const FAMILY_TEXTS: Record<string, string> = {
  border: "Tells each time something enters or leaves.",
  transition: "Tells whether it leaves again in time, or stays too long.",
};

export interface FormHandlers {
  onChange: () => void;
  onImport: (file: File) => void;
}

export class QueryFormView {
  readonly element = h("div");
  private readonly table: CoordinateTableView;
  private readonly state = h("div", { role: "status" });

  constructor(
    readonly entries: QueryEntries,
    private readonly feed: Feed,
    private readonly regions: readonly RegionRow[],
    private readonly families: readonly string[],
    private readonly isNew: boolean,
    private readonly handlers: FormHandlers,
  ) {
    const isGeographic = feed.crs === "geographic";
    this.table = new CoordinateTableView(isGeographic ? ["Longitude", "Latitude"] : ["x", "y"], isGeographic ? "metres" : "units of the plan", (geometry) => this.set({ geometry, reference: null }, false));
    this.render();
  }

  private set(change: Partial<QueryEntries>, redraw = true): void {
    Object.assign(this.entries, change);
    if (redraw) this.render();
    else this.showState();
    this.handlers.onChange();
  }

  /** The region was drawn on the map. */
  regionDrawn(geometry: QueryEntries["geometry"]): void {
    this.entries.geometry = geometry;
    this.entries.reference = null;
    this.render();
  }

  render(): void {
    const focused = document.activeElement instanceof HTMLElement && this.element.contains(document.activeElement) ? document.activeElement.id : "";
    const isOpen = this.element.querySelector<HTMLDetailsElement>("details.coordinates")?.open ?? false;
    const parts = hasForm(this.entries.family) ? [this.where(isOpen), this.entries.family === "transition" ? this.transitions() : null, this.conditions()] : [this.document()];
    replace(this.element, this.question(), ...parts);
    if (focused !== "") document.getElementById(focused)?.focus();
  }

  private question(): HTMLElement {
    const choice = (family: string): HTMLElement =>
      h(
        "label",
        { class: "choice" },
        h("input", { type: "radio", name: "family", value: family, checked: family === this.entries.family, disabled: !this.isNew && family !== this.entries.family, onChange: () => this.set({ family, text: JSON.stringify({ family, version: 1 }, null, 2) }) }),
        h("span", { class: "choice-text" }, h("strong", {}, familyName(family)), h("span", { class: "hint" }, FAMILY_TEXTS[family] ?? "Written as a specification.")),
      );
    return section("What do you want to know?", h("div", { class: "choices", "data-pointer": "/family", role: "radiogroup", "aria-label": "Kind of query" }, ...this.families.map(choice)));
  }

  private where(isOpen: boolean): HTMLElement {
    const { place } = this.entries;
    const tab = (value: "region" | "ranges", text: string): HTMLElement => h("button", { type: "button", "aria-pressed": String(place === value), onClick: () => this.set({ place: value, ranges: value === "ranges" && this.entries.ranges.length === 0 ? [this.emptyRange()] : this.entries.ranges }) }, text);
    return section("Where?", h("div", { class: "segmented" }, tab("region", "Region on the map"), tab("ranges", "Range of values")), place === "region" ? this.region(isOpen) : this.ranges());
  }

  private region(isOpen: boolean): HTMLElement {
    const { reference, geometry } = this.entries;
    const options = this.regions.map((row) => h("option", { value: row.name, selected: row.name === reference }, row.name));
    const select = h("select", { class: "select", id: "stored-region", "aria-label": "Stored region" }, h("option", { value: "" }, this.regions.length === 0 ? "No stored regions yet" : "Choose a stored region"), ...options);
    select.addEventListener("change", () => this.set({ reference: select.value === "" ? null : select.value, geometry: null }));
    this.showState();
    this.table.show(reference === null ? geometry : null);
    const details = h("details", { class: "coordinates", open: isOpen }, h("summary", {}, "Corners as numbers"), this.table.element);
    const segments = h("input", { type: "checkbox", checked: this.entries.segments, onChange: () => this.set({ segments: segments.checked }, false) });
    return h(
      "div",
      { class: "stack", "data-pointer": "/region" },
      this.state,
      h("div", { class: "row" }, h("div", { class: "grow" }, select), fileButton("Import", ".geojson,.json,.kml,.gpx,.gpkg,.csv", this.handlers.onImport)),
      reference === null ? details : null,
      this.entries.family === "border"
        ? h("label", { class: "check", "data-pointer": "/segments" }, segments, h("span", {}, "Also count a straight move that only touches or crosses the region between two positions"))
        : null,
    );
  }

  /** Where the region comes from and what it is: said anew at each change, without touching the fields below it. */
  private showState(): void {
    const { reference, geometry } = this.entries;
    const isGeographic = this.feed.crs === "geographic";
    const line =
      reference !== null
        ? h("p", { class: "row small" }, icon("link"), h("span", {}, "Uses the stored region ", h("strong", {}, reference), ". Changing it there changes it here."))
        : geometry !== null
          ? h("p", { class: "row small" }, icon("check"), h("span", {}, describe(geometry, isGeographic)))
          : h("p", { class: "row small muted" }, icon("pencil"), h("span", {}, "Draw it on the map, choose a stored one, or bring a file."));
    replace(this.state, line);
  }

  private emptyRange(): RangeEntry {
    return { column: this.numericColumns().find((name) => name !== "x" && name !== "y") ?? "x", low: "", high: "" };
  }

  private numericColumns(): string[] {
    return Object.entries(columnsOf(this.feed)).filter(([, type]) => type === "float" || type === "int").map(([name]) => name);
  }

  private ranges(): HTMLElement {
    const { ranges } = this.entries;
    const change = (i: number, part: Partial<RangeEntry>): void => this.set({ ranges: ranges.map((row, n) => (n === i ? { ...row, ...part } : row)) }, false);
    const rows = ranges.map((row, i) => {
      const select = columnSelect(`range-column-${i}`, this.numericColumns(), row.column, (column) => change(i, { column }));
      return h(
        "div",
        { class: "entry-row range-row", "data-pointer": `/ranges/${row.column}` },
        select,
        input(`range-low-${i}`, "from, no limit", row.low, (low) => change(i, { low }), "At least"),
        h("span", { class: "faint" }, "to below"),
        input(`range-high-${i}`, "no limit", row.high, (high) => change(i, { high }), "Below"),
        iconButton("Remove this range", "trash-2", { kind: "button-quiet button-sm", onClick: () => this.set({ ranges: ranges.filter((_, n) => n !== i) }) }),
      );
    });
    return h(
      "div",
      { class: "stack", "data-pointer": "/ranges" },
      h("p", { class: "small muted" }, "Inside means: every value is in its range, the lower bound included, the upper one not."),
      ...rows,
      h("div", {}, button("Add a range", { icon: "plus", kind: "button-sm", disabled: ranges.length >= 9, onClick: () => this.set({ ranges: [...ranges, this.emptyRange()] }) })),
    );
  }

  private transitions(): HTMLElement {
    const { types } = this.entries;
    const choice = (kind: TransitionKind): HTMLElement => {
      const box = h("input", { type: "checkbox", id: `type-${kind}`, checked: types.includes(kind) });
      box.addEventListener("change", () => this.set({ types: TRANSITIONS.filter((one) => (one === kind ? box.checked : this.entries.types.includes(one))) }, false));
      return h("label", { class: "choice" }, box, h("span", { class: "choice-text" }, h("strong", {}, SENTENCES[kind][0]), h("span", { class: "hint" }, SENTENCES[kind][1])));
    };
    const units: SpanUnit[] = this.feed.time === "ms" ? (Object.keys(SPAN_UNITS) as SpanUnit[]) : ["ticks"];
    const unit = h("select", { class: "select", id: "within-unit", "aria-label": "Unit" }, ...units.map((one) => h("option", { value: one, selected: one === this.entries.unit }, { s: "seconds", min: "minutes", h: "hours", d: "days", ticks: "ticks" }[one])));
    unit.addEventListener("change", () => this.set({ unit: unit.value as SpanUnit }, false));
    return section(
      "What counts?",
      h("div", { class: "choices", "data-pointer": "/types", role: "group", "aria-label": "Kinds of answers" }, ...TRANSITIONS.map(choice)),
      h("div", { class: "field", "data-pointer": "/within" }, h("label", { for: "within" }, "The time it has"), h("div", { class: "within" }, input("within", "3", this.entries.amount, (amount) => this.set({ amount }, false), "Time"), unit)),
    );
  }

  private conditions(): HTMLElement {
    const { where } = this.entries;
    const columns = Object.keys(columnsOf(this.feed)).concat("event", "entity");
    const change = (i: number, part: Partial<ConditionEntry>): void => this.set({ where: where.map((row, n) => (n === i ? { ...row, ...part } : row)) }, false);
    const rows = where.map((row, i) => {
      const operator = h("select", { class: "select", id: `where-operator-${i}`, "aria-label": "Comparison" }, ...OPERATORS.map((one) => h("option", { value: one, selected: one === row.operator }, one === "in" ? "is one of" : one.replace("!=", "≠").replace("<=", "≤").replace(">=", "≥"))));
      operator.addEventListener("change", () => change(i, { operator: operator.value }));
      return h(
        "div",
        { class: "entry-row where-row", "data-pointer": `/where/${i}` },
        columnSelect(`where-column-${i}`, columns, row.column, (column) => change(i, { column })),
        operator,
        input(`where-value-${i}`, row.operator === "in" ? "a, b, c" : "value", row.value, (value) => change(i, { value }), "Value"),
        iconButton("Remove this condition", "trash-2", { kind: "button-quiet button-sm", onClick: () => this.set({ where: where.filter((_, n) => n !== i) }) }),
      );
    });
    const text = where.length === 0 ? "Every event counts." : "Only events count that meet all of these.";
    return section("Which events?", h("div", { class: "stack", "data-pointer": "/where" }, h("p", { class: "small muted" }, text), ...rows, h("div", {}, button("Add a condition", { icon: "plus", kind: "button-sm", onClick: () => this.set({ where: [...where, { column: Object.keys(this.feed.columns)[0] ?? "entity", operator: "=", value: "" }] }) }))));
  }

  private document(): HTMLElement {
    const area = h("textarea", { class: "textarea mono document", id: "document", spellcheck: "false", "aria-label": "Specification as JSON", value: this.entries.text });
    area.addEventListener("input", () => this.set({ text: area.value }, false));
    return section("Specification", h("div", { class: "field", "data-pointer": "/" }, area, h("p", { class: "hint" }, "The document of the specification, as JSON; it is checked while you write.")));
  }
}

export function section(title: string, ...children: (Node | null)[]): HTMLElement {
  return h("section", { class: "form-section" }, h("h2", {}, title), ...children);
}

function columnSelect(id: string, names: readonly string[], value: string, onChange: (name: string) => void): HTMLSelectElement {
  const known = names.includes(value) || value === "" ? names : [...names, value];
  const select = h("select", { class: "select", id, "aria-label": "Column" }, ...known.map((name) => h("option", { value: name, selected: name === value }, name)));
  select.addEventListener("change", () => onChange(select.value));
  return select;
}

function input(id: string, placeholder: string, value: string, onChange: (text: string) => void, name: string): HTMLInputElement {
  const field = h("input", { class: "input num", id, placeholder, value, "aria-label": name, autocomplete: "off" });
  field.addEventListener("input", () => onChange(field.value));
  return field;
}
