/**
 * Results of the sandbox: lanes of fluents and events with the rules of their edges, which lanes
 * are shown, and their layout. Pure.
 */

import type { Answer } from "./period";
import { boolean, integer, list, nullable, number, oneOf, otherwise, record, string } from "../lib/parse";

const edge = nullable(record({ rule: integer, because: otherwise(list(string), []) }));
export type Edge = ReturnType<typeof edge>;
const interval = record({ start: number, end: nullable(number), began: edge, ended: edge });
export type SandboxInterval = ReturnType<typeof interval>;
const lane = record({
  fluent: string,
  args: list(string),
  value: nullable(string),
  kind: oneOf("input", "simple", "derived", "event"),
  level: integer,
  is_output: boolean,
  intervals: list(interval),
});
export type Lane = ReturnType<typeof lane>;
const rule = record({ line: integer, text: string });
export type Rule = ReturnType<typeof rule>;
export const sandboxAnswer = record({
  from: otherwise(number, 0),
  to: otherwise(number, 0),
  rows: integer,
  absent: otherwise(list(string), []),
  events: otherwise(list(string), []),
  seconds: otherwise(number, 0),
  entities: nullable(list(string)),
  rules: list(rule),
  lanes: list(lane),
});
export type SandboxAnswer = ReturnType<typeof sandboxAnswer>;

/** `near(a, b) = true`; the value is left out if the fluent has no other value than true. */
export function laneName({ fluent, args, value }: Pick<Lane, "fluent" | "args" | "value">): string {
  const head = args.length === 0 ? fluent : `${fluent}(${args.join(", ")})`;
  return value === null || value === "true" ? head : `${head} = ${value}`;
}

/**
 * The groundings of outputs, those with the most intervals first; then those of other
 * fluents about several entities.
 */
export function groundings(lanes: readonly Lane[]): string[][] {
  const counts = new Map<string, { args: string[]; output: number; all: number }>();
  for (const { args, is_output: isOutput, intervals } of lanes) {
    if (args.length === 0) continue;
    const key = JSON.stringify(args);
    const found = counts.get(key) ?? { args, output: 0, all: 0 };
    if (isOutput) found.output += intervals.length;
    found.all += intervals.length;
    counts.set(key, found);
  }
  return [...counts.values()]
    .sort(
      (a, b) =>
        b.output - a.output || b.args.length - a.args.length || b.all - a.all || (JSON.stringify(a.args) < JSON.stringify(b.args) ? -1 : 1),
    )
    .map(({ args }) => args);
}

export interface LaneFilter {
  /** Only lanes about these entities; null for all. */
  grounding: readonly string[] | null;
  /** Words that must all occur in a lane's name. */
  words: string;
}

/** The lanes to show, inputs first, outputs last, as the server orders them by level. */
export function shownLanes(lanes: readonly Lane[], { grounding, words }: LaneFilter): Lane[] {
  const wanted = words
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return lanes.filter((one) => {
    if (grounding !== null && !one.args.every((arg) => grounding.includes(arg))) return false;
    const name = laneName(one).toLowerCase();
    return wanted.every((word) => name.includes(word));
  });
}

/**
 * The interval of a lane at a time, or the nearest one within `reach` (in the
 * unit of t); null for none.
 */
export function intervalAt(one: Lane, t: number, reach: number): SandboxInterval | null {
  let best: SandboxInterval | null = null;
  let least = reach;
  for (const candidate of one.intervals) {
    const end = candidate.end ?? Infinity;
    const away = t < candidate.start ? candidate.start - t : t > end ? t - end : 0;
    if (away < least || (away === 0 && best === null)) [best, least] = [candidate, away];
    if (away === 0) return candidate;
  }
  return best;
}

/** The lane of an answer and the interval to explain; null when the period does not contain it. */
export function answered(lanes: readonly Lane[], { what, args, at }: Answer): { lane: Lane; interval: SandboxInterval } | null {
  const own = lanes.filter((one) => one.fluent === what && args.every((arg) => one.args.includes(arg)));
  const lane = own.find((one) => one.intervals.some(({ start, end }) => start === at || end === at)) ?? own[0];
  const interval =
    lane === undefined ? null : (lane.intervals.find(({ start, end }) => start === at || end === at) ?? intervalAt(lane, at, Infinity));
  return lane === undefined || interval === null ? null : { lane, interval };
}

/** The program lines of a rule (from 1, both ends included). */
export function ruleLines({ line, text }: Rule): [number, number] {
  return [line, line + text.split("\n").length - 1];
}
