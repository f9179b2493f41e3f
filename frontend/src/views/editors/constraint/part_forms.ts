/**
 * The forms next to the graph: one for a variable, one for a constraint. Each reports the changed
 * part; its owner redraws it when other parts have to be updated.
 */

import {
  comparedWith,
  comparedWithout,
  shownRight,
  type ComparisonEntry,
  type ConstraintEntries,
  type ConstraintEntry,
  type DistanceEntry,
  type VariableEntry,
} from "../../../data/constraint_data";
import { columnsOf } from "../../../lib/columns";
import { OPERATORS } from "../../../data/query_form_data";
import { button, h, iconButton } from "../../../lib/dom";
import { ConditionsField } from "../../query_form/conditions_field";
import { RegionChoice } from "../../query_form/region_choice";
import type { EditorContext } from "../editor";
import { spanField } from "./span_field";
import { t } from "../../../lib/texts";

const NAME = /^[A-Za-z_]\w{0,99}$/;

export interface VariableHandlers {
  onWhere: (where: unknown[]) => void;
  onRename: (to: string) => void;
  onConnect: (to: string) => void;
  onRemove: () => void;
}

export function variableForm(
  entries: ConstraintEntries,
  variable: VariableEntry,
  context: EditorContext,
  handlers: VariableHandlers,
): HTMLElement {
  const { name } = variable;
  const taken = new Set(entries.variables.map((one) => one.name));
  const input = h("input", { class: "input", id: "variable-name", value: name, autocomplete: "off" });
  input.addEventListener("change", () => {
    const to = input.value.trim();
    if (NAME.test(to) && !taken.has(to)) handlers.onRename(to);
    else input.value = name;
  });
  const where: ConditionsField = new ConditionsField({
    feed: context.feed,
    value: variable.where,
    pointer: `/variables/${name}/where`,
    id: "variable-where",
    texts: { none: t("Any event of the feed."), some: t("Events that meet all of these.") },
    onChange: () => handlers.onWhere(where.value()),
  });
  const others = entries.variables
    .filter((one) => one !== variable)
    .map((one) => button(one.name, { icon: "link", kind: "button-sm", onClick: () => handlers.onConnect(one.name) }));
  return h(
    "div",
    { class: "stack", "data-pointer": `/variables/${name}` },
    h("div", { class: "field" }, h("label", { for: "variable-name" }, t("Name")), input),
    where.element,
    others.length === 0
      ? null
      : h(
          "div",
          { class: "field" },
          h("span", { class: "label" }, t("Constrain it relative to")),
          h("div", { class: "row row-wrap" }, ...others),
        ),
    h("div", {}, button(t("Remove this event"), { icon: "trash-2", kind: "button-sm button-danger", onClick: handlers.onRemove })),
  );
}

export interface ConstraintHandlers {
  /** `isOther`: different fields are to be shown. */
  onChange: (change: Partial<ConstraintEntry>, isOther: boolean) => void;
  onRegion: (isElsewhere: boolean) => void;
  onRemove: () => void;
}

export class ConstraintForm {
  readonly element: HTMLElement;
  readonly region: RegionChoice | null = null;
  private readonly pointer: string;

  constructor(
    private readonly entries: ConstraintEntries,
    private readonly constraint: ConstraintEntry,
    private readonly context: EditorContext,
    private readonly handlers: ConstraintHandlers,
  ) {
    this.pointer = `/constraints/${entries.constraints.indexOf(constraint)}`;
    if (constraint.inside !== null) this.region = this.choice(constraint.inside.region);
    this.element = h(
      "div",
      { class: "stack", "data-pointer": this.pointer },
      this.between(),
      this.part(
        t("Time"),
        constraint.dt !== null,
        () => this.times(),
        (isOn) => ({ dt: isOn ? [0, context.feed.time === "ms" ? "PT5M" : 100] : null }),
        constraint.between.length > 1,
      ),
      this.part(
        t("Distance"),
        constraint.distance !== null,
        () => this.distance(constraint.distance!),
        (isOn) => ({ distance: isOn ? { max: "", min: "", isOpen: false } : null }),
        constraint.between.length > 1,
      ),
      this.part(
        t("Inside a region"),
        constraint.inside !== null,
        () => this.region!.element,
        (isOn) => ({ inside: isOn ? { region: null } : null }),
        true,
      ),
      this.part(
        t("Compared values"),
        constraint.compare.length > 0,
        () => this.comparisons(),
        (isOn) => ({ compare: isOn ? [this.fresh()] : [] }),
        true,
      ),
      h("div", {}, button(t("Remove this constraint"), { icon: "trash-2", kind: "button-sm button-danger", onClick: handlers.onRemove })),
    );
  }

