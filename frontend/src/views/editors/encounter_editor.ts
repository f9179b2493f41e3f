/**
 * The editor of encounters: the two roles, how near and how long, where, and how positions between
 * two reports are computed.
 */

import { fromDocument, POSITIONS, toDocument, faultInForm, type EncounterEntries, type Position } from "../../data/encounter_data";
import type { Fault } from "../../lib/api";
import { h, replace } from "../../lib/dom";
import { ConditionsField } from "../query_form/conditions_field";
import { DurationField } from "../query_form/duration_field";
import { RegionChoice } from "../query_form/region_choice";
import { more, section } from "../query_form/section";
import type { EditorContext, FamilyEditor, OpenEditor } from "./editor";
import { t } from "../../lib/texts";

const POSITION_TEXTS: Record<Position, [string, string]> = {
  last: [t("Where it last reported"), t("known immediately")],
  interpolated: [t("On the straight line between two reports"), t("known after the next report")],
};

export const open: OpenEditor = (document, context) => new EncounterEditor(document, context);

class EncounterEditor implements FamilyEditor {
  readonly element = h("div");
  readonly stage = null;
  private readonly entries: EncounterEntries;
  private readonly roles = h("div", { class: "stack" });
  private readonly region: RegionChoice;

  constructor(
    document: Record<string, unknown>,
    private readonly context: EditorContext,
  ) {
    this.entries = fromDocument(document, context.feed);
    const { feed } = context;
    this.region = this.choice();
    const where: ConditionsField = new ConditionsField({
      feed,
      value: this.entries.where,
      pointer: "/where",
      id: "where",
      texts: {
        none: t("Every report has a place."),
        some: t("Only reports that meet all of these count; the others are ignored."),
      },
      onChange: () => this.set({ where: where.value() }),
    });
    this.element.append(
      section(t("Who meets whom?"), this.kindsOfTwo(), this.roles),
      section(t("How near, and how long?"), this.distance(), this.duration("lasting", t("For this long, or longer"), t("any time"))),
      section(
        t("Where is each?"),
        this.position(),
        h("div", { class: "pair" }, this.duration("every", t("Look every")), this.duration("gap", t("A report counts for"))),
      ),
      h(
        "section",
        { class: "form-section" },
        more(t("Only inside a region"), this.entries.inside !== null, this.region.element),
        more(t("Which reports count"), this.entries.where.length > 0, where.element),
      ),
    );
    this.showRoles();
    this.showMap(true);
  }

  specification(): Record<string, unknown> {
    return toDocument(this.entries);
  }

  kinds(): string[] {
    return ["met"];
  }

  explained(fault: Fault): Fault {
    return faultInForm(fault);
  }

  private set(change: Partial<EncounterEntries>): void {
    Object.assign(this.entries, change);
    this.context.onChange();
  }

  // ---- Who

  private kindsOfTwo(): HTMLElement {
    const buttons = (
      [
        [true, t("Any two of a kind")],
        [false, t("One of each of two kinds")],
      ] as const
    ).map(([isAlike, text]) => {
      const element = h("button", { type: "button", "aria-pressed": String(isAlike === this.entries.isAlike) }, text);
      element.addEventListener("click", () => {
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === element));
        // The conditions on both become the initial conditions on the second kind.
        this.set(isAlike ? { isAlike } : { isAlike, b: this.entries.isAlike ? [...this.entries.a] : this.entries.b });
        this.showRoles();
      });
      return element;
    });
    return h("div", { class: "segmented", role: "group", "aria-label": t("Of one kind or of two") }, ...buttons);
  }

  private showRoles(): void {
    const { isAlike } = this.entries;
    replace(
      this.roles,
      ...(isAlike
        ? [this.role("a", t("Both"), t("Any two may meet."))]
        : [this.role("a", t("One"), t("Anything may be this one.")), this.role("b", t("The other"), t("Anything may be the other."))]),
    );
  }

  private role(role: "a" | "b", title: string, none: string): HTMLElement {
    const field: ConditionsField = new ConditionsField({
      feed: this.context.feed,
      value: this.entries[role],
      pointer: `/${role}/where`,
      id: `role-${role}`,
      texts: { none, some: t("Its last report meets all of these.") },
      onChange: () => this.set({ [role]: field.value() }),
    });
    return h(
      "div",
      { class: "field", "data-pointer": `/${role}`, role: "group", "aria-label": title },
      h("span", { class: "label" }, title),
      field.element,
    );
  }

  // ---- How near, when, where

  private distance(): HTMLElement {
    const unit = this.context.feed.crs === "geographic" ? t("metres") : t("units of the plan");
    const input = h("input", {
      class: "input num",
      id: "encounter-distance",
      inputmode: "decimal",
      value: this.entries.distance,
      autocomplete: "off",
    });
    input.addEventListener("input", () => this.set({ distance: input.value }));
    return h(
      "div",
      { class: "field", "data-pointer": "/distance" },
      h("label", { for: "encounter-distance" }, t("At most this far apart")),
      h("div", { class: "within" }, input, h("span", { class: "unit" }, unit)),
    );
  }

  private duration(key: "lasting" | "every" | "gap", label: string, placeholder = ""): HTMLElement {
    const field: DurationField = new DurationField({
      id: `encounter-${key}`,
      label,
      time: this.context.feed.time,
      value: this.entries[key],
      pointer: `/${key}`,
      placeholder,
      onChange: () => this.set({ [key]: field.value() }),
    });
    return field.element;
  }

  private position(): HTMLElement {
    const choice = (position: Position): HTMLElement => {
      const [text, hint] = POSITION_TEXTS[position];
      const input = h("input", {
        type: "radio",
        name: "encounter-position",
        value: position,
        checked: position === this.entries.position,
        onChange: () => this.set({ position }),
      });
      return h(
        "label",
        { class: "choice" },
        input,
        h("span", { class: "choice-text" }, h("strong", {}, text), h("span", { class: "hint" }, hint)),
      );
    };
    return h(
      "div",
      { class: "choices", role: "radiogroup", "aria-label": t("Where each is"), "data-pointer": "/position" },
      ...POSITIONS.map(choice),
    );
  }

  private choice(): RegionChoice {
    const choice: RegionChoice = new RegionChoice({
      context: this.context,
      value: this.entries.inside,
      id: "encounter-inside",
      pointer: "/inside",
      onChange: (isElsewhere) => {
        this.entries.inside = choice.value();
        this.showMap(isElsewhere);
        this.context.onChange();
      },
    });
    return choice;
  }

  private showMap(fit: boolean): void {
    this.context.map.show(
      [this.region.shape(true)].flatMap((shape) => shape ?? []),
      fit,
    );
    this.region.draw(false);
  }
}
