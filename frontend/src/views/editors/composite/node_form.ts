/**
 * The forms next to the tree: conditions of a primitive, settings of an operator, constraints
 * between two parts of a sequence.
 */

import { emptyPrimitive, isName, type CompositeEntries, type PrimitiveEntry } from "../../../data/composite_data";
import { namesIn, never, outline, type Operator, type Row, type Span } from "../../../data/composite_tree";
import { columnsOf } from "../../../lib/columns";
import { button, h, iconButton, replace } from "../../../lib/dom";
import { columnSelect, ConditionsField } from "../../query_form/conditions_field";
import { DurationField } from "../../query_form/duration_field";
import { RegionChoice } from "../../query_form/region_choice";
import { more } from "../../query_form/section";
import type { EditorContext } from "../editor";
import { t } from "../../../lib/texts";

const OPERATOR_TEXTS: Record<Operator, string> = {
  sequence: t("SEQUENCE: in this order"),
  and: t("AND: all of them, in any order"),
  or: t("OR: one of them"),
  interval: t("INTERVAL: within a time of each other"),
  absence: t("NOT AFTER: the first, then not the second for a time"),
  before: t("NOT BEFORE: not the first for a time, then the second"),
  around: t("NOT AROUND: the first, and not the second for a time before or after it"),
};

export interface NodeFormHandlers {
  onPrimitive: (name: string, entry: PrimitiveEntry) => void;
  /** The leaf gets this name: another primitive, or the same one renamed. */
  onName: (name: string) => void;
  onOperator: (op: Operator) => void;
  onSpan: (span: Span) => void;
  onBounds: (bounds: readonly [Span, Span] | null) => void;
  /** A region changed; `isElsewhere`: the map should move to it. */
  onRegion: (isElsewhere: boolean) => void;
  /** The reader returns to the tree. */
  onDone: () => void;
}

export class NodeForm {
  readonly element: HTMLElement;
  /** The regions of the primitive: inside, outside. */
  readonly regions: { key: "inside" | "outside"; choice: RegionChoice }[] = [];
  private readonly name: HTMLInputElement | null = null;

