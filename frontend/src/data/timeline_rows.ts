/**
 * The rows of the timeline and the marks on them: pure arithmetic from intervals and a time window
 * to rectangles in CSS pixels.
 */

import type { Interval } from "./interval";
import type { QueryIntervals } from "./intervals_data";

export interface TimelineRow {
  kind: "query" | "lane";
  query: string;
  label: string;
  /** Indices in the query's columns, by start; a query row has all that pass the filter. */
  items: Int32Array;
  /** The number of items that still hold: retracted ones are shown, but not counted. */
  count: number;
  /**
   * For each item the greatest end of all up to it, so that a binary search
   * finds the first visible one.
   */
  reach: Float64Array;
  /** CSS pixels from the top of all rows. */
  top: number;
  height: number;
  isExpanded: boolean;
  /** The number of intervals for which no lane was free. */
  hidden: number;
}

const QUERY_ROW_PX = 28;
const LANE_ROW_PX = 20;
/**
 * With more lanes than this, intervals of a query share lanes instead of one for each grounding.
 */
const MOST_OWN_LANES = 40;
const MOST_PACKED_LANES = 24;

export interface RowOptions {
  isExpanded: (query: string) => boolean;
  label: (query: string) => string;
  /** Null shows all groundings. */
  entities: ReadonlySet<string> | null;
}

export function makeRows(queries: readonly QueryIntervals[], options: RowOptions): TimelineRow[] {
  const rows: TimelineRow[] = [];
  let top = 0;
  for (const columns of queries) {
    const made = arranged(columns, options.entities);
    if (options.entities !== null && made.items.length === 0) continue;
    const isExpanded = options.isExpanded(columns.query);
    const lanes: Lanes = isExpanded ? (made.lanes ??= lanesOf(columns, made.items)) : { shown: [], hidden: 0 };
    const shared = { query: columns.query, label: options.label(columns.query) };
    rows.push({
      ...shared,
      kind: "query",
      items: made.items,
      count: made.count,
      reach: made.reach,
      top,
      height: QUERY_ROW_PX,
      isExpanded,
      hidden: lanes.hidden,
    });
    top += QUERY_ROW_PX;
    for (const { label, items, count, reach } of lanes.shown) {
      rows.push({ ...shared, kind: "lane", label, items, count, reach, top, height: LANE_ROW_PX, isExpanded: false, hidden: 0 });
      top += LANE_ROW_PX;
    }
  }
  return rows;
}

/**
 * The interval nearest to [t0, t1] if nothing of the rows lies within: the last one before it, else
 * the first one after it. Null if something lies within, or there are no intervals.
 */
export function outOfSight(
  rows: readonly TimelineRow[],
  columnsOf: (query: string) => QueryIntervals,
  t0: number,
  t1: number,
): Interval | null {
  let [before, after]: [Interval | null, Interval | null] = [null, null];
  for (const row of rows) {
    if (row.kind !== "query") continue;
    const { intervals } = columnsOf(row.query);
    for (const i of row.items) {
      const one = intervals[i]!;
      const end = one.end ?? Infinity;
      if (one.start <= t1 && end >= t0) return null;
      if (end < t0 && (before === null || end > before.end!)) before = one;
      if (one.start > t1 && (after === null || one.start < after.start)) after = one;
    }
  }
  return before ?? after;
}

/**
 * The scroll position after rows were added or removed: keeps the rows of the selected query in
 * place, else the first visible row. At the top without a selection it stays at the top. CSS
 * pixels; `room` is the visible height.
 */
export function keptScroll(
  before: readonly TimelineRow[],
  after: readonly TimelineRow[],
  { scroll, room, query }: { scroll: number; room: number; query: string | null },
): number {
  const seen = before.filter((row) => row.top + row.height > scroll && row.top < scroll + room);
  const anchor = seen.find((row) => row.query === query) ?? (scroll > 0 ? seen[0] : undefined);
  if (anchor === undefined) return scroll;
  const now = after.find((row) => row.query === anchor.query && row.kind === anchor.kind && row.label === anchor.label);
  return now === undefined ? scroll : scroll + now.top - anchor.top;
}

interface Arranged {
  entities: ReadonlySet<string> | null;
  items: Int32Array;
  count: number;
  reach: Float64Array;
  lanes?: Lanes;
}

/**
 * Columns are immutable, so a layout is valid until there are new columns or
 * another choice of entities.
 */
const known = new WeakMap<QueryIntervals, Arranged>();

function arranged(columns: QueryIntervals, entities: ReadonlySet<string> | null): Arranged {
  const before = known.get(columns);
  if (before?.entities === entities) return before;
  const items = filtered(columns, entities);
  const made = { entities, items, count: countOf(columns, items), reach: reachOf(columns, items) };
  known.set(columns, made);
  return made;
}

function filtered(columns: QueryIntervals, entities: ReadonlySet<string> | null): Int32Array {
  const items = new Int32Array(columns.intervals.length);
  let count = 0;
  for (let i = 0; i < items.length; i++)
    if (entities === null || columns.intervals[i]!.entities.some((entity) => entities.has(entity))) items[count++] = i;
  return items.subarray(0, count);
}

function countOf(columns: QueryIntervals, items: Int32Array): number {
  return items.reduce((sum, i) => sum + Number(!columns.intervals[i]!.isRetracted), 0);
}

