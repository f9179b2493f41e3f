/**
 * Which distance and span are unusually close on a feed, for the first proposal of a query about
 * events close together. Pure.
 */

import type { Feed, Position } from "../lib/shapes";
import { median } from "./silence";

/** Only the closest 2 of 100 entities have their neighbours within the proposed distance. */
const CLOSE_SHARE = 0.02;
/** The work stays below a tenth of a second. */
const MOST_PAIRS = 4_000_000;
const SECONDS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 10_800, 21_600, 43_200];
const M_PER_DEGREE = 111_195;

export interface Nearness {
  /** Metres, or units of the plan. */
  distance: number;
  /** In the feed's time: about the usual interval between an entity's reports. */
  within: string | number;
}

/** For sets of `k` different entities; null with too few of them. */
export function nearness(rows: readonly Position[], k: number, feed: Pick<Feed, "crs" | "time">): Nearness | null {
  if (rows.length < k) return null;
  const subjects = Math.max(1, Math.min(rows.length, Math.floor(MOST_PAIRS / rows.length)));
  const step = rows.length / subjects;
  const reach = Array.from({ length: subjects }, (_, i) => neighbourAt(rows, Math.floor(i * step), k - 1, feed.crs === "geographic")).sort(
    (a, b) => a - b,
  );
  const newest = rows.reduce((latest, [, , , t]) => Math.max(latest, t), -Infinity);
  // At a random moment the last report is typically half an interval old.
  const interval = 2 * median(rows.map(([, , , t]) => newest - t));
  const distance = round(reach[Math.floor(CLOSE_SHARE * reach.length)]!);
  return { distance, within: feed.time === "ms" ? duration(interval) : Math.ceil(round(interval)) };
}

/** The distance to the n-th nearest other entity. */
function neighbourAt(rows: readonly Position[], at: number, n: number, isGeographic: boolean): number {
  const [, x, y] = rows[at]!;
  const [perX, perY] = isGeographic ? [M_PER_DEGREE * Math.cos((y * Math.PI) / 180), M_PER_DEGREE] : [1, 1];
  const nearest = new Float64Array(n).fill(Infinity);
  rows.forEach(([, px, py], i) => {
    if (i === at) return;
    const dx = isGeographic ? ((px - x + 540) % 360) - 180 : px - x;
    let distance = Math.hypot(dx * perX, (py - y) * perY);
    for (let j = 0; j < n; j++)
      if (distance < nearest[j]!) {
        const before = nearest[j]!;
        nearest[j] = distance;
        distance = before;
      }
  });
  return nearest[n - 1]!;
}

/** Up to 1, 2 or 5 times a power of ten, at least 1. */
function round(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return power * (value <= power ? 1 : value <= 2 * power ? 2 : value <= 5 * power ? 5 : 10);
}

function duration(ms: number): string {
  const seconds = SECONDS.find((one) => one * 1000 >= ms) ?? 86_400;
  if (seconds < 60) return `PT${seconds}S`;
  return seconds < 3600 ? `PT${seconds / 60}M` : seconds < 86_400 ? `PT${seconds / 3600}H` : "P1D";
}
