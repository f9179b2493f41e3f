/** The grid of a heat map. Pure. */

import { integer, list, record } from "../lib/parse";

export const density = record({ from: integer, to: integer, total: integer, counts: list(integer) });

/** The size of a cell in CSS pixels, and the maximum number of cells of a grid. */
const [CELL_PX, MOST_CELLS] = [10, 40_000];

/** Columns and rows of the grid of a window, given in CSS pixels. */
export function gridOf(width: number, height: number): { columns: number; rows: number } {
  const cell = Math.max(CELL_PX, Math.sqrt((width * height) / MOST_CELLS));
  return { columns: Math.max(1, Math.floor(width / cell)), rows: Math.max(1, Math.floor(height / cell)) };
}

/**
 * The opacity of a cell, 0 to 1: the square root of its share, so that a port does
 * not hide the lanes to it.
 */
export function strength(count: number, most: number): number {
  return count === 0 ? 0 : Math.sqrt(count / Math.max(1, most));
}
