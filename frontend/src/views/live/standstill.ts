/**
 * The speed below which something on the map counts as stationary: a drifting buoy has no heading.
 */

import type { Feed } from "../../lib/shapes";

const LEAST_M_PER_S = 0.25;
const EQUATOR_M = 40_075_016;
const MAP_PX = 256;

type Scales = Pick<Feed, "crs" | "time">;

/**
 * One metre per second in pixels at zoom 0 per unit of the feed's time, at the base coordinate y;
 * null on a plane, whose unit is unknown.
 */
export function metrePerSecond({ crs, time }: Scales): ((py: number) => number) | null {
  if (crs === "planar") return null;
  const perUnit = (1 / (time === "ms" ? 1000 : 1)) * (MAP_PX / EQUATOR_M);
  // Mercator stretches lengths by 1 / cos(latitude).
  return (py) => perUnit * Math.cosh(Math.PI * (1 - (2 * py) / MAP_PX));
}

/**
 * In pixels at zoom 0 per unit of the feed's time, at the base coordinate y; on a
 * plane any movement counts.
 */
export function slowestOf(feed: Scales): (py: number) => number {
  const scale = metrePerSecond(feed);
  return scale === null ? () => 0 : (py) => LEAST_M_PER_S * scale(py);
}
