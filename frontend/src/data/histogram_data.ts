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

/** A hundred or so round steps from the least to the greatest value; whole ones for a column of whole numbers. */
export interface Scale {
  min: number;
  max: number;
  step: number;
}

/** Null where a slider has no use: no values, or all the same. */
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

/** Where a value stands on the scale, 0 to 1; values beyond it at its ends. */
export function shareOf(scale: Scale, value: number): number {
  return Math.min(1, Math.max(0, (value - scale.min) / (scale.max - scale.min)));
}

/** Without the tail of binary fractions: 0.30000000000000004 on steps of 0.1 is 0.3. */
function tidy(value: number, step: number): number {
  return Number(value.toFixed(Math.max(0, Math.ceil(-Math.log10(step)) + 1)));
}

/** Bars 0 to 1 high, low counts still to be seen: the square root of the share of the greatest. */
export function barHeights(counts: readonly number[]): number[] {
  const most = Math.max(1, ...counts);
  return counts.map((count) => (count === 0 ? 0 : Math.max(0.06, Math.sqrt(count / most))));
}
