/** The scale of a slider over a column's recent values. Pure. */

import { integer, list, nullable, number, record, string } from "../lib/parse";

export const histogram = record({
  column: string,
  rows: integer,
  nulls: integer,
  min: nullable(number),
  max: nullable(number),
  edges: list(number),
  counts: list(integer),
});
export type Histogram = ReturnType<typeof histogram>;

/**
 * About a hundred round steps from the least to the greatest value; integers for an integer column.
 */
export interface Scale {
  min: number;
  max: number;
  step: number;
}

/** Null if a slider is useless: no values, or all equal. */
export function scaleOf({ min, max }: Pick<Histogram, "min" | "max">, isWhole: boolean): Scale | null {
  if (min === null || max === null || min >= max) return null;
  const rough = (max - min) / 100;
  const power = 10 ** Math.floor(Math.log10(rough));
  const round = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough * (1 - 1e-9)) ?? rough;
  const step = isWhole ? Math.max(1, Math.round(round)) : round;
  return { min: Math.floor(min / step) * step, max: Math.ceil(max / step) * step, step };
}

/** The value at a share (0 to 1) of the scale, on one of its steps. */
export function valueAt(scale: Scale, share: number): number {
  const value = scale.min + Math.min(1, Math.max(0, share)) * (scale.max - scale.min);
  return tidy(Math.round(value / scale.step) * scale.step, scale.step);
}

/** The position of a value on the scale, 0 to 1; values outside are clamped. */
export function shareOf(scale: Scale, value: number): number {
  return Math.min(1, Math.max(0, (value - scale.min) / (scale.max - scale.min)));
}

/** Removes binary rounding errors: 0.30000000000000004 on steps of 0.1 is 0.3. */
function tidy(value: number, step: number): number {
  return Number(value.toFixed(Math.max(0, Math.ceil(-Math.log10(step)) + 1)));
}

/**
 * Heights of bars, 0 to 1: the square root of the share of the greatest, so
 * that low counts stay visible.
 */
export function barHeights(counts: readonly number[]): number[] {
  const most = Math.max(1, ...counts);
  return counts.map((count) => (count === 0 ? 0 : Math.max(0.06, Math.sqrt(count / most))));
}
