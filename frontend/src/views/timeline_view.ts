/**
 * The interval timeline: a time window over rows of intervals, panned, zoomed,
 * brushed and stepped through.
 */

import { t } from "../lib/texts";
import type { EvidencePoint } from "../data/evidence";
import type { Interval } from "../data/interval";
import type { AnswerCounts } from "../data/answer_counts";
import type { Coverage } from "../data/coverage";
import type { QueryIntervals } from "../data/intervals_data";
import { itemAt, keptScroll, makeRows, outOfSight, type TimelineRow } from "../data/timeline_rows";
import { h, replace } from "../lib/dom";
import { onThemeChange, queryColour } from "../lib/colours";
import { formatClock, formatSpan, type TimeUnit, type Zone } from "../lib/time";
import { revisionText } from "./interval_words";
import type { Edges } from "./map_view";
import { readInk } from "./ink";
import { AXIS_PX, paint, visibleRows, type Counted, type Scene } from "./timeline_painter";

export interface TimelineHandlers {
  onHover: (interval: Interval | null) => void;
  onSelect: (interval: Interval | null) => void;
  /** A brushed range, half-open; null when it is removed. */
  onRange: (range: [number, number] | null) => void;
  /** Asks to move the window by `dt`. */
  onPan: (dt: number) => void;
  /** Asks to make the window `factor` times as long, keeping the instant `about` in place. */
  onZoom: (factor: number, about: number) => void;
  /** The reader chose an instant on the axis. */
  onInstant?: (t: number) => void;
  describe: (interval: Interval) => string;
}

interface Drag {
  kind: "pan" | "brush" | "scroll";
  x: number;
  y: number;
  /** The window's last position. */
  movedX: number;
  scroll: number;
  isMoved: boolean;
}

const SNAP_PX = 4;
const [MOST_OPEN_QUERIES, MOST_OPEN_LANES] = [6, 10];

export class TimelineView {
  readonly canvas = h("canvas", {
    class: "timeline-canvas",
    tabindex: 0,
    role: "application",
    "aria-label": t(
      "Timeline of answers. W and S zoom, A and D pan, J and K step through intervals; the list view shows the same as a table.",
    ),
  });
  private readonly tip = h("div", { class: "timeline-tip", hidden: true });
  private columns = new Map<string, QueryIntervals>();
  private rows: TimelineRow[] = [];
  /** The queries that the reader collapsed or expanded. */
  private readonly folded = new Map<string, boolean>();
  private readonly met = new Set<string>();
  private readonly unfolded = new Set<string>();
  private readonly colours = new Map<string, string>();
  private ink = readInk();
  private request = 0;
  private drag: Drag | null = null;
  private scroll = 0;
  private hovered: string | null = null;
  private hoverX: number | null = null;
  private selected: Interval | null = null;
  /** The events of the selected answer. */
  private witnesses: readonly EvidencePoint[] = [];
  private entities: ReadonlySet<string> | null = null;
  private label: (query: string) => string = (query) => query;
  private counted: Counted | null = null;
  range: [number, number] | null = null;
  t0 = 0;
  t1 = 1;
  /** The instant that the page shows. */
  now = 0;
  /** Where open intervals end for now. */
  present = 0;

  constructor(
    private readonly wrap: HTMLElement,
    private readonly unit: TimeUnit,
    private readonly zone: Zone,
    private readonly handlers: TimelineHandlers,
  ) {
    replace(wrap, this.canvas, this.tip);
    new ResizeObserver(() => this.requestDraw()).observe(wrap);
    onThemeChange(() => {
      this.ink = readInk();
      this.colours.clear();
      this.requestDraw();
    });
    this.canvas.addEventListener("pointerdown", (event) => this.pointerDown(event));
    this.canvas.addEventListener("pointermove", (event) => this.pointerMove(event));
    this.canvas.addEventListener("pointerup", (event) => this.pointerUp(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.timeAt(event.offsetX)));
  }

  /** For a page without the keys of the timeline, which shows the same answers as a list below. */
  asPicture(): void {
    this.canvas.tabIndex = -1;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", t("Timeline of answers; the list below shows the same."));
  }

  setRows(columns: readonly QueryIntervals[], label: (query: string) => string, entities: ReadonlySet<string> | null): void {
    this.columns = new Map(columns.map((item) => [item.query, item]));
    this.label = label;
    this.entities = entities;
    this.layOut();
  }

