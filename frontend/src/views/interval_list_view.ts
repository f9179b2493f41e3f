/**
 * The timeline as a table: the same intervals, the same selection, for keyboard and screen reader.
 */

import { t } from "../lib/texts";
import type { Interval } from "../data/interval";
import { empty, h, replace } from "../lib/dom";
import { queryColour } from "../lib/colours";
import { formatClock, formatMoment, formatNumber, formatSpan, type TimeUnit, type Zone } from "../lib/time";
import { kindName } from "../lib/words";
import { revisionText } from "./interval_words";

const MOST_ROWS = 300;

export interface IntervalListHandlers {
  onHover: (interval: Interval | null) => void;
  onSelect: (interval: Interval) => void;
  queryName: (query: string) => string;
}

export class IntervalListView {
  readonly element = h("div", { class: "timeline-list", hidden: true });

  constructor(
    private readonly unit: TimeUnit,
    private readonly zone: Zone,
    private readonly handlers: IntervalListHandlers,
  ) {}

  /** Newest first; only what overlaps [t0, t1]. */
  show(intervals: readonly Interval[], t0: number, t1: number, selected: string | null): void {
    const inside = intervals.filter((one) => one.start <= t1 && (one.end ?? Infinity) >= t0).reverse();
    if (inside.length === 0) {
      replace(
        this.element,
        empty(
          "history",
          t("Nothing in this period"),
          t("Widen the time window, show more queries, or wait: answers appear here as they are found."),
        ),
      );
      return;
    }
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset["key"] : undefined;
    const rows = inside.slice(0, MOST_ROWS).map((interval) => this.row(interval, interval.key === selected));
    const note =
      inside.length > MOST_ROWS
        ? h(
            "p",
            { class: "hint", role: "note" },
            t("The newest {MOST_ROWS} of {length} are listed; zoom in to see the others.", {
              MOST_ROWS,
              length: formatNumber(inside.length),
            }),
          )
        : null;
    replace(
      this.element,
      h(
        "table",
        { class: "table table-tight" },
        h("caption", { class: "visually-hidden" }, t("Answers in the time window, newest first")),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...[t("Query"), t("What"), t("Who"), t("From"), t("Until"), t("Length")].map((text) => h("th", { scope: "col" }, text)),
          ),
        ),
        h("tbody", {}, ...rows),
      ),
      note,
    );
    if (focused !== undefined) this.element.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  private row(interval: Interval, isSelected: boolean): HTMLElement {
    const change = revisionText(interval, this.unit, this.zone);
    const span = interval.end === null ? t("still going") : formatSpan(interval.end - interval.start, this.unit);
    const length = interval.isMark ? "–" : span;
    return h(
      "tr",
      // Listens to pointer moves, not enters: rows that scroll under a
      // resting pointer are not hovered.
      {
        class: `clickable ${interval.isRetracted ? "withdrawn" : ""}`,
        "aria-selected": String(isSelected),
        onMousemove: () => this.handlers.onHover(interval),
        onMouseleave: () => this.handlers.onHover(null),
        onClick: () => this.handlers.onSelect(interval),
      },
      h(
        "td",
        {},
        h(
          "button",
          { type: "button", class: "query-name row", "data-key": interval.key, onFocus: () => this.handlers.onHover(interval) },
          h("span", { class: "swatch", vars: { "--swatch": queryColour(interval.query) } }),
          h("span", { class: "truncate" }, this.handlers.queryName(interval.query)),
        ),
      ),
      h(
        "td",
        {},
        kindName(interval.kind),
        change === null ? null : h("span", { class: "badge", title: change }, interval.isRetracted ? t("withdrawn") : t("revised")),
      ),
      h("td", {}, interval.entities.join(", ")),
      h("td", { class: "num" }, formatMoment(interval.start, this.unit, this.zone)),
      h("td", { class: "num" }, interval.isMark ? "" : interval.end === null ? "" : formatClock(interval.end, this.unit, this.zone)),
      h("td", { class: "num" }, length),
    );
  }
}
