/**
 * When something that reports again and again has fallen silent: judged by how often it reports otherwise, on the feed's own clock.
 *
 * Pure. Times are in the feed's unit.
 */

/** After this many of its usual periods without a report an entity may be anywhere: its trail breaks, and it fades. */
export const SILENT_PERIODS = 12;
/** After this many it is removed. */
export const GONE_PERIODS = 48;

/** The upper one of the two in the middle; NaN of nothing. One exception among three moves it to a value that is there. */
export function median(values: Iterable<number>): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[sorted.length >> 1] ?? NaN;
}

/** Parts of a track [t, ...] between two silences; the usual period is the median of its own. */
export function unbroken<Point extends readonly [number, ...unknown[]]>(points: readonly Point[]): Point[][] {
  const gaps = points.slice(1).map((point, i) => point[0] - points[i]![0]);
  const longest = SILENT_PERIODS * median(gaps.filter((gap) => gap > 0));
  const parts: Point[][] = [];
  points.forEach((point, i) => {
    const before = points[i - 1];
    if (before === undefined || point[0] - before[0] > longest) parts.push([]);
    parts[parts.length - 1]!.push(point);
  });
  return parts;
}