function reachOf(columns: QueryIntervals, items: Int32Array): Float64Array {
  const reach = new Float64Array(items.length);
  let most = -Infinity;
  for (let i = 0; i < items.length; i++) {
    most = Math.max(most, columns.end[items[i]!]!);
    reach[i] = most;
  }
  return reach;
}

interface Lanes {
  shown: { label: string; items: Int32Array; count: number; reach: Float64Array }[];
  hidden: number;
}

const collator = new Intl.Collator("en", { numeric: true });

function shownLane(columns: QueryIntervals, label: string, list: readonly number[]): Lanes["shown"][number] {
  const items = Int32Array.from(list);
  return { label, items, count: countOf(columns, items), reach: reachOf(columns, items) };
}

function lanesOf(columns: QueryIntervals, items: Int32Array): Lanes {
  const own = new Map<number, number[]>();
  for (const i of items) {
    const lane = columns.lane[i]!;
    const list = own.get(lane);
    if (list) list.push(i);
    else own.set(lane, [i]);
  }
  if (own.size > MOST_OWN_LANES) return packed(columns, items);
  const ordered = [...own.entries()].sort(([a], [b]) => collator.compare(columns.lanes[a]!, columns.lanes[b]!));
  return { shown: ordered.map(([lane, list]) => shownLane(columns, columns.lanes[lane]!, list)), hidden: 0 };
}

/**
 * Puts each interval into the first free lane; past intervals keep their lane when new ones arrive.
 */
function packed(columns: QueryIntervals, items: Int32Array): Lanes {
  const ends: number[] = [];
  const lanes: number[][] = [];
  let hidden = 0;
  for (const i of items) {
    const start = columns.start[i]!;
    let lane = ends.findIndex((end) => end <= start);
    if (lane < 0 && ends.length < MOST_PACKED_LANES) {
      lane = ends.length;
      ends.push(-Infinity);
      lanes.push([]);
    }
    if (lane < 0) {
      hidden += 1;
      continue;
    }
    ends[lane] = Math.max(columns.end[i]!, start);
    lanes[lane]!.push(i);
  }
  return { shown: lanes.map((list) => shownLane(columns, "", list)), hidden };
}

/** First index in `row.items` that may reach `t` or later. */
export function firstReaching(row: TimelineRow, t: number): number {
  let [low, high] = [0, row.reach.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.reach[middle]! < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The items of the row that overlap [t0, t1], by start, with their ends: open items end at `now`.
 */
function eachTouching(
  row: TimelineRow,
  columns: QueryIntervals,
  t0: number,
  t1: number,
  now: number,
  take: (item: number, start: number, stop: number) => void,
): void {
  for (let n = firstReaching(row, t0); n < row.items.length; n++) {
    const i = row.items[n]!;
    const start = columns.start[i]!;
    if (start > t1) break;
    const end = columns.end[i]!;
    const stop = end === Infinity ? Math.max(now, start) : end;
    if (stop >= t0) take(i, start, stop);
  }
}

/**
 * Rectangles of a row, in CSS pixels: items closer than a pixel are merged. `emit` gets the left
 * and right edge, the item (-1 for several) and the number of items. Open items end at `now`.
 */
export function merge(
  row: TimelineRow,
  columns: QueryIntervals,
  t0: number,
  t1: number,
  width: number,
  now: number,
  emit: (left: number, right: number, item: number, count: number) => void,
): void {
  const scale = width / (t1 - t0);
  let [left, right, item, count] = [0, -Infinity, -1, 0];
  eachTouching(row, columns, t0, t1, now, (i, start, stop) => {
    const a = (start - t0) * scale;
    const b = Math.max((stop - t0) * scale, a + 2);
    if (count > 0 && a < right + 1 && (b - a < 4 || a < left + 1)) {
      right = Math.max(right, b);
      item = -1;
      count += 1;
      return;
    }
    if (count > 0) emit(left, right, item, count);
    [left, right, item, count] = [a, b, i, 1];
  });
  if (count > 0) emit(left, right, item, count);
}

/**
 * How many items of the row overlap each pixel column, into `counts` (length =
 * width); returns the greatest.
 */
export function density(row: TimelineRow, columns: QueryIntervals, t0: number, t1: number, now: number, counts: Int32Array): number {
  const width = counts.length - 1;
  const scale = width / (t1 - t0);
  counts.fill(0);
  eachTouching(row, columns, t0, t1, now, (_, start, stop) => {
    counts[Math.max(0, Math.floor((start - t0) * scale))]! += 1;
    const after = Math.floor((stop - t0) * scale) + 1;
    if (after <= width) counts[after]! -= 1;
  });
  let [sum, most] = [0, 0];
  for (let x = 0; x <= width; x++) {
    sum += counts[x]!;
    counts[x] = sum;
    if (sum > most) most = sum;
  }
  return most;
}

/**
 * The item of the row nearest to the instant `t`, within `slack` (in the feed's unit); the shortest
 * of those that contain it.
 */
export function itemAt(row: TimelineRow, columns: QueryIntervals, t: number, slack: number, now: number): number | null {
  let [best, bestScore] = [-1, Infinity];
  eachTouching(row, columns, t - slack, t + slack, now, (i, start, stop) => {
    const distance = t < start ? start - t : t > stop ? t - stop : 0;
    const score = distance * 1e6 + (stop - start);
    if (score < bestScore) [best, bestScore] = [i, score];
  });
  return best < 0 ? null : best;
}
