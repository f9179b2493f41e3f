/** Longitudes on a map of the globe that may be viewed across the antimeridian. Pure. */

import type { Feed } from "./shapes";

/**
 * Longitudes of a geographic feed relative to the middle of its view: a feed in the Pacific is
 * drawn in one piece, not cut at the antimeridian.
 */
export function worldCopy(feed: Pick<Feed, "crs" | "view">): (x: number) => number {
  if (feed.crs === "planar") return (x) => x;
  const middle = feed.view?.center[0] ?? 0;
  return (x) => (Math.abs(x - middle) <= 180 ? x : x + 360 * Math.round((middle - x) / 360));
}
