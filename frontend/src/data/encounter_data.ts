/**
 * Conversion between editor entries and documents of the family `encounter`,
 * in both directions. Pure.
 */

import type { Fault } from "../lib/api";
import { isObject } from "../lib/parse";
import { asGeometry, isReference, type Geometry, type Reference } from "../lib/regions";
import { asList, asSpan, bound, faultOfEmpty, othersOf, type Span } from "./document_data";
import type { Feed } from "../lib/shapes";
import { t } from "../lib/texts";

export const POSITIONS = ["last", "interpolated"] as const;
export type Position = (typeof POSITIONS)[number];

export interface EncounterEntries {
  /** Both have the same role: the conditions on `a` also apply to `b`. */
  isAlike: boolean;
  a: unknown[];
  b: unknown[];
  /** Metres, or units of the plan; as typed. */
  distance: string;
  every: Span;
  gap: Span;
  position: Position;
  inside: Geometry | Reference | null;
  lasting: Span;
  where: unknown[];
  others: Record<string, unknown>;
}

const OWN_KEYS = new Set(["family", "version", "a", "b", "distance", "every", "gap", "position", "inside", "lasting", "where"]);

/** A new query asks for any two entities that come near each other. */
export function fromDocument(document: Record<string, unknown>, feed: Feed): EncounterEntries {
  const { distance, every, gap, position, inside, lasting, where } = document;
  const [a, b] = [roleOf(document["a"]), roleOf(document["b"])];
  const isMs = feed.time === "ms";
  const isNew = distance === undefined && every === undefined && gap === undefined;
  return {
    isAlike: JSON.stringify(a) === JSON.stringify(b),
    a,
    b,
    distance:
      typeof distance === "number" || typeof distance === "string"
        ? String(distance)
        : isNew
          ? feed.crs === "geographic"
            ? "100"
            : "10"
          : "",
    every: isNew ? (isMs ? "PT10S" : 25) : asSpan(every),
    gap: isNew ? (isMs ? "PT1M" : 250) : asSpan(gap),
    position: position === "interpolated" ? "interpolated" : "last",
    inside: isReference(inside) ? { region: inside.region } : asGeometry(inside),
    lasting: asSpan(lasting),
    where: asList(where),
    others: othersOf(document, OWN_KEYS),
  };
}

function roleOf(value: unknown): unknown[] {
  return isObject(value) ? asList(value["where"]) : [];
}

export function toDocument(entries: EncounterEntries): Record<string, unknown> {
  const { isAlike, a, distance, every, gap, position, inside, lasting, where, others } = entries;
  const b = isAlike ? a : entries.b;
  const metres = bound(distance);
  const document: Record<string, unknown> = { ...others, family: "encounter", version: 1 };
  if (a.length > 0) document["a"] = { where: a };
  if (b.length > 0) document["b"] = { where: b };
  if (metres !== null) document["distance"] = metres;
  if (every !== null) document["every"] = every;
  if (gap !== null) document["gap"] = gap;
  if (position !== "last") document["position"] = position;
  if (inside !== null) document["inside"] = inside;
  if (lasting !== null) document["lasting"] = lasting;
  if (where.length > 0) document["where"] = where;
  return document;
}

const MISSING: Record<string, string> = {
  distance: t("No distance yet: enter how near they must come."),
  every: t("No time yet: enter how often to look."),
  gap: t("No time yet: enter how long a position is valid after a report."),
};

/** Faults for fields that are still empty. */
export function faultInForm(fault: Fault): Fault {
  return faultOfEmpty(fault, MISSING);
}
