/**
 * The partial matches of the selected entity: motion patterns that it has begun, with the next
 * step. Nothing is shown if there are none.
 */

import { t } from "../../lib/texts";
import { fromDocument } from "../../data/motion_data";
import { isHalfDone, missingSteps, progressAnswer, stateOf, type EntityProgress } from "../../data/motion_progress";
import { familyOf } from "../../lib/families";
import { timeWords, titleWords } from "../../data/motion_words";
import type { QueryRow } from "../../lib/shapes";
import { get, query as address } from "../../lib/api";
import { queryColour } from "../../lib/colours";
import { h, replace } from "../../lib/dom";
import { Latest } from "../../lib/latest";
import { formatClock } from "../../lib/time";
import { fail } from "../shell_view";
import type { LiveModel } from "./model";

/**
 * Each request costs the server work and is rate limited: a round of n patterns is
 * followed by n times this pause.
 */
const EACH_MS = 4000;
/** The pause after a round with a failed request. */
const PATIENCE_MS = 30_000;
const MOST_PATTERNS = 6;
const MOST_MISSING = 2;

export class HalfDone {
  readonly element = h("section", { class: "half-done", hidden: true, "aria-live": "polite" });
  private readonly question = new Latest<[entity: string]>((signal, entity) => this.round(signal, entity), fail);
  private readonly found = new Map<string, EntityProgress>();
  private entity: string | null = null;
  /**
   * The content shown: it is replaced only when it changes, so that reading
   * position and focus are kept.
   */
  private shown = "";

  constructor(
    private readonly model: LiveModel,
    private readonly onQuery: (query: QueryRow) => void,
  ) {}

  /** Requests the progress of `entity` until the next call; null: stops. */
  open(entity: string | null): void {
    if (entity === this.entity) return;
    this.close();
    this.entity = entity;
    this.later(0);
  }

  close(): void {
    this.question.drop();
    this.entity = null;
    this.found.clear();
    this.show();
  }

  private later(wait: number): void {
    if (this.entity !== null) this.question.after(wait, this.entity);
  }

  private patterns(): QueryRow[] {
    const hidden = new Set(this.model.state.hidden);
    return this.model.queries
      .filter((row) => row.enabled && row.stopped === null && !hidden.has(row.id))
      .filter((row) => familyOf(row.family)?.detail === "progress" && this.hasSteps(row))
      .slice(0, MOST_PATTERNS);
  }

  /** Patterns of distances only have no steps to complete. */
  private hasSteps(row: QueryRow): boolean {
    return fromDocument(row.specification, this.model.feed).steps.some((step) => step.sense !== "distance");
  }

  private async round(signal: AbortSignal, entity: string): Promise<void> {
    const patterns = document.hidden ? [] : this.patterns();
    let wait = EACH_MS * Math.max(1, patterns.length);
    for (const row of patterns) {
      try {
        const answer = await get(address(`queries/${row.id}/progress`, { entity }), progressAnswer, signal);
        const progress = answer.entities.find((one) => one.entity === entity);
        if (progress === undefined || !isHalfDone(progress, fromDocument(row.specification, this.model.feed).steps))
          this.found.delete(row.id);
        else this.found.set(row.id, progress);
      } catch (error) {
        if (signal.aborted) throw error;
        // This is optional: a busy server is asked later.
        this.found.delete(row.id);
        wait = PATIENCE_MS;
      }
      this.show();
    }
    this.later(wait);
  }

  private show(): void {
    const shown = JSON.stringify([...this.found]);
    if (shown === this.shown) return;
    this.shown = shown;
    const rows = this.patterns().flatMap((row) => {
      const progress = this.found.get(row.id);
      return progress === undefined ? [] : [this.row(row, progress)];
    });
    this.element.hidden = rows.length === 0;
    replace(this.element, h("h3", {}, t("Half-finished: {entity}", { entity: this.entity ?? "" })), h("ul", {}, ...rows));
  }

  private row(row: QueryRow, progress: EntityProgress): HTMLElement {
    const { feed, zone } = this.model;
    const name = h("button", { type: "button", class: "query-name", title: row.sentence, onClick: () => this.onQuery(row) }, row.name);
    const dots = progress.steps.map((step) => h("i", { class: step === null ? "" : "done" }));
    const times = progress.steps.flatMap((step, i) =>
      step === null ? [] : [t("{step} at {moment}", { step: i + 1, moment: formatClock(step.t, feed.time, zone) })],
    );
    return h(
      "li",
      {},
      h("div", { class: "row" }, h("span", { class: "swatch", vars: { "--swatch": queryColour(row.id) } }), name),
      h(
        "div",
        { class: "row small" },
        h("span", { class: "progress-dots", "aria-hidden": "true" }, ...dots),
        h("strong", {}, stateOf(progress)),
      ),
      h("p", { class: "small faint num" }, t("Done: {join}", { join: times.join(", ") })),
      h("p", { class: "small muted" }, this.next(row, progress)),
    );
  }

  /** "Next: inside Bank 3, after the step before." */
  private next(row: QueryRow, progress: EntityProgress): string {
    const { feed } = this.model;
    const { steps } = fromDocument(row.specification, feed);
    const missing = missingSteps(progress);
    const isInOrder = missing[0] === progress.done;
    const shown = missing.slice(0, isInOrder ? 1 : MOST_MISSING);
    const words = shown.flatMap((i) => {
      const step = steps[i];
      return step === undefined ? [] : [`${lowered(titleWords(step, feed))}, ${timeWords(steps, i, feed.time)}`];
    });
    const rest = isInOrder || missing.length === shown.length ? "" : t("; and {value} more", { value: missing.length - shown.length });
    return `${isInOrder ? t("Next") : t("Still missing")}: ${words.join("; ")}${rest}`;
  }
}

function lowered(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
