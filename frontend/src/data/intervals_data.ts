/**
 * From detections to what a timeline draws: stays paired from in and out, marks, and intervals; grouped by query and grounding.
 *
 * Pure and incremental: a change touches only its own group, and a group is laid out anew only when it is asked for.
 */

import type { Detection } from "./shapes";

export interface Interval {
  /** The id of the detection that begins it: stable while it grows. */
  key: string;
  query: string;
  entities: string[];
  /** `stay` for a pair of in and out, else the detections' own kind. */
  kind: string;
  /** Event time, in the feed's unit. */
  start: number;
  /** Exclusive for stays and fluents; null while it holds. */
  end: number | null;
  /** An instant: start = end. */
  isMark: boolean;
  /** The detections it is made of, in order. */
  detections: string[];
}

interface Lane {
  query: string;
  entities: string[];
  detections: Map<string, Detection>;
  intervals: Interval[] | null;
}

/** Intervals of one query in columns, sorted by start: what drawing reads. */
export interface QueryIntervals {
  query: string;
  intervals: Interval[];
  start: Float64Array;
  /** `Infinity` while open. */
  end: Float64Array;
  /** Index into `lanes`. */
  lane: Int32Array;
  /** Names of groundings, in their own order. */
  lanes: string[];
  openCount: number;
}

export function laneName(entities: readonly string[]): string {
  return entities.length === 0 ? "—" : entities.join(" · ");
}

export class IntervalsData {
  private readonly lanes = new Map<string, Lane>();
  private readonly laneOf = new Map<string, string>();
  private readonly columns = new Map<string, QueryIntervals | null>();
  private byKey: Map<string, Interval> | null = null;

  clear(): void {
    this.lanes.clear();
    this.laneOf.clear();
    this.columns.clear();
    this.byKey = null;
  }

  put(row: Detection): void {
    const key = `${row.query}\u0000${row.entities.join("\u0000")}`;
    const before = this.laneOf.get(row.id);
    if (before !== undefined && before !== key) this.remove(row.id);
    let lane = this.lanes.get(key);
    if (lane === undefined) {
      lane = { query: row.query, entities: row.entities, detections: new Map(), intervals: null };
      this.lanes.set(key, lane);
    }
    lane.detections.set(row.id, row);
    this.laneOf.set(row.id, key);
    this.touch(lane);
  }

  remove(id: string): void {
    const key = this.laneOf.get(id);
    if (key === undefined) return;
    const lane = this.lanes.get(key)!;
    this.laneOf.delete(id);
    lane.detections.delete(id);
    if (lane.detections.size === 0) this.lanes.delete(key);
    this.touch(lane);
  }

  private touch(lane: Lane): void {
    lane.intervals = null;
    this.columns.set(lane.query, null);
    this.byKey = null;
  }

  /** Queries that have any detection, in no particular order. */
  queries(): string[] {
    return [...this.columns.keys()].filter((query) => this.of(query).intervals.length > 0);
  }

  of(query: string): QueryIntervals {
    const known = this.columns.get(query);
    if (known) return known;
    const lanes = [...this.lanes.values()].filter((lane) => lane.query === query);
    const made = inColumns(query, lanes);
    this.columns.set(query, made);
    return made;
  }

  /** The interval that `key` begins or that contains the detection `key`. */
  find(key: string): Interval | null {
    if (this.byKey === null) {
      this.byKey = new Map();
      for (const query of this.columns.keys()) {
        for (const interval of this.of(query).intervals) for (const id of [interval.key, ...interval.detections]) this.byKey.set(id, interval);
      }
    }
    return this.byKey.get(key) ?? null;
  }
}

const collator = new Intl.Collator("en", { numeric: true });

function inColumns(query: string, lanes: Lane[]): QueryIntervals {
  const names = lanes.map((lane) => ({ lane, name: laneName(lane.entities) })).sort((a, b) => collator.compare(a.name, b.name));
  const all: { interval: Interval; lane: number }[] = [];
  names.forEach(({ lane }, index) => {
    lane.intervals ??= pair([...lane.detections.values()]);
    for (const interval of lane.intervals) all.push({ interval, lane: index });
  });
  all.sort((a, b) => a.interval.start - b.interval.start || a.lane - b.lane);
  const start = new Float64Array(all.length);
  const end = new Float64Array(all.length);
  const laneIndex = new Int32Array(all.length);
  let openCount = 0;
  all.forEach(({ interval, lane }, i) => {
    start[i] = interval.start;
    end[i] = interval.end ?? Infinity;
    laneIndex[i] = lane;
    if (interval.end === null) openCount += 1;
  });
  return { query, intervals: all.map((item) => item.interval), start, end, lane: laneIndex, lanes: names.map((item) => item.name), openCount };
}

/**
 * The intervals of one query and grounding. `in` and `out` alternate, so a stay is an in with the next out: [in, out).
 * Of an in and an out at the same time the one comes first that the state before allows.
 */
export function pair(rows: readonly Detection[]): Interval[] {
  const sorted = [...rows].sort((a, b) => a.start - b.start || a.kind.localeCompare(b.kind));
  const result: Interval[] = [];
  let open: Interval | null = null;
  const ties: Detection[] = [];
  const settle = (): void => {
    while (ties.length > 0) {
      const wanted: string = open === null ? "in" : "out";
      const at = Math.max(0, ties.findIndex((row) => row.kind === wanted));
      open = step(result, open, ties[at]!);
      ties.splice(at, 1);
    }
  };
  for (const row of sorted) {
    if (row.kind !== "in" && row.kind !== "out") {
      result.push(single(row));
      continue;
    }
    if (ties[0] !== undefined && ties[0].start !== row.start) settle();
    ties.push(row);
  }
  settle();
  return result.sort((a, b) => a.start - b.start);
}

function step(result: Interval[], open: Interval | null, row: Detection): Interval | null {
  if (row.kind === "in") {
    const stay: Interval = { ...single(row), kind: "stay", end: null, isMark: false };
    result.push(stay);
    return stay;
  }
  if (open === null) {
    result.push(single(row));
    return null;
  }
  open.end = row.start;
  open.detections.push(row.id);
  return null;
}

function single(row: Detection): Interval {
  return { key: row.id, query: row.query, entities: row.entities, kind: row.kind, start: row.start, end: row.end, isMark: row.end === row.start, detections: [row.id] };
}
