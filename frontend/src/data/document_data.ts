/** Document functions shared by the editors of all families. Pure. */

import type { Fault } from "../lib/api";

/**
 * A length of time as in the document: a number in the feed's unit or an ISO 8601
 * duration; null for an empty field.
 */
export type Span = string | number | null;

export function asSpan(value: unknown): Span {
  return typeof value === "string" || typeof value === "number" ? value : null;
}

export function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** An invalid bound is sent as typed: the server reports the fault. */
export function bound(text: string): number | string | null {
  const trimmed = text.trim().replace("−", "-");
  if (trimmed === "") return null;
  const value = decimal(trimmed);
  return Number.isFinite(value) ? value : trimmed;
}

/**
 * With a comma or a point before the decimals; NaN for any other text, and for "1,000", which
 * may be a thousand or one.
 */
export function decimal(text: string): number {
  const trimmed = text.trim();
  const isGrouped = /^-?[1-9]\d{0,2}(,\d{3})+$/.test(trimmed);
  return trimmed === "" || isGrouped ? NaN : Number(trimmed.replace(",", "."));
}

/** The keys that the editor has no field for: they are kept unchanged. */
export function othersOf(document: Record<string, unknown>, own: ReadonlySet<string>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(document).filter(([key]) => !own.has(key)));
}

/**
 * The document to save: each key that the editor has not changed since it opened `stored` keeps its
 * stored form, even if the editor would leave it out or write it differently. `opened` is the
 * editor's document right after opening.
 */
export function kept(
  stored: Record<string, unknown>,
  opened: Record<string, unknown>,
  now: Record<string, unknown>,
): Record<string, unknown> {
  const isSame = (key: string): boolean => JSON.stringify(opened[key]) === JSON.stringify(now[key]);
  const before = Object.entries(stored).filter(([key]) => isSame(key) || key in now);
  const after = Object.keys(now).filter((key) => !(key in stored) && !isSame(key));
  return Object.fromEntries([
    ...before.map(([key, value]): [string, unknown] => [key, isSame(key) ? value : now[key]]),
    ...after.map((key): [string, unknown] => [key, now[key]]),
  ]);
}

/**
 * The key that a fault of the whole document reports as missing, in the page's language;
 * null for any other fault.
 */
export function missingKey({ pointer, message }: Fault): string | null {
  return pointer === "" ? (/^(?:the key|der Schlüssel) '(\w+)' (?:is missing|fehlt)/.exec(message)?.[1] ?? null) : null;
}

/** Faults for fields that are still empty: `missing` has their texts, by key. */
export function faultOfEmpty(fault: Fault, missing: Readonly<Record<string, string>>): Fault {
  const key = missingKey(fault);
  return key !== null && key in missing ? { pointer: `/${key}`, message: missing[key]! } : fault;
}
