/**
 * Current matches and partial matches, and the matches of the preview: each with
 * the witness of every step.
 */

import { fromDocument } from "../../../data/motion_data";
import { ofDetection, progressAnswer, progressWords, stateOf, type EntityProgress, type Witness } from "../../../data/motion_progress";
import type { Detection } from "../../../lib/shapes";
import { post, reason } from "../../../lib/api";
import { button, h, icon, replace } from "../../../lib/dom";
import { Latest } from "../../../lib/latest";
import { distanceWords } from "../../../lib/units";
import { formatClock, formatMoment, formatNumber } from "../../../lib/time";
import type { EditorContext } from "../editor";
import { t } from "../../../lib/texts";

const SHOWN = 30;

export interface ProgressHandlers {
  specification: () => Record<string, unknown>;
  /** The witnesses of the selected row, by step; null without a selection. */
  onShow: (steps: readonly (Witness | null)[] | null) => void;
}

export class ProgressView {
  readonly element: HTMLElement;
  private readonly now = h("div", { class: "stack", "aria-live": "polite" });
  private readonly before = h("div", { class: "stack" });
  private readonly look = button(t("Look now"), { icon: "scan-search", kind: "button-sm", id: "look-now", onClick: () => this.ask() });
  private readonly question = new Latest(
    (signal) => this.asked(signal),
    (error) => replace(this.now, h("p", { class: "small muted" }, reason(error))),
  );
  private chosen: HTMLElement | null = null;

  constructor(
    private readonly context: EditorContext,
    private readonly handlers: ProgressHandlers,
  ) {
    replace(
      this.now,
      h("p", { class: "small muted" }, t("The steps that each entity has done by the feed's newest time, half-finished patterns too.")),
    );
    this.element = h(
      "section",
      { class: "form-section" },
      h("div", { class: "row spread" }, h("h2", {}, t("Who matches now")), this.look),
      this.now,
      this.before,
    );
  }

  /** The pattern changed: the result shown is out of date. */
  changed(): void {
    for (const part of [this.now, this.before]) part.classList.toggle("stale", part.querySelector(".progress-row") !== null);
    this.choose(null, null);
  }

  answers(rows: readonly Detection[], of: number): void {
    this.before.classList.remove("stale");
    const newest = rows.slice(-SHOWN).reverse();
    const clock = (at: number): string => formatClock(at, this.context.feed.time, this.context.timeZone);
    const list = newest.map((row) =>
      this.row(ofDetection(row, of), `${clock(row.start)}${row.end === null ? t(", still") : t(" to {end}", { end: clock(row.end) })}`),
    );
    replace(
      this.before,
      h(
        "h3",
        {},
        rows.length === 0
          ? t("The preview found no match")
          : rows.length > SHOWN
            ? t("Matches of the preview, the newest {count}", { count: SHOWN })
            : t("Matches of the preview"),
      ),
      h("ul", { class: "progress-list" }, ...list),
    );
  }

  private ask(): Promise<void> {
    return this.question.now();
  }

  private async asked(signal: AbortSignal): Promise<void> {
    const { feed, timeZone } = this.context;
    const specification = this.handlers.specification();
    const answer = await post("queries/progress", { feed: feed.name, specification }, progressAnswer, signal);
    const isMeasured = fromDocument(specification, feed).steps.every((step) => step.sense === "distance");
    this.now.classList.remove("stale");
    const matching = answer.entities.filter((row) => row.matches).length;
    const when =
      answer.at === null
        ? t("The feed has no events yet.")
        : `${formatMoment(answer.at, feed.time, timeZone)}: ${progressWords(answer.total, matching, isMeasured)}`;
    replace(
      this.now,
      h("p", { class: "small" }, when),
      h("ul", { class: "progress-list" }, ...answer.entities.slice(0, SHOWN).map((row) => this.row(row, stateOf(row)))),
    );
    if (answer.total > SHOWN)
      this.now.append(h("p", { class: "small faint" }, t("and {total} more", { total: formatNumber(answer.total - SHOWN) })));
  }

  private row(row: EntityProgress, text: string): HTMLElement {
    const dots = row.steps.map((step, i) =>
      h("i", {
        class: step === null ? "" : "done",
        title: step === null ? t("Step {step} is not done", { step: i + 1 }) : t("Step {step}", { step: i + 1 }),
      }),
    );
    const score = row.score === null ? null : h("span", { class: "num" }, distanceWords(row.score, this.context.feed.crs === "geographic"));
    const open = h(
      "button",
      { type: "button", class: "progress-row", "aria-pressed": "false" },
      h(
        "span",
        { class: "row" },
        row.matches ? icon("circle-check", "good") : icon("timer"),
        h("strong", { class: "truncate" }, row.entity),
      ),
      h("span", { class: "progress-dots", "aria-hidden": "true" }, ...dots),
      h("span", { class: "small muted" }, text),
      score,
    );
    const detail = h("ol", { class: "progress-steps small", hidden: true }, ...row.steps.map((step, i) => this.witness(step, i)));
    const item = h("li", {}, open, detail);
    open.addEventListener("click", () => this.choose(this.chosen === item ? null : item, row.steps));
    return item;
  }

  private witness(step: Witness | null, i: number): HTMLElement {
    const { feed, timeZone } = this.context;
    if (step === null) return h("li", { class: "faint" }, t("{i}. not yet", { i: i + 1 }));
    const distance =
      step.distance === null ? "" : t(", {distance} away", { distance: distanceWords(step.distance, feed.crs === "geographic") });
    return h("li", {}, `${i + 1}. ${formatMoment(step.t, feed.time, timeZone)}${distance}`);
  }

  private choose(item: HTMLElement | null, steps: readonly (Witness | null)[] | null): void {
    for (const one of [this.chosen, item]) {
      if (one === null) continue;
      const isOpen = one === item;
      one.querySelector(".progress-row")?.setAttribute("aria-pressed", String(isOpen));
      one.querySelector<HTMLElement>(".progress-steps")!.hidden = !isOpen;
    }
    if (item === null && this.chosen === null) return;
    this.chosen = item;
    this.handlers.onShow(item === null ? null : steps);
  }
}
