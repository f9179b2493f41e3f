/**
 * Loads the answers of one feed's live page that the live connection does not bring: those of the
 * past, and retracted ones.
 */

import { answerCounts, countedPeriods, countWithin, type AnswerCounts } from "../../data/answer_counts";
import { Coverage } from "../../data/coverage";
import type { Interval } from "../../data/interval";
import { get, getAll, getFirst, page, query as address } from "../../lib/api";
import { Latest } from "../../lib/latest";
import { detection, type Detection } from "../../lib/shapes";

/** Up to this many answers of a window are fetched one by one. */
const MOST_SINGLE = 10_000;
const COUNT_BUCKETS = 400;
/** While a window is being dragged or zoomed nothing is requested. */
const FILL_WAIT_MS = 150;
/** How many answers are fetched for a step to the next one, and for how many selected entities. */
const NEIGHBOURS = 100;
const MOST_ENTITIES = 10;
/** An address names at most this many queries; of more, pages of all queries are searched. */
const MOST_NAMED = 200;
const FULL_PAGE = 1_000;
const MOST_PAGES = 20;

export interface AnswerLoadingHandlers {
  present: () => number;
  onAnswer: (row: Detection) => void;
  onRetracted: (row: Detection) => void;
  /** Other counts or more loaded periods have to be drawn. */
  onChange: () => void;
  onFault: (error: unknown) => void;
}

export class AnswerLoading {
  /** The periods whose answers are loaded one by one. */
  readonly coverage = new Coverage();
  /** Counts of answers elsewhere. */
  counts: AnswerCounts | null = null;
  private readonly filling: Latest<[from: number, to: number]>;
  private readonly holding: Latest<[t: number]>;
  private retractedFrom = Infinity;

  constructor(
    private readonly feed: string,
    private readonly handlers: AnswerLoadingHandlers,
  ) {
    this.filling = new Latest((signal, from: number, to: number) => this.fill(from, to, signal), handlers.onFault);
    this.holding = new Latest((signal, t: number) => this.loadHolding(t, signal), handlers.onFault);
  }

  /** A snapshot has brought all answers that began at or after `since` (null: all answers). */
  snapshotCame(since: number | null): void {
    this.retractedFrom = Infinity;
    this.coverage.add(since ?? -Infinity, Infinity);
    // Answers that began earlier and are still open are not among the newest.
    if (since !== null) this.holding.after(0, this.handlers.present());
  }

  /**
   * Loads the window's answers: one by one if they are few, else their counts; and those that hold
   * at `instant`, unless it is null.
   */
  async loadWindow([t0, t1]: readonly [number, number], instant: number | null): Promise<void> {
    if (this.coverage.gaps(t0, t1).length > 0) this.filling.after(FILL_WAIT_MS, t0, t1);
    else this.filling.drop();
    if (instant !== null && !this.coverage.has(instant)) this.holding.after(FILL_WAIT_MS, instant);
    if (t0 < this.retractedFrom) await this.loadRetracted(t0 - (t1 - t0) / 2);
  }

  /** Whether the window's answers are still loading. */
  get isFilling(): boolean {
    return this.filling.isAsking;
  }

  /** Half a window more at both ends: a reader who drags will continue. */
  private async fill(t0: number, t1: number, signal: AbortSignal): Promise<void> {
    const half = (t1 - t0) / 2;
    const [from, to] = [Math.floor(t0 - half), Math.ceil(Math.min(t1 + half, this.handlers.present() + 1))];
    const gaps = this.coverage.gaps(from, to);
    if (gaps.length === 0) return;
    const counts = answerCounts(
      await get(address("detections/counts", { feed: this.feed, from, to, buckets: COUNT_BUCKETS }), (value) => value, signal),
    );
    this.counts = counts;
    this.handlers.onChange();
    if (counts.total > MOST_SINGLE) return;
    for (const [a, b] of gaps) {
      for (const row of await this.between(a, b, {}, signal)) this.handlers.onAnswer(row);
      this.coverage.add(a, b);
    }
    this.handlers.onChange();
  }

