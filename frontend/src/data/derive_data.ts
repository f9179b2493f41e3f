/**
 * Answers of other queries as events: conversion between a document's `derive` and the rows of a
 * form, in both directions. Pure.
 */

import { familyOf } from "../lib/families";
import { ABOUT_SEVERAL } from "../lib/families/family";
import { isObject } from "../lib/parse";
import type { Feed, QueryRow } from "../lib/shapes";

/** Offered in forms; others may be typed. */
const OFFERED_ENTITIES = 4;

export const MOMENTS = ["start", "end"] as const;
export type Moment = (typeof MOMENTS)[number];

export interface DerivedEvent {
  /** The event's name. */
  event: string;
  /** The name or id of the other query. */
  query: string;
  kind: string;
  at: Moment;
}

export function readDerive(value: unknown): DerivedEvent[] {
  if (!isObject(value)) return [];
  return Object.entries(value).map(([event, source]) => {
    const { query, kind, at } = isObject(source) ? source : {};
    return { event, query: text(query), kind: text(kind), at: at === "start" ? "start" : "end" };
  });
}

function text(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** Null without rows. */
export function writtenDerive(events: readonly DerivedEvent[]): Record<string, unknown> | null {
  return events.length === 0 ? null : Object.fromEntries(events.map(({ event, query, kind, at }) => [event, { query, kind, at }]));
}

/**
 * The queries whose answers can be events of a query of this family, `own` (null: not stored yet).
 */
export function givers(rows: readonly QueryRow[], own: string | null, family: string): QueryRow[] {
  return rows.filter(
    (row) =>
      row.enabled &&
      row.stopped === null &&
      row.id !== own &&
      (familyOf(row.family)?.columns ?? null) !== null &&
      (familyOf(family)?.isRevising === true || familyOf(row.family)?.isKnownLate?.(row.specification) !== true),
  );
}

export function giverOf(rows: readonly QueryRow[], named: string): QueryRow | undefined {
  return rows.find((row) => row.name === named) ?? rows.find((row) => row.id === named);
}

/**
 * A new event from a query's answers: named like the query as far as names
 * in rules allow, and unique.
 */
export function freshEvent(giver: QueryRow | undefined, events: readonly DerivedEvent[]): DerivedEvent {
  const kind = giver?.kinds[0] ?? "";
  const words = kind === "" ? "answer" : `${giver!.name} ${kind}`;
  const stem =
    words
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "_")
      .replace(/^[_0-9]+|_+$/g, "") || "answer";
  const taken = new Set(events.map(({ event }) => event));
  let event = stem;
  for (let i = 2; taken.has(event); i++) event = `${stem}_${i}`;
  return { event, query: giver?.name ?? "", kind, at: "end" };
}

/** The feed as a deriving query sees it: with the columns of answers in addition to its own. */
export function withAnswers(feed: Feed): Feed {
  const more = Object.fromEntries([
    ["value", "float"],
    ...Array.from({ length: OFFERED_ENTITIES - 1 }, (_, i) => [`entity${i + 2}`, "string"]),
  ]) as Record<string, string>;
  return { ...feed, columns: { ...more, ...feed.columns } };
}

/** Labels of the columns of an answer. */
export function columnsWords(giver: QueryRow | undefined): string {
  return familyOf(giver?.family)?.columns ?? ABOUT_SEVERAL;
}
