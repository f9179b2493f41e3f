/** The count over time as a small stepped line over the region. */

import { extremeWords, isAsked, levelsOf, steppedPath, type Counted, type OccupancyEntries } from "../data/occupancy_data";
import type { Feed } from "../lib/shapes";
import { h, svg } from "../lib/dom";
import { formatClock, formatNumber, type Zone } from "../lib/time";
import { t } from "../lib/texts";

/** CSS pixels. */
const [WIDTH, HEIGHT, EDGE] = [190, 52, 2];

export interface CountLineOptions {
  feed: Feed;
  zone: Zone;
  /**
   * The query's condition on the count: its level is drawn as a line, times at which
   * it holds are highlighted.
   */
  asked: Pick<OccupancyEntries, "counting" | "count">;
}

/** Null if nothing is known. */
export function countLine({ from, to, steps }: Counted, { feed, zone, asked }: CountLineOptions): HTMLElement | null {
  const begin = Math.max(from ?? 0, steps[0]?.[0] ?? Infinity);
  if (to === null || begin >= to) return null;
  const levels = levelsOf(steps, begin, to);
  const [most, last] = [Math.max(...levels.map(({ count }) => count), Number(asked.count) || 0), levels[levels.length - 1]!];
  const inner = HEIGHT - 2 * EDGE;
  const x = (t: number): number => ((t - begin) / (to - begin)) * WIDTH;
  const y = (count: number): number => HEIGHT - EDGE - (count / Math.max(1, most)) * inner;
  const bands = levels
    .filter(({ count }) => isAsked(count, asked))
    .map((level) =>
      svg("rect", {
        class: "count-asked",
        x: x(level.from).toFixed(1),
        y: 0,
        width: Math.max(0.5, x(level.to) - x(level.from)).toFixed(1),
        height: HEIGHT,
      }),
    );
  const line = svg("path", { class: "count-steps", d: steppedPath(levels, most, WIDTH, inner), transform: `translate(0 ${EDGE})` });
  const wanted = Number(asked.count) || 0;
  const level = svg("line", { class: "count-level", x1: 0, x2: WIDTH, y1: y(wanted), y2: y(wanted) });
  const extreme = extremeWords(levels, asked);
  const clock = (at: number): string => formatClock(at, feed.time, zone);
  const label = t("{count} there at {to}, {extreme} since {begin}", {
    count: formatNumber(last.count),
    to: clock(to),
    extreme,
    begin: clock(begin),
  });
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": label },
    ...bands,
    level,
    line,
  );
  return h(
    "figure",
    { class: "count-line" },
    picture,
    h(
      "figcaption",
      { class: "num" },
      h("strong", {}, extreme),
      h("span", { class: "faint" }, `${formatClock(begin, feed.time, zone)} – ${formatClock(to, feed.time, zone)}`),
    ),
  );
}
