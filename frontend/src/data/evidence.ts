/** The events that explain an answer, in order, for any family of queries. Pure. */

import { kindOf } from "../lib/families";
import type { AlertDetail, Detection, EvidenceItem } from "../lib/shapes";
import { formatNumber, t } from "../lib/texts";

export interface EvidencePoint extends EvidenceItem {
  /** Counts from 1 in order of time: the same number on the map and in the list. */
  number: number;
}

/** The events of `rows` by time, each once: an `out` repeats the event that ended its `in`. */
export function orderedEvidence(rows: readonly Pick<Detection, "evidence">[]): EvidencePoint[] {
  const seen = new Map<string, EvidenceItem>();
  for (const item of rows.flatMap((row) => row.evidence)) {
    const key = JSON.stringify([item.variable, item.entity, item.t, item.x, item.y]);
    if (!seen.has(key)) seen.set(key, item);
  }
  return [...seen.values()].sort((a, b) => a.t - b.t).map((item, i) => ({ ...item, number: i + 1 }));
}

/** Whether a map can show anything of an alert: of rows without places it can not. */
export function hasPlaces({ shapes, evidence }: Pick<AlertDetail, "shapes" | "evidence">, events: readonly EvidenceItem[]): boolean {
  return (
    shapes.length > 0 || evidence.tracks.some(({ points }) => points.length > 0) || events.some(({ x, y }) => x !== null && y !== null)
  );
}

/** All participants: the answer's entities, then those that occur only in its evidence. */
export function participants(entities: readonly string[], evidence: readonly EvidenceItem[]): string[] {
  return [...new Set([...entities, ...evidence.map((item) => item.entity).filter((entity) => entity !== "")])];
}

/** A label at a position in the feed's coordinates. */
export interface Note {
  text: string;
  x: number;
  y: number;
}

/**
 * The distance between the two positions where a pair was closest, drawn between them. Only for
 * answers about encounters.
 */
export function closestNotes(rows: readonly Pick<Detection, "kind" | "value" | "evidence">[], isGeographic: boolean): Note[] {
  return rows.flatMap(({ kind, value, evidence }): Note[] => {
    const [one, other] = evidence;
    const distance = Number(value);
    if (
      kindOf(kind)?.isBetweenTwo !== true ||
      one === undefined ||
      other === undefined ||
      one.x === null ||
      one.y === null ||
      other.x === null ||
      other.y === null ||
      value === null ||
      !Number.isFinite(distance)
    )
      return [];
    return [
      {
        text: t("{distance} apart", { distance: `${formatNumber(Number(distance.toPrecision(3)))}${isGeographic ? " m" : ""}` }),
        x: (one.x + other.x) / 2,
        y: (one.y + other.y) / 2,
      },
    ];
  });
}

/**
 * The period that contains an answer and all its events: a witness may be long
 * before the answer begins.
 */
export function reach(start: number, end: number, rows: readonly Pick<Detection, "evidence">[]): [number, number] {
  const times = rows.flatMap((row) => row.evidence.map((item) => item.t));
  return [Math.min(start, ...times), Math.max(end, ...times)];
}

/**
 * Points closer than `reach` on the screen share a mark with their numbers, at
 * the position of the first.
 */
export interface Mark {
  x: number;
  y: number;
  points: EvidencePoint[];
}

export function marksOf(points: readonly EvidencePoint[], place: (point: EvidencePoint) => [number, number] | null, reach: number): Mark[] {
  const marks: Mark[] = [];
  for (const point of points) {
    const at = place(point);
    if (at === null) continue;
    const near = marks.find((mark) => Math.hypot(mark.x - at[0], mark.y - at[1]) < reach);
    if (near) near.points.push(point);
    else marks.push({ x: at[0], y: at[1], points: [point] });
  }
  return marks;
}

/** A rectangle on the screen, in CSS pixels. */
export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

/**
 * The first of `sides` that does not overlap `taken`, preferably one completely inside
 * `window`; null when none is free.
 */
export function freeSide(sides: readonly Box[], taken: readonly Box[], window: Box): Box | null {
  const free = sides.filter((side) => !taken.some((other) => meet(side, other)));
  return free.find((side) => holds(window, side)) ?? free[0] ?? null;
}

function meet(a: Box, b: Box): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

function holds(window: Box, box: Box): boolean {
  return box.x >= window.x && box.y >= window.y && box.x + box.w <= window.x + window.w && box.y + box.h <= window.y + window.h;
}

/** "1", "1, 3" or "2–5". */
export function numbersText(points: readonly EvidencePoint[]): string {
  const numbers = points.map((point) => point.number);
  const first = numbers[0] ?? 0;
  const last = numbers[numbers.length - 1] ?? 0;
  if (numbers.length > 2 && last - first === numbers.length - 1) return `${first}–${last}`;
  return numbers.join(", ");
}
