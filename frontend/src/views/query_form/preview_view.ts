/**
 * The answers that a query would have given recently, on a small timeline, as a list and,
 * through the caller, on the map.
 */

import { IntervalsData, type Interval } from "../../data/intervals_data";
import type { PeriodRequest } from "../../data/period";
import { type Detection, type Feed } from "../../lib/shapes";
import { ApiError, post, reason } from "../../lib/api";
import { PREVIEW, preview } from "../../lib/answers";
import { awaiting, button, empty, h, icon, replace } from "../../lib/dom";
import { Latest } from "../../lib/latest";
import { formatNumber, formatSpan, type Zone } from "../../lib/time";
import { inSentence, kindName } from "../../lib/words";
import { headline } from "../drawer_view";
import { IntervalListView } from "../interval_list_view";
import { PeriodField, whichPeriod } from "../period_field";
import { TimelineView } from "../timeline_view";
import { formatTenths, t, tn } from "../../lib/texts";

const DAY = 24 * 60;
const MINUTES = [10, 30, 60, 6 * 60, DAY, 7 * DAY, 30 * DAY, 366 * DAY];

export interface PreviewHandlers {
  specification: () => Record<string, unknown>;
  /** All answers of the period, once. */
  onAnswers: (rows: Detection[], period: PeriodRequest) => void;
  /** The hovered or selected answer (the preview ends at `now`), or all of them. */
  onShow: (rows: Detection[], what: "all" | "pointed at" | "chosen", now: number) => void;
  onFaults: (error: unknown) => void;
}

export class PreviewView {
  readonly element: HTMLElement;
  private readonly result = h("div", { class: "preview-result" });
  private readonly news = h("p", { class: "visually-hidden", role: "status" });
  private readonly run = button(t("Preview"), {
    icon: "scan-search",
    kind: "button-primary",
    id: "run-preview",
    onClick: () => this.ask(),
  });
  private readonly period: PeriodField;
  private readonly question = new Latest(
    (signal) => this.asked(signal),
    (error) => this.failed(error),
  );
  private isStale = false;

  constructor(
    private readonly feed: Feed,
    private readonly zone: Zone,
    private readonly handlers: PreviewHandlers,
  ) {
    this.period = new PeriodField({ feed, zone, minutes: MINUTES, ofHistory: DAY, prefix: "preview" });
    this.element = h(
      "section",
      { class: "panel preview", "aria-label": t("Preview") },
      h("div", { class: "panel-head" }, h("h2", {}, t("Preview")), this.period.select, this.run),
      this.period.ends,
      this.news,
      this.result,
    );
    replace(
      this.result,
      empty(
        "scan-search",
        t("See it before you save it"),
        t("The preview runs this query over a part of the feed’s history, with the same engine that runs it live."),
      ),
    );
  }

  /** The entries changed: the answers shown are out of date. */
  changed(): void {
    if (this.isStale || this.result.querySelector(".preview-summary") === null) return;
    this.isStale = true;
    this.result.classList.add("stale");
    this.result.prepend(h("p", { class: "notice" }, icon("refresh-cw"), h("span", {}, t("The query has changed since. Preview again."))));
  }

  private async ask(): Promise<void> {
    this.result.classList.remove("stale");
    this.news.textContent = "";
    replace(this.result, awaiting());
    await this.question.now();
    this.news.textContent = this.result.querySelector(".preview-summary p, .empty")?.textContent ?? "";
  }

  private async asked(signal: AbortSignal): Promise<void> {
    const period = this.period.value();
    if (period === null) replace(this.result, whichPeriod());
    else
      this.show(
        await post("queries/preview", { feed: this.feed.name, specification: this.handlers.specification(), ...period }, preview, signal),
        period,
      );
  }

  private failed(error: unknown): void {
    const isRefused = error instanceof ApiError && error.status === 400;
    // A fault of the whole query, such as too many answers, has no field that could be marked.
    const isOfFields = isRefused && error.faults.some(({ pointer }) => pointer.replace(/^\/specification$/, "") !== "");
    replace(
      this.result,
      isOfFields
        ? empty("circle-alert", t("No preview"), t("The query is not complete or not right yet: see the marked fields."))
        : isRefused
          ? empty(
              "circle-alert",
              t("The query would be stopped"),
              reason(error),
              h(
                "p",
                { class: "small muted" },
                t("Make it narrower: a smaller region, distance or time, or conditions that fewer events meet."),
              ),
            )
          : empty("circle-alert", t("No preview"), reason(error)),
    );
    if (isRefused) this.handlers.onFaults(error);
  }