  private part(
    name: string,
    isOn: boolean,
    fields: () => HTMLElement,
    change: (isOn: boolean) => Partial<ConstraintEntry>,
    isFitting: boolean,
  ): HTMLElement | null {
    if (!isFitting && !isOn) return null;
    const box = h("input", { type: "checkbox", checked: isOn });
    box.addEventListener("change", () => this.handlers.onChange(change(box.checked), true));
    return h("div", { class: "constraint-part" }, h("label", { class: "check" }, box, h("strong", {}, name)), isOn ? fields() : null);
  }

  private between(): HTMLElement {
    const boxes = this.entries.variables.map(({ name }) => {
      const box = h("input", { type: "checkbox", checked: this.constraint.between.includes(name) });
      box.addEventListener("change", () =>
        this.handlers.onChange(
          box.checked
            ? { between: [...this.constraint.between, name] }
            : {
                between: this.constraint.between.filter((one) => one !== name),
                compare: comparedWithout(this.constraint.compare, name),
              },
          true,
        ),
      );
      return h("label", { class: "check" }, box, name);
    });
    const [first, second, ...more] = this.constraint.between;
    const swap =
      second !== undefined && more.length === 0
        ? iconButton(t("Exchange {first} and {second}", { first: first ?? "", second }), "refresh-cw", {
            kind: "button-quiet button-sm",
            onClick: () => this.handlers.onChange({ between: [second, first ?? ""] }, true),
          })
        : null;
    return h(
      "div",
      { class: "field", "data-pointer": `${this.pointer}/between` },
      h("span", { class: "label row" }, t("Between {between}", { between: this.constraint.between.join(", ") || "…" }), swap),
      h("div", { class: "row row-wrap" }, ...boxes),
    );
  }

  private times(): HTMLElement {
    const [low, high] = this.constraint.dt!;
    const [first = "…", second = "…"] = this.constraint.between;
    const { time } = this.context.feed;
    const set =
      (i: 0 | 1) =>
      (value: string | number | null): void => {
        const [from, to] = this.constraint.dt ?? [null, null];
        this.handlers.onChange({ dt: i === 0 ? [value, to] : [from, value] }, false);
      };
    const pointer = `${this.pointer}/dt`;
    return h(
      "div",
      { class: "stack", "data-pointer": pointer },
      h(
        "p",
        { class: "small muted" },
        this.constraint.between.length > 2
          ? t("Each one comes after each earlier one by")
          : t("{second} comes after {first} by", { second, first }),
        t(" (negative: before it)"),
      ),
      h(
        "div",
        { class: "constraint-pair" },
        spanField({
          id: "dt-low",
          label: t("at least"),
          time,
          value: low,
          pointer: `${pointer}/0`,
          placeholder: t("no limit"),
          onChange: set(0),
        }),
        spanField({
          id: "dt-high",
          label: t("at most"),
          time,
          value: high,
          pointer: `${pointer}/1`,
          placeholder: t("no limit"),
          onChange: set(1),
        }),
      ),
    );
  }

