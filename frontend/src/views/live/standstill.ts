/** Below which speed something on the map counts as standing still: a buoy that drifts points nowhere. */

import type { Feed } from "../../data/shapes";

const LEAST_M_PER_S = 0.25;
const EQUATOR_M = 40_075_016;
const MAP_PX = 256;

/**
 * In pixels at zoom 0 for each unit of the feed's time, at the base coordinate y; on a plane, whose unit is unknown,
 * whatever moves moves.
 */
export function slowestOf({ crs, time }: Pick<Feed, "crs" | "time">): (py: number) => number {
  if (crs === "planar") return () => 0;
  const perUnit = (LEAST_M_PER_S / (time === "ms" ? 1000 : 1)) * (MAP_PX / EQUATOR_M);
  // Mercator stretches lengths by 1 / cos(latitude).
  return (py) => perUnit * Math.cosh(Math.PI * (1 - (2 * py) / MAP_PX));
}
