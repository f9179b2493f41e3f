/**
 * From detections to the timeline's items: stays, marks, and intervals;
 * grouped by query and grounding.
 *
 * Pure and incremental: a change rebuilds only its lane, and the columns of a query are merged on
 * demand from the old columns and the changed lanes, so that hundreds of changes per second cost
 * little even with tens of thousands of answers.
 */

import { cutAt, fluentName, isOfStay, laneName, pair, single, type Interval } from "./interval";
import type { Detection } from "../lib/shapes";

export type { Interval };

interface Lane {
  id: number;
  key: string;
  entities: string[];
  detections: Map<string, Detection>;
  retracted: Map<string, Detection>;
  /** By detection: the end that was reported previously. */
  revised: Map<string, number>;
  intervals: Interval[];
}

interface Group {
  query: string;
  isFluents: boolean;
  leftAt: number | null;
  lanes: Map<string, Lane>;
  names: string[];
  changed: Set<Lane>;
  columns: QueryIntervals;
}

/**
 * Intervals of one query in columns, sorted by start, for drawing. A new object after every change.
 */
export interface QueryIntervals {
  query: string;
  intervals: Interval[];
  start: Float64Array;
  /** `Infinity` while open. */
  end: Float64Array;
  /** Index into `lanes`. */
  lane: Int32Array;
  /** Names of groundings, in order of appearance. */
  lanes: string[];
  /** The number of answers: all but the retracted ones. */
  count: number;
  openCount: number;
}

export class IntervalsData {
  private readonly groups = new Map<string, Group>();
  private readonly laneOf = new Map<string, { group: Group; lane: Lane }>();

  /**
   * `isFluents`: whether the query's answers are fluents (rules over time), with a lane for each
   * value and grounding. `leftAt`: when the job stopped running the query's version, null while it
   * runs; asked again after `clear`.
   */
  constructor(
    private readonly isFluents: (query: string) => boolean = () => false,
    private readonly leftAt: (query: string) => number | null = () => null,
  ) {}

  clear(): void {
    this.groups.clear();
    this.laneOf.clear();
  }

  put(row: Detection): void {
    const group = this.group(row.query);
    const key = laneKey(group, row);
    const before = this.laneOf.get(row.id);
    if (before !== undefined && (before.lane.key !== key || before.group !== group)) this.remove(row.id);
    const lane = this.lane(group, key, row);
    const known = lane.detections.get(row.id);
    if (known !== undefined && known.end !== null && known.end !== row.end) lane.revised.set(row.id, known.end);
    lane.detections.set(row.id, row);
    lane.retracted.delete(row.id);
    this.laneOf.set(row.id, { group, lane });
    group.changed.add(lane);
  }

  /** Removes it as if it had never been asserted. */
  remove(id: string): void {
    const found = this.laneOf.get(id);
    if (found === undefined) return;
    const { group, lane } = found;
    this.laneOf.delete(id);
    lane.detections.delete(id);
    lane.retracted.delete(id);
    lane.revised.delete(id);
    if (lane.detections.size + lane.retracted.size === 0) group.lanes.delete(lane.key);
    group.changed.add(lane);
  }

  /**
   * Later events retracted it at the instant `at`: it stays visible; if it was open, up to that
   * instant. Null if it was not known.
   */
  retract(id: string, at: number): Detection | null {
    const row = this.laneOf.get(id)?.lane.detections.get(id);
    if (row === undefined) return null;
    this.remove(id);
    const ended = row.end === null ? { ...row, end: Math.max(row.start, at) } : row;
    this.putRetracted(ended);
    return ended;
  }

  /**
   * Was retracted before. A crossing leaves nothing, as its stay is rebuilt; an interval
   * that holds again is kept.
   */
  putRetracted(row: Detection): void {
    const group = this.group(row.query);
    if (this.laneOf.has(row.id) || isCrossing(group, row)) return;
    const lane = this.lane(group, laneKey(group, row), row);
    lane.retracted.set(row.id, row);
    this.laneOf.set(row.id, { group, lane });
    group.changed.add(lane);
  }

  /** Queries that have any detection, in no particular order. */
  queries(): string[] {
    return [...this.groups.keys()].filter((query) => this.of(query).intervals.length > 0);
  }

