/**
 * The visible part of the live map: panels may cover it. Pure arithmetic in CSS pixels of the page.
 */

import type { Edges } from "../map_view";

/** A visible part smaller than this (CSS pixels) is useless. */
const LEAST_CLEAR_PX = 60;

/**
 * How much of the map's window is covered from each edge. A panel covers it from the side to which
 * it is attached: the bottom, if it has the full width, else left or right.
 */
export function covered(map: Edges, panels: readonly Edges[]): Edges {
  const found: Edges = { left: 0, top: 0, right: 0, bottom: 0 };
  for (const panel of panels) {
    const [left, right] = [Math.max(map.left, panel.left), Math.min(map.right, panel.right)];
    const [top, bottom] = [Math.max(map.top, panel.top), Math.min(map.bottom, panel.bottom)];
    if (left >= right || top >= bottom) continue;
    if (right - left > (map.right - map.left) * 0.95) found.bottom = Math.max(found.bottom, map.bottom - top);
    else if (left - map.left < map.right - right) found.left = Math.max(found.left, right - map.left);
    else found.right = Math.max(found.right, map.right - left);
  }
  return found;
}

/**
 * The time window that shows [from, to] in the part of a plot that is not
 * covered from left and right.
 */
export function windowInSight([from, to]: readonly [number, number], plot: Edges, { left, right }: Edges): [number, number] {
  const clear = plot.right - plot.left - left - right;
  if (clear < LEAST_CLEAR_PX) return [from, to];
  const perPixel = (to - from) / clear;
  return [from - left * perPixel, to + right * perPixel];
}