  setWindow(t0: number, t1: number, now: number, present = now): void {
    if (t0 === this.t0 && t1 === this.t1 && now === this.now && present === this.present) return;
    [this.t0, this.t1, this.now, this.present] = [t0, t1, now, present];
    this.requestDraw();
  }

  /**
   * `coverage`: where answers are loaded one by one; `counts`: their number elsewhere. `totals`:
   * answers of each query in the window.
   */
  setCounts(counts: AnswerCounts | null, coverage: Coverage, totals: ReadonlyMap<string, number>): void {
    this.counted = { counts, coverage, totals };
    this.requestDraw();
  }

  setRange(range: [number, number] | null): void {
    this.range = range;
    this.requestDraw();
  }

  setSelected(interval: Interval | null, reveal = false, witnesses: readonly EvidencePoint[] = []): void {
    this.selected = interval;
    this.witnesses = witnesses;
    if (reveal && interval !== null) this.reveal(interval.key);
    this.requestDraw();
  }

  setHovered(key: string | null): void {
    if (key === this.hovered) return;
    this.hovered = key;
    this.requestDraw();
  }

  /** Intervals that pass the filters, by start: the order of J and K and of the list. */
  shown(): Interval[] {
    const all: Interval[] = [];
    for (const row of this.rows) if (row.kind === "query") for (const i of row.items) all.push(this.columns.get(row.query)!.intervals[i]!);
    return all.sort((a, b) => a.start - b.start);
  }

  /**
   * The next or previous interval in time. Without a selection: the first that begins after `at`,
   * or the last before it; without `at` the one nearest to the middle of the window.
   */
  neighbour(direction: 1 | -1, at: number | null): Interval | null {
    const all = this.shown();
    const chosen = all.findIndex((interval) => interval.key === this.selected?.key);
    if (chosen >= 0) return all[chosen + direction] ?? null;
    if (at !== null) return (direction === 1 ? all.find((one) => one.start > at) : all.findLast((one) => one.start < at)) ?? null;
    const middle = (this.t0 + this.t1) / 2;
    return all.reduce<Interval | null>(
      (best, one) => (best === null || Math.abs(one.start - middle) < Math.abs(best.start - middle) ? one : best),
      null,
    );
  }

  /** Whether any interval passes the filters, visible or not. */
  get isEmpty(): boolean {
    return this.rows.every((row) => row.items.length === 0) && !this.hasCounts;
  }

  /** Whether the window has answers of which only counts are loaded. */
  private get hasCounts(): boolean {
    return (
      this.counted !== null &&
      this.counted.coverage.gaps(this.t0, this.t1).length > 0 &&
      [...this.counted.totals.values()].some((total) => total > 0)
    );
  }

  /** The answer nearest to an empty window; null if the window has one, or none is known. */
  get outOfSight(): Interval | null {
    return this.present === 0 || this.hasCounts ? null : outOfSight(this.rows, (query) => this.columns.get(query)!, this.t0, this.t1);
  }

  /** Zooms by `factor` (below 1: in) around an instant, by default the middle. */
  zoom(factor: number, about = (this.t0 + this.t1) / 2): void {
    this.handlers.onZoom(factor, about);
  }

  /** Pans by a share of the window. */
  pan(share: number): void {
    this.handlers.onPan((this.t1 - this.t0) * share);
  }

  private layOut(): void {
    for (const columns of this.columns.values()) this.meet(columns);
    const before = this.rows;
    this.rows = makeRows([...this.columns.values()], {
      label: this.label,
      entities: this.entities,
      isExpanded: (query) => this.folded.get(query) ?? (this.entities !== null || this.unfolded.has(query)),
    });
    this.scroll = keptScroll(before, this.rows, {
      scroll: this.scroll,
      room: this.wrap.clientHeight - AXIS_PX,
      query: this.selected?.query ?? null,
    });
    this.clampScroll();
    this.requestDraw();
  }

  /**
   * Lanes are expanded if they are few, so that those of one query do not push all others out of
   * sight; decided once, with its first answers.
   */
  private meet({ query, lanes }: QueryIntervals): void {
    if (lanes.length === 0 || this.met.has(query)) return;
    this.met.add(query);
    const isAlone = this.columns.size === 1;
    if (isAlone || (this.columns.size <= MOST_OPEN_QUERIES && lanes.length <= MOST_OPEN_LANES)) this.unfolded.add(query);
  }