  private show(answer: ReturnType<typeof preview>, period: PeriodRequest): void {
    this.isStale = false;
    const rows = answer.answers;
    this.handlers.onAnswers(rows, period);
    if (answer.rows > 0) this.period.suggest(answer);
    const summary = this.summary(answer, rows);
    if (rows.length === 0) {
      replace(
        this.result,
        summary,
        answer.rows === 0
          ? empty(
              "radio",
              t("No rows in this period"),
              t("The feed received no rows that the query evaluates. Choose another period, or send rows first."),
              this.tryLonger(),
            )
          : empty("history", t("No answer in this period"), whyNone(answer), answer.truncated ? null : this.tryLonger()),
      );
      this.handlers.onShow([], "all", answer.to);
      return;
    }
    const data = new IntervalsData();
    for (const row of rows) data.put(row);
    const byId = new Map(rows.map((row) => [row.id, row]));
    let chosen: Interval | null = null;
    const showOnMap = (interval: Interval | null): void =>
      this.handlers.onShow(
        interval === null ? rows : interval.detections.flatMap((id) => byId.get(id) ?? []),
        interval === null ? "all" : interval === chosen ? "chosen" : "pointed at",
        answer.to,
      );
    const choose = (interval: Interval | null): void => {
      timeline.setSelected((chosen = interval));
      showOnMap(chosen);
      showList();
    };
    const list = new IntervalListView(this.feed.time, this.zone, {
      onHover: (interval) => showOnMap(interval ?? chosen),
      onSelect: choose,
      queryName: () => t("This query"),
    });
    list.element.hidden = false;
    const showList = (): void => list.show(data.of(PREVIEW).intervals, timeline.t0, timeline.t1, chosen?.key ?? null);
    const setWindow = (t0: number, t1: number): void => {
      timeline.setWindow(t0, t1, answer.to);
      showList();
    };
    const wrap = h("div", { class: "preview-timeline" });
    const asList = h("details", { class: "preview-list" }, h("summary", {}, t("As a list")), list.element);
    asList.addEventListener("toggle", () => asList.scrollIntoView({ block: "nearest" }));
    replace(this.result, summary, wrap, asList);
    const timeline = new TimelineView(wrap, this.feed.time, this.zone, {
      onHover: (interval) => showOnMap(interval ?? chosen),
      onSelect: choose,
      onRange: () => timeline.setRange(null),
      onPan: (dt) => setWindow(timeline.t0 + dt, timeline.t1 + dt),
      onZoom: (factor, about) => setWindow(about - (about - timeline.t0) * factor, about + (timeline.t1 - about) * factor),
      describe: headline,
    });
    const pad = (answer.to - answer.from) * 0.02;
    timeline.asPicture();
    timeline.setRows([data.of(PREVIEW)], () => t("This query"), null);
    setWindow(answer.from - pad, answer.to + pad);
    showOnMap(null);
  }

  private tryLonger(): HTMLElement | null {
    return this.period.longer(
      (period) => t("Preview the {period}", { period }),
      () => this.ask(),
    );
  }

  private summary(answer: ReturnType<typeof preview>, rows: Detection[]): HTMLElement {
    const counts = new Map<string, number>();
    for (const row of rows) counts.set(row.kind, (counts.get(row.kind) ?? 0) + 1);
    // Those of the answers shown say nothing about all.
    const who = rows.length < answer.total ? 0 : new Set(rows.flatMap((row) => row.entities)).size;
    const badges = [...counts].map(([kind, count]) =>
      h("span", { class: "badge badge-accent" }, `${formatNumber(count)} × ${inSentence(kindName(kind))}`),
    );
    const entities = who === 0 ? "" : tn(" for 1 entity", " for {count} entities", who);
    const span = formatSpan(answer.to - answer.from, this.feed.time);
    return h(
      "div",
      { class: "preview-summary" },
      h(
        "p",
        {},
        h("strong", { class: "preview-total num" }, formatNumber(answer.total)),
        answer.total === 1 ? t(" answer") : t(" answers"),
        entities,
        rows.length < answer.total ? t("; the newest {count} are shown", { count: formatNumber(rows.length) }) : "",
      ),
      h("div", { class: "row row-wrap" }, ...badges),
      h(
        "p",
        { class: "small faint num" },
        t("{span} of history, {rows} events, {seconds} s", {
          span,
          rows: formatNumber(answer.rows),
          seconds: formatTenths(answer.seconds),
        }),
        answer.truncated ? t("; a preview reads no more events than these") : "",
      ),
    );
  }
}

/** What the reader can do, or the cause where it is certain. */
function whyNone({ lacks_places, unmet }: Pick<ReturnType<typeof preview>, "lacks_places" | "unmet">): string {
  if (lacks_places) return t("The query asks where things are, but no row of this period has a place.");
  return unmet.length > 0
    ? t("No row of this period meets {conditions}: check how the value is written, or choose another period.", {
        conditions: unmet.join("; "),
      })
    : t("Nothing matched. Choose another period, or ask for less: wider regions, ranges or times.");
}