  /** Whether all answers that begin between two times are loaded one by one. */
  knows(one: number, other: number): boolean {
    return this.coverage.gaps(Math.min(one, other), Math.max(one, other)).length === 0;
  }

  /**
   * Fetches the answers that begin next after `t`, or last before it, of the queries and about the
   * entities given (empty: all), also where only counts are loaded.
   */
  async loadBeside(t: number, direction: 1 | -1, entities: readonly string[], queries: readonly string[]): Promise<void> {
    const each = entities.length === 0 ? [null] : entities.slice(0, MOST_ENTITIES);
    const pages = await Promise.all(each.map((entity) => this.neighbours(t, direction, entity, queries)));
    for (const row of pages.flat()) this.handlers.onAnswer(row);
  }

  /**
   * A stay that was fetched alone looks open: later answers of its query about its entities end it.
   */
  async loadEnd({ query, entities, start, end }: Interval): Promise<void> {
    if (end !== null || this.knows(start, this.handlers.present())) return;
    for (const row of await this.neighbours(start, 1, entities[0] ?? null, [query])) this.handlers.onAnswer(row);
  }

  /**
   * A page of answers next to `t`, nearest first. The server's cursor is a start and a key: this
   * one is after, or before, all keys.
   */
  private async neighbours(t: number, direction: 1 | -1, entity: string | null, queries: readonly string[]): Promise<Detection[]> {
    const isNamed = queries.length <= MOST_NAMED;
    const path = address("detections/", {
      feed: this.feed,
      entity,
      order: direction === 1 ? "start" : "-start",
      cursor: direction === 1 ? `${Math.floor(t)}.${"ff".repeat(16)}` : `${Math.ceil(t)}.`,
      page_size: isNamed ? NEIGHBOURS : FULL_PAGE,
    });
    if (isNamed) return (await get([path, ...queries.map((id) => `query=${id}`)].join("&"), page(detection))).results;
    const wanted = new Set(queries);
    return getFirst(path, detection, (row) => wanted.has(row.query), MOST_PAGES);
  }

  /** Loads the answers that hold at `t`, for a time with too many answers to load all. */
  private async loadHolding(t: number, signal: AbortSignal): Promise<void> {
    for (const row of await this.between(Math.floor(t), Math.floor(t) + 1, {}, signal)) this.handlers.onAnswer(row);
  }

  /**
   * Loads answers that were retracted since `from`: a page that was open then would
   * show them struck through.
   */
  async loadRetracted(from: number): Promise<void> {
    const to = this.retractedFrom;
    if (from >= to) return;
    this.retractedFrom = from;
    for (const row of await this.between(from, to, { withdrawn: "true" })) this.handlers.onRetracted(row);
  }

  private between(from: number, to: number, more: Record<string, string>, signal?: AbortSignal): Promise<Detection[]> {
    const bound = (t: number): number | null => (Number.isFinite(t) ? t : null);
    const path = address("detections/", {
      feed: this.feed,
      from: bound(Math.floor(from)),
      to: bound(Math.ceil(to)),
      page_size: 1000,
      ...more,
    });
    return getAll(path, detection, 2 * MOST_SINGLE, signal);
  }

  /** Counts the answers that begin within the window where they are only counted. */
  counted(t0: number, t1: number): CountedAnswers {
    const { counts } = this;
    const unknown = this.coverage.gaps(t0, t1);
    const gaps = counts === null ? unknown : countedPeriods(counts, unknown);
    return {
      of: (query) => (counts === null ? 0 : countWithin(counts, query, gaps, t0, t1)),
      has: (start) => gaps.some(([a, b]) => a <= start && start < b),
    };
  }

  /** Stops all requests. */
  close(): void {
    this.filling.drop();
    this.holding.drop();
  }
}

export interface CountedAnswers {
  /** The number of a query's answers that are only counted. */
  of: (query: string) => number;
  /** Whether an answer with this start is among those counted. */
  has: (start: number) => boolean;
}