  private clampScroll(): void {
    const last = this.rows[this.rows.length - 1];
    const all = last === undefined ? 0 : last.top + last.height;
    this.scroll = Math.max(0, Math.min(this.scroll, all - (this.wrap.clientHeight - AXIS_PX)));
  }

  /** Expands the lane of the answer and scrolls to it. */
  private reveal(key: string): void {
    const query = this.rows.find(
      (one) =>
        one.kind === "query" && !one.isExpanded && [...one.items].some((i) => this.columns.get(one.query)!.intervals[i]!.key === key),
    )?.query;
    if (query !== undefined) {
      this.folded.set(query, true);
      this.layOut();
    }
    const row =
      this.rows.find((one) => one.kind === "lane" && [...one.items].some((i) => this.columns.get(one.query)!.intervals[i]!.key === key)) ??
      this.rows.find((one) => [...one.items].some((i) => this.columns.get(one.query)!.intervals[i]!.key === key));
    if (row === undefined) return;
    const room = this.wrap.clientHeight - AXIS_PX;
    if (row.top < this.scroll || row.top + row.height > this.scroll + room) this.scroll = row.top - room / 2;
    this.clampScroll();
  }

  requestDraw(): void {
    if (this.request !== 0) return;
    this.request = requestAnimationFrame(() => {
      this.request = 0;
      this.drawNow();
    });
  }

  /** The width of the column of names in CSS pixels. */
  private get gutter(): number {
    return Math.max(128, Math.min(216, Math.round(this.wrap.clientWidth * 0.3)));
  }

  /** The area of the plot, right of the names. */
  get plot(): Edges {
    const { left, top, right, bottom } = this.wrap.getBoundingClientRect();
    return { left: left + this.gutter, top, right, bottom };
  }

