/**
 * The editor of motion patterns: a list of steps, how scores decide, when it is
 * evaluated, and current matches.
 */

import { isOrdered, isScored, fromDocument, SCORINGS, toDocument, type MotionEntries, type Scoring } from "../../data/motion_data";
import { faultWords } from "../../data/motion_words";
import type { Witness } from "../../data/motion_progress";
import { inSentence } from "../../lib/words";
import type { Detection } from "../../lib/shapes";
import type { Fault } from "../../lib/api";
import { h } from "../../lib/dom";
import { formatClock } from "../../lib/time";
import { ConditionsField } from "../query_form/conditions_field";
import { DurationField } from "../query_form/duration_field";
import { section } from "../query_form/section";
import type { EditorContext, FamilyEditor, MapShape, OpenEditor } from "./editor";
import { ProgressView } from "./motion/progress_view";
import { TrackView } from "./motion/track_view";
import { t } from "../../lib/texts";

const SCORING_TEXTS: Record<Scoring, string> = {
  top: t("the closest …"),
  min: t("the closest of all"),
  "<=": t("all closer than …"),
  bottom: t("the farthest …"),
  max: t("the farthest of all"),
  ">=": t("all farther than …"),
};

export const open: OpenEditor = (document, context) => new MotionEditor(document, context);

class MotionEditor implements FamilyEditor {
  readonly element = h("div");
  readonly stage = null;
  private readonly entries: MotionEntries;
  private readonly track: TrackView;
  private readonly progress: ProgressView;
  private readonly scores: HTMLElement;
  private readonly horizon: DurationField;
  private witnesses: readonly (Witness | null)[] | null = null;

  constructor(
    document: Record<string, unknown>,
    private readonly context: EditorContext,
  ) {
    this.entries = fromDocument(document, context.feed);
    this.track = new TrackView(this.entries, context, { onChange: () => this.changed(), onShapes: (fit) => this.showShapes(fit) });
    this.progress = new ProgressView(context, { specification: () => this.specification(), onShow: (steps) => this.showWitnesses(steps) });
    this.scores = section(t("Which of them?"), this.scoring());
    const { time } = context.feed;
    const every = new DurationField({
      id: "motion-every",
      label: t("Look again every"),
      time,
      value: this.entries.every,
      pointer: "/every",
      onChange: () => this.set({ every: every.value() }),
    });
    this.horizon = new DurationField({
      id: "motion-horizon",
      label: t("All steps in order within"),
      time,
      value: this.entries.horizon,
      pointer: "/horizon",
      onChange: () => this.set({ horizon: this.horizon.value() }),
    });
    const where: ConditionsField = new ConditionsField({
      feed: context.feed,
      value: this.entries.where,
      pointer: "/where",
      id: "where",
      onChange: () => this.set({ where: where.value() }),
    });
    this.element.append(
      section(t("Which steps make the pattern?"), this.track.element),
      this.scores,
      section(t("When?"), h("div", { class: "motion-times" }, every.element, this.horizon.element)),
      section(t("Which events?"), where.element),
      this.progress.element,
    );
    this.showParts();
    this.showShapes(true);
  }

  specification(): Record<string, unknown> {
    return toDocument(this.entries);
  }

  kinds(): string[] {
    return ["match"];
  }

  answers(rows: readonly Detection[]): void {
    this.progress.answers(rows, this.entries.steps.length);
  }

  explained(fault: Fault): Fault {
    return { ...fault, message: faultWords(fault, this.entries.steps) };
  }

  private set(change: Partial<MotionEntries>): void {
    Object.assign(this.entries, change);
    this.changed();
  }

  private changed(): void {
    this.showParts();
    this.progress.changed();
    this.showShapes(false);
    this.context.onChange();
  }

  private showParts(): void {
    this.scores.hidden = !isScored(this.entries);
    this.horizon.element.hidden = !isOrdered(this.entries);
  }

  // ---- The map

  private showShapes(fit: boolean): void {
    const { feed, timeZone } = this.context;
    const points = (this.witnesses ?? []).flatMap((step, i): MapShape[] =>
      step === null
        ? []
        : [
            {
              id: `witness-${i}`,
              geometry: { type: "Point", coordinates: [step.x, step.y] },
              label: `${i + 1} · ${formatClock(step.t, feed.time, timeZone)}`,
              active: true,
            },
          ],
    );
    this.context.map.show([...this.track.shapes(), ...points], fit);
  }

  private showWitnesses(steps: readonly (Witness | null)[] | null): void {
    this.witnesses = steps;
    this.showShapes(steps !== null);
  }

  // ---- Scores

  private scoring(): HTMLElement {
    const { entries } = this;
    const k = this.amount("motion-k", t("How many"), entries.k, "/theta/k", (text) => this.set({ k: text }));
    const value = this.amount(
      "motion-value",
      this.context.feed.crs === "geographic" ? t("Metres") : t("Units of the plan"),
      entries.value,
      "/theta/value",
      (text) => this.set({ value: text }),
    );
    const select = h(
      "select",
      { class: "select", id: "motion-scoring", "aria-label": t("Which of them") },
      ...SCORINGS.map((one) => h("option", { value: one, selected: one === entries.scoring }, SCORING_TEXTS[one])),
    );
    const show = (): void => {
      k.hidden = entries.scoring !== "top" && entries.scoring !== "bottom";
      value.hidden = entries.scoring !== "<=" && entries.scoring !== ">=";
    };
    select.addEventListener("change", () => {
      this.set({ scoring: select.value as Scoring });
      show();
    });
    show();
    return h(
      "div",
      { class: "stack", "data-pointer": "/theta" },
      h("p", { class: "small muted" }, t("Of those that do all other steps, by the sum of their distances:")),
      h("div", { class: "motion-scoring" }, select, k, value),
    );
  }

  private amount(id: string, name: string, value: string, pointer: string, onChange: (text: string) => void): HTMLElement {
    const input = h("input", { class: "input num", id, value, "aria-label": name, inputmode: "decimal", autocomplete: "off" });
    input.addEventListener("input", () => onChange(input.value));
    return h(
      "div",
      { class: "field", "data-pointer": pointer },
      h("div", { class: "row" }, input, h("span", { class: "unit" }, inSentence(name))),
    );
  }
}
