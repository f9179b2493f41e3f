/**
 * The live state of one feed: a snapshot at an outbox number, and the changes after it,
 * in order and without a gap.
 *
 * Pure: no DOM, no socket, no clock. If a frame does not follow, the outcome reports it, and the
 * caller subscribes again.
 */

import type { ChangesFrame, PositionsFrame, SnapshotFrame } from "../live/frames";
import type { Alert, Detection, Position } from "../lib/shapes";

export interface LiveData {
  feed: string;
  /** The last outbox number applied; null before the first snapshot. */
  seq: number | null;
  /** The snapshot contains all answers that began at or after it; null: all. */
  since: number | null;
  detections: Map<string, Detection>;
  alerts: Map<string, Alert>;
  positions: Map<string, Position>;
  /** The greatest event time seen in any frame; null before the first. */
  now: number | null;
}

export type Outcome =
  | { kind: "applied"; changed: Detection[]; removed: string[]; alerts: Alert[]; queries: string[]; isSnapshot: boolean }
  /** Already known. */
  | { kind: "repeated" }
  /** Numbers are missing between `since` and the frame: subscribe again with `since`. */
  | { kind: "gap"; since: number }
  /** Changes before any snapshot, or of another feed. */
  | { kind: "stray" };

export function emptyLiveData(feed: string): LiveData {
  return { feed, seq: null, since: null, detections: new Map(), alerts: new Map(), positions: new Map(), now: null };
}

export function applySnapshot(data: LiveData, frame: SnapshotFrame): Outcome {
  if (frame.feed !== data.feed) return { kind: "stray" };
  const removed = [...data.detections.keys()];
  data.detections.clear();
  data.alerts.clear();
  data.positions.clear();
  data.seq = frame.seq;
  data.since = frame.since;
  const changed = frame.detections.filter((row) => row.weight > 0);
  for (const row of changed) keep(data, row);
  for (const row of frame.alerts) data.alerts.set(row.id, row);
  for (const row of frame.positions) place(data, row);
  return {
    kind: "applied",
    changed,
    removed: removed.filter((key) => !data.detections.has(key)),
    alerts: frame.alerts,
    queries: [],
    isSnapshot: true,
  };
}

/**
 * Applies the changes with numbers from..seq. A frame that begins at or before the next number is
 * applied, because changes are idempotent; one that begins later leaves a gap.
 */
export function applyChanges(data: LiveData, frame: ChangesFrame): Outcome {
  if (frame.feed !== data.feed || data.seq === null) return { kind: "stray" };
  if (frame.seq <= data.seq) return { kind: "repeated" };
  if (frame.from > data.seq + 1) return { kind: "gap", since: data.seq };
  data.seq = frame.seq;
  const changed: Detection[] = [];
  const removed: string[] = [];
  for (const row of frame.detections) {
    if (row.weight > 0) {
      keep(data, row);
      changed.push(row);
    } else {
      // Applies to statuses older than the snapshot too: the page may have asked for it since.
      data.detections.delete(row.id);
      removed.push(row.id);
    }
  }
  for (const row of frame.alerts) data.alerts.set(row.id, row);
  return {
    kind: "applied",
    changed: changed.filter((row) => data.detections.get(row.id) === row),
    removed: removed.filter((key) => !data.detections.has(key)),
    alerts: frame.alerts,
    queries: frame.queries,
    isSnapshot: false,
  };
}

/** The latest position of each entity; an older sample that arrives late is ignored. */
export function applyPositions(data: LiveData, frame: PositionsFrame): Position[] {
  if (frame.feed !== data.feed) return [];
  if (frame.t !== null) advance(data, frame.t);
  return frame.entities.filter((row) => place(data, row));
}

function keep(data: LiveData, row: Detection): void {
  data.detections.set(row.id, row);
  advance(data, row.end ?? row.start);
}

function place(data: LiveData, row: Position): boolean {
  const known = data.positions.get(row[0]);
  if (known !== undefined && known[3] > row[3]) return false;
  data.positions.set(row[0], row);
  advance(data, row[3]);
  return true;
}

function advance(data: LiveData, t: number): void {
  if (data.now === null || t > data.now) data.now = t;
}
