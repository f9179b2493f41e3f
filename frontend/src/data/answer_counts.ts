/**
 * Counts of answers by query and time bin. The timeline shows them where there would
 * be too many single answers.
 */

import { endOf } from "../lib/families";
import { dictionary, list, number, record } from "../lib/parse";
import type { Period } from "./coverage";

const answer = record({ from: number, to: number, width: number, counts: dictionary(dictionary(list(list(number)))) });

export interface AnswerCounts {
  /** The bins are [from + n * width, from + (n + 1) * width), up to `to`. */
  from: number;
  to: number;
  width: number;
  /** By query; a stay counts once, in the bin where it begins. */
  byQuery: ReadonlyMap<string, Int32Array>;
  /** The number of rows that the server has of all queries. */
  total: number;
}

export function answerCounts(value: unknown): AnswerCounts {
  const { from, to, width, counts } = answer(value, "");
  const size = Math.round((to - from) / width);
  const byQuery = new Map<string, Int32Array>();
  let total = 0;
  for (const [query, kinds] of Object.entries(counts)) {
    const sums = new Int32Array(size);
    for (const [kind, rows] of Object.entries(kinds)) {
      const isEndOfStay = Object.keys(kinds).some((other) => endOf(other) === kind);
      for (const [place = 0, count = 0] of rows) {
        total += count;
        if (!isEndOfStay) sums[place]! += count;
      }
    }
    byQuery.set(query, sums);
  }
  return { from, to, width, byQuery, total };
}

/**
 * `gaps` widened to whole bins: answers that begin in them are counted, all
 * others are loaded one by one.
 */
export function countedPeriods({ from, width }: AnswerCounts, gaps: readonly Period[]): Period[] {
  return gaps.map(([a, b]) => [from + Math.floor((a - from) / width) * width, from + Math.ceil((b - from) / width) * width]);
}

/** How many answers begin in bins whose middle is in one of `gaps` and within [t0, t1). */
export function countWithin(
  { from, width, byQuery }: AnswerCounts,
  query: string,
  gaps: readonly Period[],
  t0: number,
  t1: number,
): number {
  const sums = byQuery.get(query);
  let total = 0;
  sums?.forEach((count, n) => {
    const middle = from + (n + 0.5) * width;
    if (count > 0 && middle >= t0 && middle < t1 && gaps.some(([a, b]) => a <= middle && middle < b)) total += count;
  });
  return total;
}
