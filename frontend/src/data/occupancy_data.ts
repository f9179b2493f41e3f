/**
 * Conversion between editor entries and documents of the family `occupancy`, in both directions;
 * and the count over time. Pure.
 */

import type { Fault } from "../lib/api";
import { integer, list, nullable, number, record } from "../lib/parse";
import { formatNumber } from "../lib/time";
import { asList, asSpan, bound, missingKey, othersOf, type Span } from "./document_data";
import type { Feed } from "../lib/shapes";
import { readWatched, writtenWatched, type Watched } from "./watched_data";
import { t } from "../lib/texts";

export const COUNTINGS = [">=", "<="] as const;
export type Counting = (typeof COUNTINGS)[number];

export interface OccupancyEntries extends Watched {
  counting: Counting;
  /** As typed. */
  count: string;
  /** How long a report is valid; null: until the next one. */
  stale: Span;
  lasting: Span;
  where: unknown[];
  others: Record<string, unknown>;
}

const OWN_KEYS = new Set(["family", "version", "region", "ranges", "count", "stale", "lasting", "where"]);

/** A new query asks for five entities, and does not count those that have been silent for long. */
export function fromDocument(document: Record<string, unknown>, feed: Feed): OccupancyEntries {
  const { count, stale, lasting, where } = document;
  const isNew = count === undefined;
  const [op, n] = Array.isArray(count) ? (count as unknown[]) : [">=", 5];
  return {
    ...readWatched(document),
    counting: op === "<=" ? "<=" : ">=",
    count: typeof n === "number" || typeof n === "string" ? String(n) : "",
    stale: isNew && stale === undefined && feed.time === "ms" ? "PT5M" : asSpan(stale),
    lasting: asSpan(lasting),
    where: asList(where),
    others: othersOf(document, OWN_KEYS),
  };
}

export function toDocument(entries: OccupancyEntries): Record<string, unknown> {
  const { counting, count, stale, lasting, where, others } = entries;
  const document: Record<string, unknown> = {
    ...others,
    family: "occupancy",
    version: 1,
    ...writtenWatched(entries),
    count: [counting, bound(count)],
  };
  if (lasting !== null) document["lasting"] = lasting;
  if (stale !== null) document["stale"] = stale;
  if (where.length > 0) document["where"] = where;
  return document;
}

/** Faults for fields that are still empty. */
export function faultInForm(fault: Fault, { place, region, ranges, count }: OccupancyEntries): Fault {
  if (fault.pointer === "" && place === "region" && region === null && fault.message.includes("'region'"))
    return { pointer: "/region", message: t("No region yet: draw one on the map, choose a stored one or import a file.") };
  if (fault.pointer === "/ranges" && ranges.every((row) => row.column === ""))
    return { ...fault, message: t("No range yet: add one, and enter its bounds.") };
  if (fault.pointer === "/count/1" && count.trim() === "") return { ...fault, message: t("No number yet: enter how many.") };
  return missingKey(fault) === "count" ? { pointer: "/count", message: t("No number yet: enter how many.") } : fault;
}

// ---- The count over time

export const countedAnswer = record({ from: nullable(number), to: nullable(number), rows: integer, steps: list(list(number)) });
export type Counted = ReturnType<typeof countedAnswer>;

/** One level of the count: from `from` to `to`, the end exclusive. */
export interface Level {
  from: number;
  to: number;
  count: number;
}

/** The levels between two times from steps [t, count], where each count holds from its t on. */
export function levelsOf(steps: readonly (readonly number[])[], from: number, to: number): Level[] {
  const levels: Level[] = [];
  steps.forEach(([t = 0, count = 0], i) => {
    const [begin, end] = [Math.max(from, t), Math.min(to, steps[i + 1]?.[0] ?? to)];
    if (begin < end) levels.push({ from: begin, to: end, count });
  });
  return levels;
}

/**
 * The SVG path of the stepped line in a frame of `width` by `height`, the count 0 at the
 * bottom and `most` at the top.
 */
export function steppedPath(levels: readonly Level[], most: number, width: number, height: number): string {
  const [first, last] = [levels[0], levels[levels.length - 1]];
  if (first === undefined || last === undefined) return "";
  const x = (t: number): string => (((t - first.from) / Math.max(1, last.to - first.from)) * width).toFixed(1);
  const y = (count: number): string => (height - (count / Math.max(1, most)) * height).toFixed(1);
  return levels.map((level, i) => `${i === 0 ? "M" : "L"}${x(level.from)} ${y(level.count)}L${x(level.to)} ${y(level.count)}`).join("");
}

/**
 * The extreme count of the period as text: the greatest if the query waits for many, the
 * least if it waits for few.
 */
export function extremeWords(levels: readonly Level[], { counting }: Pick<OccupancyEntries, "counting">): string {
  const counts = levels.map(({ count }) => count);
  return counting === ">="
    ? t("at most {value}", { value: formatNumber(Math.max(...counts)) })
    : t("at least {value}", { value: formatNumber(Math.min(...counts)) });
}

/** Whether a count satisfies the query. */
export function isAsked(count: number, { counting, count: n }: Pick<OccupancyEntries, "counting" | "count">): boolean {
  return counting === ">=" ? count >= Number(n) : count <= Number(n);
}