  private distance(distance: DistanceEntry): HTMLElement {
    const unit = this.context.feed.crs === "geographic" ? t("metres") : t("units of the plan");
    const set = (change: Partial<DistanceEntry>): void => {
      Object.assign(distance, change);
      this.handlers.onChange({ distance }, false);
    };
    const field = (key: "max" | "min", label: string): HTMLElement => {
      const input = h("input", {
        class: "input num",
        id: `distance-${key}`,
        value: distance[key],
        placeholder: t("no limit"),
        inputmode: "decimal",
        autocomplete: "off",
      });
      input.addEventListener("input", () => set({ [key]: input.value }));
      return h(
        "div",
        { class: "field", "data-pointer": `${this.pointer}/distance/${key}` },
        h("label", { for: `distance-${key}` }, `${label}, ${unit}`),
        input,
      );
    };
    const strict = h("input", { type: "checkbox", checked: distance.isOpen });
    strict.addEventListener("change", () => set({ isOpen: strict.checked }));
    return h(
      "div",
      { class: "stack", "data-pointer": `${this.pointer}/distance` },
      h("div", { class: "constraint-pair" }, field("min", t("at least")), field("max", t("at most"))),
      h("label", { class: "check" }, strict, t("The limits themselves do not count")),
    );
  }

  private choice(value: unknown): RegionChoice {
    const region = new RegionChoice({
      context: this.context,
      value,
      id: "constraint-region",
      pointer: `${this.pointer}/inside`,
      onChange: (isElsewhere) => {
        this.handlers.onChange({ inside: { region: region.value() } }, false);
        this.handlers.onRegion(isElsewhere);
      },
    });
    return region;
  }

  // ---- Comparisons

  private columns(): string[] {
    const names = [...Object.keys(columnsOf(this.context.feed)), "t"];
    return this.constraint.between.flatMap((variable) => names.map((column) => `${variable}.${column}`));
  }

  private fresh(): ComparisonEntry {
    const column = Object.keys(this.context.feed.columns)[0] ?? "x";
    const [first, second] = this.constraint.between;
    return { left: `${first ?? ""}.${column}`, op: "<", right: second === undefined ? "" : `${second}.${column}` };
  }

  private comparisons(): HTMLElement {
    const rows = this.constraint.compare;
    const set = (compare: ComparisonEntry[], isOther: boolean): void => this.handlers.onChange({ compare }, isOther);
    const items = rows.map((row, i) => {
      const change = (part: Partial<ComparisonEntry>): void => {
        Object.assign(row, part);
        set(rows, false);
      };
      const side = (name: "left" | "right", label: string, placeholder: string): HTMLInputElement =>
        h("input", {
          class: "input num",
          id: `compare-${name}-${i}`,
          value: shownRight(row[name]),
          list: "compare-columns",
          placeholder,
          "aria-label": label,
          autocomplete: "off",
          spellcheck: "false",
        });
      const operator = h(
        "select",
        { class: "select", id: `compare-operator-${i}`, "aria-label": t("Comparison") },
        ...OPERATORS.map((one) => h("option", { value: one, selected: one === row.op }, one)),
      );
      const [left, right] = [
        side("left", t("Column or sum"), t("column or sum")),
        side("right", t("Column, sum or value"), t("column, sum or value")),
      ];
      const read = (): void => {
        const { entries, context } = this;
        change({
          op: operator.value,
          left: comparedWith(left.value, right.value, "=", entries, context.feed),
          right: comparedWith(right.value, left.value, operator.value, entries, context.feed),
        });
      };
      for (const input of [left, right]) input.addEventListener("input", read);
      operator.addEventListener("change", read);
      return h(
        "div",
        { class: "entry-row where-row", "data-pointer": `${this.pointer}/compare/${i}` },
        left,
        operator,
        right,
        iconButton(t("Remove this comparison"), "trash-2", {
          kind: "button-quiet button-sm",
          onClick: () =>
            set(
              rows.filter((one) => one !== row),
              true,
            ),
        }),
      );
    });
    const known = h("datalist", { id: "compare-columns" }, ...this.columns().map((value) => h("option", { value })));
    return h(
      "div",
      { class: "stack", "data-pointer": `${this.pointer}/compare` },
      ...items,
      known,
      h(
        "p",
        { class: "hint" },
        t("A side may be a sum of columns and numbers: 2 * "),
        h("code", { class: "mono" }, `${this.constraint.between[0] ?? "V1"}.${Object.keys(this.context.feed.columns)[0] ?? "x"}`),
        " + 3",
      ),
      h("div", {}, button(t("Add a comparison"), { icon: "plus", kind: "button-sm", onClick: () => set([...rows, this.fresh()], true) })),
    );
  }
}
