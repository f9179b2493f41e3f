/**
 * The answers of the live page: the timeline, the same answers as a list, and a
 * placeholder while there are none.
 */

import { t } from "../../lib/texts";
import type { Interval } from "../../data/interval";
import { button, h, icon } from "../../lib/dom";
import { formatSpan } from "../../lib/time";
import { IntervalListView } from "../interval_list_view";
import { headline } from "../interval_words";
import { TimelineView } from "../timeline_view";
import type { LiveModel } from "./model";

export interface AnswersHandlers {
  onHover: (interval: Interval | null) => void;
  onSelect: (interval: Interval | null) => void;
  onRange: (range: [number, number] | null) => void;
  onPan: (dt: number) => void;
  onZoom: (factor: number, about: number) => void;
  onInstant: (t: number) => void;
  /** The reader wants to see an answer outside the window. */
  onGo: (interval: Interval) => void;
  selectedKey: () => string | null;
}

/** Up to this many queries have a row before they have an answer. */
const MOST_EMPTY_ROWS = 12;

export class Answers {
  readonly element: HTMLElement;
  readonly timeline: TimelineView;
  private readonly list: IntervalListView;
  private readonly wrap = h("div", { class: "timeline-canvas-wrap" });
  private readonly why = h("span", {}, t("Fetching the answers so far."));
  private readonly go = button(t("Go there"), { icon: "locate-fixed", kind: "button-sm", hidden: true, onClick: () => this.goThere() });
  private readonly nothing = h("div", { class: "timeline-empty", role: "status" }, icon("history"), this.why, this.go);

  constructor(
    private readonly model: LiveModel,
    private readonly handlers: AnswersHandlers,
  ) {
    const { feed, zone } = model;
    this.list = new IntervalListView(feed.time, zone, {
      onHover: handlers.onHover,
      onSelect: handlers.onSelect,
      queryName: (id) => model.queryName(id),
    });
    this.wrap.style.height = "100%";
    this.element = h("div", { class: "timeline-canvas-wrap" }, this.wrap, this.list.element, this.nothing);
    this.timeline = new TimelineView(this.wrap, feed.time, zone, {
      ...handlers,
      describe: (one) => `${model.queryName(one.query)} · ${headline(one)}`,
    });
  }

  /** Applies the changes. */
  refresh(): void {
    const { model } = this;
    const hidden = new Set(model.state.hidden);
    const all = model.queries.map((row) => model.intervals.of(row.id));
    const shown = all.filter((columns) => !hidden.has(columns.query));
    this.timeline.setRows(
      shown.filter((columns) => columns.intervals.length > 0 || all.length <= MOST_EMPTY_ROWS),
      (id) => model.queryName(id),
      model.entities,
    );
    this.showList();
  }

  /**
   * An empty window shows why it is empty, and where the nearest answer is, if there is one.
   */
  showNothing(): void {
    const isLoading = this.model.data.seq === null;
    const away = isLoading || this.timeline.isEmpty ? null : this.timeline.outOfSight;
    this.nothing.hidden = !isLoading && away === null && (!this.timeline.isEmpty || this.model.state.mode === "list");
    this.go.hidden = away === null;
    const text = away === null ? this.nothingText() : this.awayText(away);
    if (this.why.textContent !== text) this.why.textContent = text;
  }

  private goThere(): void {
    const interval = this.timeline.outOfSight;
    if (interval !== null) this.handlers.onGo(interval);
  }

  private awayText({ start, end }: Interval): string {
    const { timeline, model } = this;
    const isBefore = start < timeline.t0;
    const away = isBefore ? timeline.t1 - (end ?? start) : start - timeline.t0;
    const minute = model.inUnit(60_000, 1);
    const span = formatSpan(Math.max(minute, Math.floor(away / minute) * minute), model.feed.time);
    return isBefore
      ? end === start
        ? t("No answers here. The last one was {span} earlier.", { span })
        : t("No answers here. The last one ended {span} earlier.", { span })
      : t("No answers here. The next one is {span} later.", { span });
  }

  private nothingText(): string {
    const { queries, state, data, catchingUp } = this.model;
    if (data.seq === null) return t("Fetching the answers so far.");
    if (queries.length === 0) return t("Register a query and its answers appear here as they are found.");
    if (queries.every(({ id }) => state.hidden.includes(id))) return t("All queries are hidden.");
    if (this.model.loading.isFilling) return t("Fetching the answers so far.");
    if (catchingUp !== null) return t("New queries are reading the history. Their answers appear here as they are found.");
    const [first, ...others] = state.entities;
    if (first !== undefined)
      return others.length === 0 ? t("No answers about {entity} yet.", { entity: first }) : t("No answers about the chosen entities yet.");
    return t("No answers yet. They appear here as they are found.");
  }

  showMode(): void {
    const isList = this.model.state.mode === "list";
    this.list.element.hidden = !isList;
    this.wrap.hidden = isList;
    this.showList();
    if (!isList) this.timeline.requestDraw();
  }

  /** The list shows the answers of the brushed range, or else of the window. */
  showList(): void {
    this.showNothing();
    if (this.model.state.mode !== "list") return;
    const [from, to] = this.model.state.range ?? [this.timeline.t0, this.timeline.t1];
    this.list.show(this.timeline.shown(), from, to, this.handlers.selectedKey());
  }

  entitiesWithin([from, to]: [number, number]): Set<string> {
    const within = (one: Interval): boolean => !one.isRetracted && one.start <= to && (one.end ?? Infinity) >= from;
    return new Set(
      this.timeline
        .shown()
        .filter(within)
        .flatMap((one) => one.entities),
    );
  }
}