  of(query: string): QueryIntervals {
    const group = this.groups.get(query);
    if (group === undefined) return columnsOf(query, 0);
    if (group.changed.size > 0) {
      group.columns = merged(group);
      group.changed.clear();
    }
    return group.columns;
  }

  /** The interval that `key` begins or that contains the detection `key`. */
  find(key: string): Interval | null {
    const found = this.laneOf.get(key);
    if (found === undefined) return null;
    this.of(found.group.query);
    return found.lane.intervals.find((one) => one.key === key || one.detections.includes(key)) ?? null;
  }

  private group(query: string): Group {
    let group = this.groups.get(query);
    if (group === undefined) {
      group = {
        query,
        isFluents: this.isFluents(query),
        leftAt: this.leftAt(query),
        lanes: new Map(),
        names: [],
        changed: new Set(),
        columns: columnsOf(query, 0),
      };
      this.groups.set(query, group);
    }
    return group;
  }

  private lane(group: Group, key: string, row: Detection): Lane {
    let lane = group.lanes.get(key);
    if (lane === undefined) {
      lane = {
        id: group.names.length,
        key,
        entities: row.entities,
        detections: new Map(),
        retracted: new Map(),
        revised: new Map(),
        intervals: [],
      };
      group.lanes.set(key, lane);
      group.names.push(group.isFluents ? fluentName(row.kind, row.value, row.entities) : laneName(row.kind, row.entities));
    }
    return lane;
  }
}

function laneKey(group: Group, row: Detection): string {
  const who = row.entities.join("\u0000");
  return group.isFluents ? `${row.kind}\u0001${JSON.stringify(row.value)}\u0001${who}` : who;
}

function isCrossing(group: Group, row: Detection): boolean {
  return !group.isFluents && isOfStay(row.kind);
}

function columnsOf(query: string, size: number): QueryIntervals {
  return {
    query,
    intervals: new Array<Interval>(size),
    start: new Float64Array(size),
    end: new Float64Array(size),
    lane: new Int32Array(size),
    lanes: [],
    count: 0,
    openCount: 0,
  };
}

function laidOut({ isFluents, leftAt }: Group, { detections, retracted, revised }: Lane): Interval[] {
  const rows = [...detections.values()];
  const made = (isFluents ? rows.map(single) : pair(rows)).map((one) => cutAt(one, leftAt));
  for (const one of made) one.revisedFrom = revised.get(one.key) ?? null;
  for (const row of retracted.values()) made.push({ ...single(row), isRetracted: true });
  return made;
}

interface Placed {
  interval: Interval;
  lane: number;
}

/** The old columns with the changed lanes replaced: one pass over both, by start. */
function merged(group: Group): QueryIntervals {
  const old = group.columns;
  const isChanged = new Uint8Array(group.names.length);
  const fresh: Placed[] = [];
  for (const lane of group.changed) {
    isChanged[lane.id] = 1;
    lane.intervals = laidOut(group, lane);
    for (const interval of lane.intervals) fresh.push({ interval, lane: lane.id });
  }
  fresh.sort((a, b) => a.interval.start - b.interval.start || a.lane - b.lane);
  let kept = 0;
  for (const lane of old.lane) kept += 1 - isChanged[lane]!;
  const made = columnsOf(group.query, kept + fresh.length);
  made.lanes = group.names;
  let [from, next] = [0, 0];
  for (let at = 0; at < made.intervals.length; at++) {
    while (from < old.lane.length && isChanged[old.lane[from]!] === 1) from += 1;
    const other = fresh[next];
    const isOld =
      from < old.lane.length &&
      (other === undefined ||
        old.start[from]! < other.interval.start ||
        (old.start[from] === other.interval.start && old.lane[from]! < other.lane));
    if (isOld) place(made, at, old.intervals[from]!, old.lane[from++]!);
    else place(made, at, other!.interval, fresh[next++]!.lane);
  }
  return made;
}

function place(columns: QueryIntervals, at: number, interval: Interval, lane: number): void {
  columns.intervals[at] = interval;
  columns.start[at] = interval.start;
  columns.end[at] = interval.end ?? Infinity;
  columns.lane[at] = lane;
  if (interval.isRetracted) return;
  columns.count += 1;
  if (interval.end === null) columns.openCount += 1;
}