  drawNow(): void {
    const began = performance.now();
    const [width, height] = [this.wrap.clientWidth, this.wrap.clientHeight];
    if (width === 0 || height === 0) return;
    const ratio = Math.min(2, devicePixelRatio || 1);
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== wide || this.canvas.height !== high) [this.canvas.width, this.canvas.height] = [wide, high];
    const context = this.canvas.getContext("2d");
    if (context === null) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint(context, this.scene(width, height), this.ink);
    this.canvas.dataset["drawMs"] = (performance.now() - began).toFixed(2);
  }

  private scene(width: number, height: number): Scene {
    return {
      rows: this.rows,
      columns: this.columns,
      colour: (query) => this.colour(query),
      t0: this.t0,
      t1: this.t1,
      now: this.now,
      present: this.present,
      width,
      height,
      gutter: this.gutter,
      counted: this.counted,
      scroll: this.scroll,
      hovered: this.hovered,
      selected: this.selected,
      witnesses: this.witnesses,
      range: this.range,
      unit: this.unit,
      zone: this.zone,
      hoverX: this.drag ? null : this.hoverX,
    };
  }

  private colour(query: string): string {
    let found = this.colours.get(query);
    if (found === undefined) {
      found = queryColour(query);
      this.colours.set(query, found);
    }
    return found;
  }

  private timeAt(x: number): number {
    return this.t0 + ((x - this.gutter) / (this.wrap.clientWidth - this.gutter)) * (this.t1 - this.t0);
  }

  private rowAt(y: number): TimelineRow | null {
    if (y < AXIS_PX) return null;
    const at = y - AXIS_PX + this.scroll;
    for (const row of visibleRows({ rows: this.rows, scroll: this.scroll, height: this.wrap.clientHeight }))
      if (at >= row.top && at < row.top + row.height) return row;
    return null;
  }

  private intervalAt(x: number, y: number): Interval | null {
    const row = this.rowAt(y);
    if (row === null || x < this.gutter || (row.kind === "query" && row.isExpanded)) return null;
    const columns = this.columns.get(row.query)!;
    const slack = (SNAP_PX / (this.wrap.clientWidth - this.gutter)) * (this.t1 - this.t0);
    const item = itemAt(row, columns, this.timeAt(x), slack, this.present);
    return item === null ? null : columns.intervals[item]!;
  }

  private pointerDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    const kind = event.offsetX < this.gutter ? "scroll" : event.offsetY < AXIS_PX || event.shiftKey ? "brush" : "pan";
    this.drag = { kind, x: event.offsetX, y: event.offsetY, movedX: event.offsetX, scroll: this.scroll, isMoved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  private pointerMove(event: PointerEvent): void {
    if (this.drag === null) {
      this.hover(event);
      return;
    }
    const { drag } = this;
    const [dx, dy] = [event.offsetX - drag.x, event.offsetY - drag.y];
    if (!drag.isMoved && Math.hypot(dx, dy) < 4) return;
    drag.isMoved = true;
    this.tip.hidden = true;
    if (drag.kind === "brush") {
      this.range = this.brushed(drag.x, event.offsetX);
    } else {
      if (drag.kind === "pan") {
        const by = ((drag.movedX - event.offsetX) / (this.wrap.clientWidth - this.gutter)) * (this.t1 - this.t0);
        if (by !== 0) this.handlers.onPan(by);
        drag.movedX = event.offsetX;
      }
      this.scroll = drag.scroll - dy;
      this.clampScroll();
    }
    this.requestDraw();
  }

  private brushed(a: number, b: number): [number, number] {
    const [t0, t1] = [this.timeAt(Math.max(this.gutter, Math.min(a, b))), this.timeAt(Math.max(a, b))];
    return [Math.round(t0), Math.max(Math.round(t1), Math.round(t0) + 1)];
  }

  private pointerUp(event: PointerEvent): void {
    const { drag } = this;
    this.drag = null;
    if (drag === null) return;
    if (drag.isMoved) {
      if (drag.kind === "brush") this.handlers.onRange(this.range);
      return;
    }
    const row = this.rowAt(event.offsetY);
    if (row?.kind === "query" && (event.offsetX < this.gutter || row.isExpanded)) {
      this.folded.set(row.query, !row.isExpanded);
      this.layOut();
    } else if (event.offsetY < AXIS_PX && this.range !== null) {
      this.handlers.onRange(null);
    } else if (event.offsetY < AXIS_PX && event.offsetX >= this.gutter) {
      this.handlers.onInstant?.(this.timeAt(event.offsetX));
    } else if (event.offsetX >= this.gutter) {
      this.handlers.onSelect(this.intervalAt(event.offsetX, event.offsetY));
    }
  }

  private hover(event: PointerEvent): void {
    const interval = this.intervalAt(event.offsetX, event.offsetY);
    this.hoverX = event.offsetX >= this.gutter ? event.offsetX : null;
    this.canvas.style.cursor =
      event.offsetX < this.gutter ? "pointer" : event.offsetY < AXIS_PX ? "col-resize" : interval ? "pointer" : "grab";
    if (interval?.key !== this.hovered) {
      this.hovered = interval?.key ?? null;
      this.handlers.onHover(interval);
    }
    this.showTip(interval, event.offsetX, event.offsetY);
    this.requestDraw();
  }

  private showTip(interval: Interval | null, x: number, y: number): void {
    this.tip.hidden = interval === null;
    if (interval === null) return;
    const end = interval.end ?? this.present;
    const span = interval.isMark ? "" : ` · ${formatSpan(end - interval.start, this.unit)}${interval.end === null ? t(" so far") : ""}`;
    const clock = (at: number): string => formatClock(at, this.unit, this.zone);
    const until = interval.isMark ? "" : ` – ${interval.end === null ? t("still going") : clock(end)}`;
    replace(
      this.tip,
      h(
        "div",
        { class: "row" },
        h("span", { class: "swatch", vars: { "--swatch": this.colour(interval.query) } }),
        h("strong", {}, this.handlers.describe(interval)),
      ),
      h("div", { class: "muted num" }, `${clock(interval.start)}${until}${span}`),
      revisionText(interval, this.unit, this.zone) === null
        ? null
        : h("div", { class: "muted num" }, revisionText(interval, this.unit, this.zone)),
    );
    const left = Math.min(x + 14, this.wrap.clientWidth - this.tip.offsetWidth - 8);
    const top = y + 18 + this.tip.offsetHeight > this.wrap.clientHeight ? y - this.tip.offsetHeight - 10 : y + 18;
    this.tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(2, top)}px)`;
  }

  private leave(): void {
    this.tip.hidden = true;
    this.hoverX = null;
    if (this.hovered !== null) {
      this.hovered = null;
      this.handlers.onHover(null);
    }
    this.requestDraw();
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    if (event.offsetX < this.gutter || (event.shiftKey && event.deltaX === 0)) {
      this.scroll += event.deltaY;
      this.clampScroll();
      this.requestDraw();
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.pan(event.deltaX / (this.wrap.clientWidth - this.gutter));
    } else {
      this.zoom(Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY * 0.0022))), this.timeAt(event.offsetX));
    }
  }
}
