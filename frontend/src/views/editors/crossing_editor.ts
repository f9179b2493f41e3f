/**
 * The editor of `border` and `transition`: a region or ranges of values, conditions,
 * kinds of events, and options.
 */

import { h, replace } from "../../lib/dom";
import { numericColumns } from "../../lib/columns";
import {
  FIRST_POLICIES,
  fromSpecification,
  hasOptions,
  kindsOf,
  faultInForm,
  toSpecification,
  TRANSITIONS,
  type CrossingEntries,
  type FirstPolicy,
  type TransitionKind,
} from "../../data/query_form_data";
import type { Fault } from "../../lib/api";
import { columnSelect, ConditionsField } from "../query_form/conditions_field";
import { DurationField } from "../query_form/duration_field";
import { more, section } from "../query_form/section";
import type { EditorContext, FamilyEditor, OpenEditor } from "./editor";
import { WatchedField } from "./parts/watched_field";
import { t } from "../../lib/texts";

const SENTENCES: Record<TransitionKind, [string, string]> = {
  passed: [t("Passes through"), t("enters, and leaves again in time")],
  stayed_in: [t("Stays in"), t("enters, and has not left when the time is up")],
  returned: [t("Comes back"), t("leaves, and enters again in time")],
  stayed_out: [t("Stays out"), t("leaves, and has not come back when the time is up")],
};
const FIRST_TEXTS: Record<FirstPolicy, string> = { ignore: t("does not count as entering"), enter: t("counts as entering") };

export const open: OpenEditor = (document, context) => new CrossingEditor(document, context);

class CrossingEditor implements FamilyEditor {
  readonly element = h("div");
  readonly stage = null;
  private readonly entries: CrossingEntries;
  private readonly regionOptions = h("div", { class: "stack" });

  constructor(
    document: Record<string, unknown>,
    private readonly context: EditorContext,
  ) {
    const { feed } = context;
    this.entries = fromSpecification(document, feed.time);
    const watched = new WatchedField(this.entries, context, () => this.placeChanged());
    replace(
      this.element,
      section(t("Where?"), watched.element),
      this.entries.family === "transition" ? this.transitions() : null,
      this.conditions(),
      this.options(),
    );
    this.showOptions();
  }

  specification(): Record<string, unknown> {
    return toSpecification(this.entries);
  }

  kinds(): string[] {
    return kindsOf(this.entries);
  }

  explained(fault: Fault): Fault {
    return faultInForm(fault, this.entries);
  }

  private placeChanged(): void {
    this.showOptions();
    this.context.onChange();
  }

  /** Buffer and accuracy apply only to regions. */
  private showOptions(): void {
    this.regionOptions.hidden = this.entries.place !== "region";
  }

  private set(change: Partial<CrossingEntries>): void {
    Object.assign(this.entries, change);
    this.context.onChange();
  }

  // ---- Conditions and kinds of events

  private transitions(): HTMLElement {
    const choice = (kind: TransitionKind): HTMLElement => {
      const box = h("input", { type: "checkbox", id: `type-${kind}`, checked: this.entries.types.includes(kind) });
      box.addEventListener("change", () =>
        this.set({ types: TRANSITIONS.filter((one) => (one === kind ? box.checked : this.entries.types.includes(one))) }),
      );
      return h(
        "label",
        { class: "choice" },
        box,
        h("span", { class: "choice-text" }, h("strong", {}, SENTENCES[kind][0]), h("span", { class: "hint" }, SENTENCES[kind][1])),
      );
    };
    const within = new DurationField({
      id: "within",
      label: t("The time it has"),
      time: this.context.feed.time,
      value: this.entries.within,
      pointer: "/within",
      onChange: () => this.set({ within: within.value() }),
    });
    return section(
      t("What counts?"),
      h(
        "div",
        { class: "choices", "data-pointer": "/types", role: "group", "aria-label": t("Kinds of answers") },
        ...TRANSITIONS.map(choice),
      ),
      within.element,
    );
  }

