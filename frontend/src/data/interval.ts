/**
 * One interval or mark of the timeline, its name, and how stays are paired from the
 * answers that begin and end them.
 */

import { endOf, isEnding } from "../lib/families";
import { kindName } from "../lib/words";
import type { Detection } from "../lib/shapes";

export interface Interval {
  /** The id of the detection that begins it: stable while it grows. */
  key: string;
  query: string;
  entities: string[];
  /** `stay` for what one answer began and another ended, else the detections' kind. */
  kind: string;
  value: unknown;
  /** Event time, in the feed's unit. */
  start: number;
  /** Exclusive for stays and fluents; null while it holds. */
  end: number | null;
  /** An instant: start = end. */
  isMark: boolean;
  /** The detections it is made of, in order. */
  detections: string[];
  /** Asserted, then retracted by later events; shown, but not an answer. */
  isRetracted: boolean;
  /** It was open when its query was edited or switched off, and ends there. */
  isCut: boolean;
  /** The end that was reported before later events moved it; null if it was never moved. */
  revisedFrom: number | null;
}

/** The entities of the answer; an answer without entities is named by its kind. */
export function laneName(kind: string, entities: readonly string[]): string {
  return entities.length === 0 ? kindName(kind) : entities.join(" · ");
}

/** `activity(id3) = walking`; the value `true` is left out. */
export function fluentName(kind: string, value: unknown, entities: readonly string[]): string {
  const suffix =
    value === null || value === undefined || value === true || value === "true"
      ? ""
      : ` = ${typeof value === "string" ? value : JSON.stringify(value)}`;
  return `${kind}${entities.length === 0 ? "" : `(${entities.join(", ")})`}${suffix}`;
}

/** An open answer ends at `leftAt`, when the job stopped running its query version. */
export function cutAt(interval: Interval, leftAt: number | null): Interval {
  return leftAt === null || interval.end !== null ? interval : { ...interval, end: Math.max(interval.start, leftAt), isCut: true };
}

/**
 * The intervals of one query and grounding. Answers that begin a stay and answers that end it
 * alternate: a stay is one with the next other, [begin, end). Of two at the same time, the one that
 * the previous state allows comes first.
 */
export function pair(rows: readonly Detection[]): Interval[] {
  const sorted = [...rows].sort((a, b) => a.start - b.start || a.kind.localeCompare(b.kind));
  const result: Interval[] = [];
  let open: Interval | null = null;
  const ties: Detection[] = [];
  const settle = (): void => {
    while (ties.length > 0) {
      const isOpen: boolean = open !== null;
      const at = Math.max(
        0,
        ties.findIndex((row) => isEnding(row.kind) === isOpen),
      );
      open = step(result, open, ties[at]!);
      ties.splice(at, 1);
    }
  };
  for (const row of sorted) {
    if (!isOfStay(row.kind)) {
      result.push(single(row));
      continue;
    }
    if (ties[0] !== undefined && ties[0].start !== row.start) settle();
    ties.push(row);
  }
  settle();
  return result.sort((a, b) => a.start - b.start);
}

/** Whether answers of this kind begin or end a stay. */
export function isOfStay(kind: string): boolean {
  return endOf(kind) !== undefined || isEnding(kind);
}

function step(result: Interval[], open: Interval | null, row: Detection): Interval | null {
  if (!isEnding(row.kind)) {
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

export function single(row: Detection): Interval {
  return {
    key: row.id,
    query: row.query,
    entities: row.entities,
    kind: row.kind,
    value: row.value,
    start: row.start,
    end: row.end,
    isMark: row.end === row.start,
    detections: [row.id],
    isCut: row.cut,
    isRetracted: false,
    revisedFrom: null,
  };
}
