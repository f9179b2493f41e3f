/**
 * When a regular reporter counts as silent: judged by its usual interval between
 * reports, on the feed's clock.
 *
 * Pure. Times are in the feed's unit.
 */

/**
 * After this many usual intervals without a report an entity may be anywhere: its
 * trail breaks, and it fades.
 */
export const SILENT_PERIODS = 12;
/** After this many it is removed. */
export const GONE_PERIODS = 48;

/**
 * The upper median; NaN of nothing. With one outlier among three it is
 * still one of the other values.
 */
export function median(values: Iterable<number>): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[sorted.length >> 1] ?? NaN;
}

/**
 * Parts of a track [t, ...] between silences; the usual interval is the median
 * of the track's intervals.
 */
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
