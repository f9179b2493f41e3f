/** Values that occur in a column, as completions of a condition's constant. Pure. */

import { columnsOf } from "../lib/columns";
import { list, record } from "../lib/parse";
import type { Feed } from "../lib/shapes";

/** The most frequent of the newest rows: each with its count. Numbers have none. */
export const knownValues = record({ values: list((value) => (Array.isArray(value) ? String(value[0]) : "")) });

/** Whether a condition on the column compares with one of few texts, which can be offered. */
export function hasKnownValues(feed: Feed, column: string): boolean {
  const type = column === "event" || column === "entity" ? "string" : columnsOf(feed)[column];
  return type === "string" || type === "bool";
}

/**
 * What completes the typed text. Of a list, its last item: the items before it are part of each
 * completion, because choosing one replaces the whole text.
 */
export function completions(values: readonly string[], operator: string, typed: string): string[] {
  if (operator !== "in") return [...values];
  // A list is separated by commas: a value with one cannot be written.
  const plain = values.filter((value) => !value.includes(","));
  const before = typed.includes(",") ? `${typed.slice(0, typed.lastIndexOf(","))}, ` : "";
  const named = new Set(before.split(",").map((one) => one.trim()));
  return plain.filter((value) => !named.has(value)).map((value) => before + value);
}