  constructor(
    private readonly entries: CompositeEntries,
    private readonly row: Row,
    private readonly context: EditorContext,
    private readonly handlers: NodeFormHandlers,
  ) {
    const { node } = row;
    const parts: (HTMLElement | null)[] = [];
    if (node.op === "primitive") {
      this.name = this.nameInput();
      parts.push(this.naming(this.name), ...this.meaning());
    } else {
      parts.push(this.operator(node.op), this.span());
    }
    this.element = h("div", { class: "stack pattern-form" }, ...parts, row.role === "then" ? this.bounds() : null);
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") handlers.onDone();
    });
  }

  focus(): void {
    if (this.name !== null) {
      this.name.focus();
      this.name.select();
    } else {
      this.element.querySelector<HTMLElement>("select, input")?.focus();
    }
  }

  // ---- A primitive

  private nameInput(): HTMLInputElement {
    const { name } = this.row.node;
    const input = h("input", {
      class: "input mono",
      id: "primitive-name",
      value: name,
      list: "primitive-names",
      autocomplete: "off",
      spellcheck: "false",
    });
    const take = (): void => {
      const to = input.value.trim();
      if (to === name) return;
      if (isName(to)) this.handlers.onName(to);
      else input.value = name;
    };
    input.addEventListener("change", take);
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") input.value = name;
      if (event.key !== "Enter") return;
      event.preventDefault();
      take();
      this.handlers.onDone();
    });
    return input;
  }

  private naming(input: HTMLInputElement): HTMLElement {
    const { root } = this.entries;
    const { name } = this.row.node;
    const count = root === null ? 0 : outline(root).filter(({ node }) => node.name === name).length;
    const others = root === null ? [] : namesIn(root).filter((one) => one !== name);
    const hint =
      count > 1
        ? t("It appears {count} times here: a new name changes all of them.", { count })
        : others.length > 0
          ? t("A new name, or the name of another event of the pattern.")
          : null;
    return h(
      "div",
      { class: "field" },
      h("label", { for: "primitive-name" }, t("Name")),
      input,
      h("datalist", { id: "primitive-names" }, ...others.map((value) => h("option", { value }))),
      hint === null ? null : h("span", { class: "hint" }, hint),
    );
  }

  private meaning(): HTMLElement[] {
    const { context, handlers } = this;
    const { name } = this.row.node;
    const entry = this.entries.primitives.get(name);
    if (entry === undefined)
      return [
        h(
          "div",
          {},
          button(t("Define {name}", { name }), {
            icon: "plus",
            kind: "button-sm button-primary",
            onClick: () => handlers.onPrimitive(name, emptyPrimitive()),
          }),
        ),
      ];
    let now = entry;
    const set = (change: Partial<PrimitiveEntry>): void => handlers.onPrimitive(name, (now = { ...now, ...change }));
    const pointer = `/primitives/${name}`;
    const where: ConditionsField = new ConditionsField({
      feed: context.feed,
      value: now.where,
      pointer: `${pointer}/where`,
      id: "primitive-where",
      texts: { none: t("Any event of the feed, unless you add conditions here."), some: t("Events that meet all of these.") },
      onChange: () => set({ where: where.value() }),
    });
    const regions = (["inside", "outside"] as const).map((key) => {
      const choice: RegionChoice = new RegionChoice({
        context,
        value: now[key],
        id: `primitive-${key}`,
        pointer: `${pointer}/${key}`,
        onChange: (isElsewhere) => {
          set({ [key]: choice.value() });
          handlers.onRegion(isElsewhere);
        },
      });
      this.regions.push({ key, choice });
      return more(key === "inside" ? t("Inside a region") : t("Outside a region"), now[key] !== null, choice.element);
    });
    return [where.element, this.prefixes(pointer, now.prefix, (prefix) => set({ prefix })), ...regions];
  }

  /** Groups of tags by a prefix of their code. */
  private prefixes(pointer: string, from: PrimitiveEntry["prefix"], onChange: (prefix: PrimitiveEntry["prefix"]) => void): HTMLElement {
    const columns = [
      "entity",
      ...Object.entries(columnsOf(this.context.feed)).flatMap(([name, type]) => (type === "string" ? [name] : [])),
    ];
    let rows = from;
    const list = h("div", { class: "stack" });
    const set = (next: PrimitiveEntry["prefix"], isOther: boolean): void => {
      onChange((rows = next));
      if (isOther) show();
    };
    const item = ([column, beginning]: PrimitiveEntry["prefix"][number], i: number): HTMLElement => {
      const text = h("input", {
        class: "input mono",
        value: beginning,
        placeholder: "urn:epc:id:sgtin:0614141.",
        "aria-label": t("Beginning"),
        autocomplete: "off",
      });
      text.addEventListener("input", () => set(rows.with(i, [rows[i]![0], text.value]), false));
      const choice = columnSelect(`prefix-column-${i}`, columns, column, (name) => set(rows.with(i, [name, rows[i]![1]]), false));
      return h(
        "div",
        { class: "entry-row prefix-row", "data-pointer": `${pointer}/prefix/${column}` },
        choice,
        h("span", { class: "faint" }, t("begins with")),
        text,
        iconButton(t("Remove this beginning"), "trash-2", {
          kind: "button-quiet button-sm",
          onClick: () => set(rows.toSpliced(i, 1), true),
        }),
      );
    };
    const show = (): void => {
      const free = columns.find((name) => !rows.some(([column]) => column === name));
      const add =
        free === undefined
          ? null
          : button(t("Add a group of tags"), { icon: "plus", kind: "button-sm", onClick: () => set([...rows, [free, ""]], true) });
      replace(list, ...rows.map(item), h("div", {}, add));
    };
    show();
    return list;
  }

  // ---- Operators and links

  private operator(op: Operator): HTMLElement {
    const select = h(
      "select",
      { class: "select", id: "pattern-operator" },
      ...Object.entries(OPERATOR_TEXTS).map(([name, text]) => h("option", { value: name, selected: name === op }, text)),
    );
    select.addEventListener("change", () => this.handlers.onOperator(select.value as Operator));
    return h("div", { class: "field" }, h("label", { for: "pattern-operator" }, t("Operator")), select);
  }

  private span(): HTMLElement | null {
    const { op, span } = this.row.node;
    if (op !== "interval" && never(op) === null) return null;
    const hint =
      op === "interval"
        ? t("From the first event to the last one.")
        : op === "before"
          ? t("It is reported immediately: what came before is known.")
          : t("It is reported when this time has passed.");
    const label =
      { interval: t("Within"), absence: t("Not for"), before: t("Not in the time before"), around: t("Not before and after, for") }[
        op as string
      ] ?? t("Not for");
    const field: DurationField = new DurationField({
      id: "pattern-span",
      label,
      time: this.context.feed.time,
      value: span,
      hint,
      onChange: () => this.handlers.onSpan(field.value()),
    });
    return field.element;
  }

  private bounds(): HTMLElement {
    const { link, parent, index } = this.row;
    const before = parent?.parts[index - 1];
    const [low, high] = link?.bounds ?? [null, null];
    const notify = (): void => {
      const [from, to] = [least.value(), most.value()];
      this.handlers.onBounds(from === null && to === null ? null : [from ?? 0, to]);
    };
    const field = (id: string, label: string, value: Span): DurationField =>
      new DurationField({
        id,
        label,
        time: this.context.feed.time,
        value: value === 0 ? null : value,
        placeholder: t("any"),
        onChange: notify,
      });
    const [least, most] = [field("pattern-least", t("At least"), low), field("pattern-most", t("At most"), high)];
    const title =
      before !== undefined && before.op === "primitive"
        ? t("How long after {name}?", { name: before.name })
        : t("How long after the step before?");
    return h(
      "fieldset",
      { class: "pattern-bounds" },
      h("legend", {}, title),
      h("div", { class: "pattern-pair" }, least.element, most.element),
    );
  }
}