  private conditions(): HTMLElement {
    const where = new ConditionsField({
      feed: this.context.feed,
      value: this.entries.where,
      pointer: "/where",
      id: "where",
      onChange: () => this.set({ where: where.value() }),
    });
    return section(t("Which events?"), where.element);
  }

  // ---- Options

  private options(): HTMLElement {
    const { entries } = this;
    replace(this.regionOptions, entries.family === "border" ? this.segments() : null, this.hysteresis(), this.accuracy());
    return h(
      "section",
      { class: "form-section" },
      more(t("More: jitter, accuracy, first report"), hasOptions(entries), this.regionOptions, this.first(), this.dwell(), this.during()),
    );
  }

  private segments(): HTMLElement {
    const box = h("input", {
      type: "checkbox",
      id: "segments",
      checked: this.entries.segments,
      onChange: (): void => this.set({ segments: box.checked }),
    });
    return h(
      "label",
      { class: "check", "data-pointer": "/segments" },
      box,
      h("span", {}, t("Also count a straight move that only touches or crosses the region between two positions")),
    );
  }

  private hysteresis(): HTMLElement {
    const unit = this.context.feed.crs === "geographic" ? t("metres") : t("units of the plan");
    const input = h("input", {
      class: "input num",
      id: "hysteresis",
      inputmode: "decimal",
      placeholder: t("off"),
      value: this.entries.hysteresis,
      autocomplete: "off",
    });
    input.addEventListener("input", () => this.set({ hysteresis: input.value }));
    return field(
      "/hysteresis",
      "hysteresis",
      t("Buffer against jitter"),
      h("div", { class: "within" }, input, h("span", { class: "unit" }, unit)),
      t("It enters at the region itself, and has left only when it is farther away than this."),
    );
  }

  private accuracy(): HTMLElement {
    const numeric = numericColumns(this.context.feed).filter((name) => name !== "x" && name !== "y");
    const select = columnSelect("accuracy", ["", ...numeric], this.entries.accuracy, (accuracy) => this.set({ accuracy }));
    select.options[0]!.textContent = t("not used");
    return field(
      "/accuracy",
      "accuracy",
      t("Accuracy of a position"),
      select,
      t("A column: it never enters a region smaller than that, and never leaves while its circle of uncertainty overlaps the region."),
    );
  }

  private first(): HTMLElement {
    const buttons = FIRST_POLICIES.map((policy) => {
      const element = h("button", { type: "button", "aria-pressed": String(policy === this.entries.first) }, FIRST_TEXTS[policy]);
      element.addEventListener("click", () => {
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === element));
        this.set({ first: policy });
      });
      return element;
    });
    return h(
      "div",
      { class: "field", "data-pointer": "/first" },
      h("span", { class: "label" }, t("First report already inside")),
      h("div", { class: "segmented", role: "group", "aria-label": t("First report already inside") }, ...buttons),
      h("span", { class: "hint" }, t("Also entities that were inside before their first report.")),
    );
  }

  private dwell(): HTMLElement {
    const dwell = new DurationField({
      id: "dwell",
      label: t("Least stay"),
      time: this.context.feed.time,
      value: this.entries.dwell,
      pointer: "/dwell",
      placeholder: t("off"),
      hint: t("A visit counts only when it lasts longer than this, and is reported when the time is up."),
      onChange: () => this.set({ dwell: dwell.value() }),
    });
    return dwell.element;
  }

  private during(): HTMLElement {
    const texts = {
      none: t("Every report inside counts, regardless of its attributes."),
      some: t("Inside means: in the region, and the report meets all of these conditions."),
    };
    const conditions = new ConditionsField({
      feed: this.context.feed,
      value: this.entries.while,
      pointer: "/while",
      id: "while",
      texts,
      onChange: () => this.set({ while: conditions.value() }),
    });
    return h("div", { class: "field" }, h("span", { class: "label" }, t("Inside only while")), conditions.element);
  }
}

function field(pointer: string, id: string, label: string, control: HTMLElement, hint: string): HTMLElement {
  return h("div", { class: "field", "data-pointer": pointer }, h("label", { for: id }, label), control, h("span", { class: "hint" }, hint));
}
