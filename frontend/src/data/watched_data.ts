/** The target of a query: one region, or a range of values for some columns. Pure. */

import { isObject } from "../lib/parse";
import { asGeometry, isReference, type Geometry, type Reference } from "../lib/regions";
import { bound } from "./document_data";

export interface RangeEntry {
  column: string;
  /** Inclusive; empty: unbounded. */
  low: string;
  /** Exclusive; empty: unbounded. */
  high: string;
}

export interface Watched {
  place: "region" | "ranges";
  /** As in the document: a geometry, a circle or a reference; null while nothing is chosen. */
  region: Geometry | Reference | null;
  ranges: RangeEntry[];
}

export function readWatched(document: Record<string, unknown>): Watched {
  const { region, ranges } = document;
  const isRanges = isObject(ranges);
  return {
    place: isRanges ? "ranges" : "region",
    region: isReference(region) ? region : asGeometry(region),
    ranges: isRanges ? Object.entries(ranges).map(([column, bounds]) => ({ column, low: limit(bounds, 0), high: limit(bounds, 1) })) : [],
  };
}

function limit(bounds: unknown, i: number): string {
  const value: unknown = Array.isArray(bounds) ? bounds[i] : null;
  return typeof value === "number" || typeof value === "string" ? String(value) : "";
}

/**
 * The keys of a document; empty fields are left out, so that the server reports them as missing.
 */
export function writtenWatched({ place, region, ranges }: Watched): Record<string, unknown> {
  if (place === "ranges")
    return {
      ranges: Object.fromEntries(ranges.filter((row) => row.column !== "").map((row) => [row.column, [bound(row.low), bound(row.high)]])),
    };
  return region === null ? {} : { region };
}
