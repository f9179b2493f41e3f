/** The query form's entries and the specification they mean, both ways. Pure. */

import { isObject } from "../lib/parse";
import { asGeometry, isReference, type Geometry } from "../lib/regions";
import { parseDuration, type TimeUnit } from "../lib/time";
import type { Feed } from "./shapes";

export const TRANSITIONS = ["passed", "returned", "stayed_in", "stayed_out"] as const;
export type TransitionKind = (typeof TRANSITIONS)[number];
export const OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "in"] as const;
export const SPAN_UNITS = { s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 } as const;
export type SpanUnit = keyof typeof SPAN_UNITS | "ticks";

export interface RangeEntry {
  column: string;
  /** Inclusive; empty is unbounded. */
  low: string;
  /** Exclusive; empty is unbounded. */
  high: string;
}
export interface ConditionEntry {
  column: string;
  operator: string;
  value: string;
}
export interface QueryEntries {
  family: string;
  place: "region" | "ranges";
  /** A drawn region; null while a stored one is named or nothing is there yet. */
  geometry: Geometry | null;
  reference: string | null;
  ranges: RangeEntry[];
  amount: string;
  unit: SpanUnit;
  types: TransitionKind[];
  segments: boolean;
  where: ConditionEntry[];
  /** The whole document as text, for the families that have no form of their own. */
  text: string;
}

export function hasForm(family: string): boolean {
  return family === "border" || family === "transition";
}

export function emptyEntries(family: string, time: TimeUnit): QueryEntries {
  return {
    family, place: "region", geometry: null, reference: null, ranges: [], amount: time === "ms" ? "3" : "100", unit: time === "ms" ? "min" : "ticks",
    types: ["passed", "stayed_in"], segments: false, where: [], text: JSON.stringify({ family, version: 1 }, null, 2),
  };
}

/** Columns a range or a condition may name, with their types. */
export function columnsOf(feed: Feed): Record<string, string> {
  return { x: "float", y: "float", ...feed.columns };
}

/** The document for these entries; what is not filled in is left out, so that the server names it as missing. */
export function toSpecification(entries: QueryEntries, feed: Feed): Record<string, unknown> {
  if (!hasForm(entries.family)) return parseText(entries.text) ?? { family: entries.family, version: 1 };
  const document: Record<string, unknown> = { family: entries.family, version: 1 };
  if (entries.place === "region") {
    const region = entries.reference !== null ? { region: entries.reference } : entries.geometry;
    if (region !== null) document["region"] = region;
    if (entries.segments && entries.family === "border") document["segments"] = true;
  } else {
    document["ranges"] = Object.fromEntries(entries.ranges.filter((row) => row.column !== "").map((row) => [row.column, [bound(row.low), bound(row.high)]]));
  }
  if (entries.family === "transition") {
    const within = toDuration(entries.amount, entries.unit);
    if (within !== null) document["within"] = within;
    document["types"] = entries.types;
  }
  const where = entries.where.filter((row) => row.column !== "").map((row) => [row.column, row.operator, constant(row, columnsOf(feed)[row.column] ?? "string")]);
  if (where.length > 0) document["where"] = where;
  return document;
}

export function parseText(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** A bound that is no number goes as it was typed: the server says what is wrong with it. */
function bound(text: string): number | string | null {
  const trimmed = text.trim().replace("−", "-");
  if (trimmed === "") return null;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : trimmed;
}

function constant({ operator, value }: ConditionEntry, type: string): unknown {
  if (operator === "in") return value.split(",").map((part) => single(part.trim(), type));
  return single(value.trim(), type);
}

function single(text: string, type: string): unknown {
  if (type === "bool") return text === "true" ? true : text === "false" ? false : text;
  if (type === "string") return text;
  return bound(text) ?? "";
}

/** "PT3M" for 3 minutes, a number for ticks; null when nothing sensible was typed. */
export function toDuration(amount: string, unit: SpanUnit): string | number | null {
  const value = Number(amount.trim().replace(",", "."));
  if (amount.trim() === "" || !Number.isFinite(value) || value < 0) return null;
  if (unit === "ticks") return value;
  const ms = Math.round(value * SPAN_UNITS[unit]);
  if (!Number.isInteger(value)) return ms;
  return unit === "d" ? `P${value}D` : `PT${value}${{ s: "S", min: "M", h: "H" }[unit]}`;
}

/** The largest unit that gives a whole number. */
export function fromDuration(within: unknown, time: TimeUnit): { amount: string; unit: SpanUnit } {
  const span = typeof within === "string" || typeof within === "number" ? parseDuration(within) : null;
  if (span === null) return { amount: "", unit: time === "ms" ? "min" : "ticks" };
  if (time === "ticks") return { amount: String(span), unit: "ticks" };
  for (const unit of ["d", "h", "min"] as const) if (span > 0 && span % SPAN_UNITS[unit] === 0) return { amount: String(span / SPAN_UNITS[unit]), unit };
  return { amount: String(span / 1000), unit: "s" };
}

export function fromSpecification(document: Record<string, unknown>, time: TimeUnit): QueryEntries {
  const family = typeof document["family"] === "string" ? document["family"] : "border";
  const entries = emptyEntries(family, time);
  entries.text = JSON.stringify(document, null, 2);
  if (!hasForm(family)) return entries;
  const region = document["region"];
  if (isReference(region)) entries.reference = region.region;
  else entries.geometry = asGeometry(region);
  if (isObject(document["ranges"])) {
    entries.place = "ranges";
    entries.ranges = Object.entries(document["ranges"]).map(([column, bounds]) => ({ column, low: shown(Array.isArray(bounds) ? bounds[0] : null), high: shown(Array.isArray(bounds) ? bounds[1] : null) }));
  }
  entries.segments = document["segments"] === true;
  if (family === "transition") Object.assign(entries, fromDuration(document["within"], time));
  const types = document["types"];
  entries.types = Array.isArray(types) ? TRANSITIONS.filter((kind) => types.includes(kind)) : [...TRANSITIONS];
  if (Array.isArray(document["where"])) entries.where = document["where"].flatMap(condition);
  return entries;
}

function condition(row: unknown): ConditionEntry[] {
  if (!Array.isArray(row) || row.length !== 3) return [];
  const value: unknown = row[2];
  return [{ column: String(row[0]), operator: String(row[1]), value: Array.isArray(value) ? value.map(shown).join(", ") : shown(value) }];
}

function shown(value: unknown): string {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

/** Which kinds of answers the entries can give. */
export function kindsOf(entries: QueryEntries): string[] {
  if (entries.family === "border") return ["in", "out"];
  return entries.family === "transition" ? entries.types : [];
}
