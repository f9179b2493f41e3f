/**
 * Periods of a feed's history, in its unit, on which rules are tried to explain an answer, and
 * their form in the page's address. Pure.
 */

import { t } from "../lib/texts";
import { formatSpan, type TimeUnit } from "../lib/time";

/** Both ends closed. */
export interface Period {
  from: number;
  to: number;
}

/** As a request names it: both ends, or the last minutes of the feed. */
export type PeriodRequest = Period | { minutes: number };

/** The fluent or event of the answer, and the instant that is explained. */
export interface Answer {
  what: string;
  args: readonly string[];
  at: number;
}

/** A period on which rules are tried at once, and the answer that is shown first. */
export interface TrialRequest extends Period {
  answer: Answer | null;
  /** The query version whose rules apply; null: the newest. */
  version: number | null;
}

/** The length of a minute on a feed of ticks, as on the server. */
const MINUTE = { ms: 60_000, ticks: 1500 } as const;
/**
 * The longest period that is tried at once: busy feeds have more rows than that in a longer
 * time. Ticks have no limit.
 */
const MOST_BEFORE = { ms: 15 * MINUTE.ms, ticks: Infinity } as const;

const DAY = 1440;
const NAMED: Readonly<Record<number, string>> = {
  60: t("last hour"),
  [DAY]: t("last day"),
  [7 * DAY]: t("last week"),
  [30 * DAY]: t("last 30 days"),
  [366 * DAY]: t("last year"),
};

/** The last minutes in the feed's unit: "last 10 min", "last hour", "last 15,000 ticks". */
export function lastWords(minutes: number, unit: TimeUnit): string {
  const named = unit === "ms" ? NAMED[minutes] : undefined;
  return named ?? t("last {value}", { value: formatSpan(minutes * MINUTE[unit], unit) });
}

/**
 * Where to look for the causes of an answer of rules with a window of `memory`: all of it and the
 * time before; for a long answer its beginning and its end separately. A condition with a duration
 * may not hold yet at the beginning, so that period lasts longer.
 */
export function periodsOf(
  { start, end }: { start: number; end: number | null },
  memory: number | null,
  unit: TimeUnit,
): { about: "whole" | "beginning" | "end"; at: number; period: Period }[] {
  const before = Math.max(MINUTE[unit], Math.min(memory ?? 10 * MINUTE[unit], MOST_BEFORE[unit]));
  const after = Math.ceil(before / 10);
  const around = (first: number, last: number): Period => ({ from: first - before, to: last + after });
  if (end === null) return [{ about: "beginning", at: start, period: around(start, start + before) }];
  if (end - start <= before) return [{ about: "whole", at: start, period: around(start, end) }];
  return [
    { about: "beginning", at: start, period: around(start, start + before) },
    { about: "end", at: end, period: around(end, end) },
  ];
}

/** The address of the query's page that tries the rules of `version` on a period. */
export function tryAddress(query: string, { from, to }: Period, { what, args, at }: Answer, version: number | null): string {
  const search = new URLSearchParams({
    ...(version === null ? {} : { version: String(version) }),
    from: String(from),
    to: String(to),
    what,
    at: String(at),
  });
  for (const arg of args) search.append("who", arg);
  return `/queries/${query}?${search.toString()}`;
}

export function trialRequestOf(search: string): TrialRequest | null {
  const asked = new URLSearchParams(search);
  const [from, to, at] = ["from", "to", "at"].map((name) => (/^-?\d+$/.test(asked.get(name) ?? "") ? Number(asked.get(name)) : NaN)) as [
    number,
    number,
    number,
  ];
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || from >= to) return null;
  const what = asked.get("what");
  const version = /^[1-9]\d{0,8}$/.test(asked.get("version") ?? "") ? Number(asked.get("version")) : null;
  return { from, to, version, answer: what === null || !Number.isSafeInteger(at) ? null : { what, args: asked.getAll("who"), at } };
}
