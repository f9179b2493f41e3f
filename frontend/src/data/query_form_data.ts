/** Conversion between entries of forms and parts of a specification, in both directions. Pure. */

import type { Fault } from "../lib/api";
import { columnsOf } from "../lib/columns";
import { isObject } from "../lib/parse";
import { parseDuration, type TimeUnit } from "../lib/time";
import { bound, decimal, othersOf } from "./document_data";
import type { Feed } from "../lib/shapes";
import { readWatched, writtenWatched, type Watched } from "./watched_data";
import { t } from "../lib/texts";

export const TRANSITIONS = ["passed", "returned", "stayed_in", "stayed_out"] as const;
export type TransitionKind = (typeof TRANSITIONS)[number];
export const OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "in"] as const;
export const SPAN_UNITS = { s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 } as const;
export type SpanUnit = keyof typeof SPAN_UNITS | "ticks";

const UNIT_NAMES: Record<SpanUnit, readonly [string, string]> = {
  s: [t("second"), t("seconds")],
  min: [t("minute"), t("minutes")],
  h: [t("hour"), t("hours")],
  d: [t("day"), t("days")],
  ticks: [t("tick"), t("ticks")],
};

/** The unit after an amount: "minute" after 1 and −1, else "minutes". */
export function unitName(unit: SpanUnit, amount: string): string {
  const value = decimal(amount);
  return UNIT_NAMES[unit][Math.abs(value) === 1 ? 0 : 1];
}

export interface ConditionEntry {
  column: string;
  operator: string;
  value: string;
  /**
   * The document compares with an empty text. In any other row an empty field is one that the
   * reader has not filled in.
   */
  isEmptyText?: boolean;
}
/** The entries of the form for `border` and `transition`. */
export interface CrossingEntries extends Watched {
  family: string;
  within: string | number | null;
  types: TransitionKind[];
  segments: boolean;
  where: unknown[];
  /** Metres, or units of the plan. */
  hysteresis: string;
  /** A column, or "". */
  accuracy: string;
  first: FirstPolicy;
  dwell: string | number | null;
  while: unknown[];
  /** Keys that the form has no field for. */
  others: Record<string, unknown>;
}

const OWN_KEYS = new Set([
  "family",
  "version",
  "region",
  "ranges",
  "within",
  "types",
  "segments",
  "where",
  "hysteresis",
  "accuracy",
  "first",
  "dwell",
  "while",
]);

export const FIRST_POLICIES = ["ignore", "enter"] as const;
export type FirstPolicy = (typeof FIRST_POLICIES)[number];

export function emptyEntries(family: string, time: TimeUnit): CrossingEntries {
  return {
    family,
    place: "region",
    region: null,
    ranges: [],
    within: time === "ms" ? "PT3M" : 100,
    types: ["passed", "stayed_in"],
    segments: false,
    where: [],
    hysteresis: "",
    accuracy: "",
    first: "ignore",
    dwell: null,
    while: [],
    others: {},
  };
}

/**
 * The document for these entries; empty fields are left out, so that the
 * server reports them as missing.
 */
export function toSpecification(entries: CrossingEntries): Record<string, unknown> {
  const document: Record<string, unknown> = { ...entries.others, family: entries.family, version: 1, ...writtenWatched(entries) };
  if (entries.family === "transition") {
    if (entries.within !== null) document["within"] = entries.within;
    document["types"] = entries.types;
  }
  if (entries.where.length > 0) document["where"] = entries.where;
  return Object.assign(document, options(entries));
}

/**
 * Faults for empty fields in the words of the form: the server would name keys, and attach a
 * missing one to the whole document.
 */
export function faultInForm(fault: Fault, { place, region, ranges, within }: CrossingEntries): Fault {
  const missing = fault.pointer === "" ? /'(\w+)'/.exec(fault.message)?.[1] : undefined;
  if (missing === "region" && place === "region" && region === null)
    return { pointer: "/region", message: t("No region yet: draw one on the map, choose a stored one or import a file.") };
  if (fault.pointer === "/ranges" && ranges.every((row) => row.column === ""))
    return { ...fault, message: t("No range yet: add one, and enter its bounds.") };
  if (missing === "within" && within === null) return { pointer: "/within", message: t("No time yet: enter within what time.") };
  return fault;
}

/**
 * Options that are off are left out, and so are options that need a region when ranges are watched.
 */
function options(entries: CrossingEntries): Record<string, unknown> {
  const written: Record<string, unknown> = {};
  if (entries.place === "region") {
    if (entries.segments && entries.family === "border") written["segments"] = true;
    const hysteresis = bound(entries.hysteresis);
    if (hysteresis !== null) written["hysteresis"] = hysteresis;
    if (entries.accuracy !== "") written["accuracy"] = entries.accuracy;
  }
  if (entries.first !== "ignore") written["first"] = entries.first;
  if (entries.dwell !== null) written["dwell"] = entries.dwell;
  if (entries.while.length > 0) written["while"] = entries.while;
  return written;
}

/** Whether any option is set that the form hides by default. */
export function hasOptions(entries: CrossingEntries): boolean {
  return (
    entries.segments ||
    entries.hysteresis !== "" ||
    entries.accuracy !== "" ||
    entries.first !== "ignore" ||
    entries.dwell !== null ||
    entries.while.length > 0
  );
}

export function parseText(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Null, which the server refuses, for a field that is not filled in. */
function constant({ operator, value, isEmptyText = false }: ConditionEntry, type: string): unknown {
  if (value.trim() === "" && type === "string" && !isEmptyText) return null;
  if (operator === "in") return value.split(",").map((part) => single(part.trim(), type));
  return single(value.trim(), type);
}

function single(text: string, type: string): unknown {
  if (type === "bool") return text === "true" ? true : text === "false" ? false : text;
  if (type === "string") return text;
  return bound(text) ?? "";
}

/** "PT3M" for 3 minutes, a number for ticks; null for invalid input. */
export function toDuration(amount: string, unit: SpanUnit): string | number | null {
  const value = decimal(amount);
  if (!Number.isFinite(value) || value < 0) return null;
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
  for (const unit of ["d", "h", "min"] as const)
    if (span > 0 && span % SPAN_UNITS[unit] === 0) return { amount: String(span / SPAN_UNITS[unit]), unit };
  return { amount: String(span / 1000), unit: "s" };
}

export function fromSpecification(document: Record<string, unknown>, time: TimeUnit): CrossingEntries {
  const family = typeof document["family"] === "string" ? document["family"] : "border";
  const entries = emptyEntries(family, time);
  Object.assign(entries, readWatched(document), { others: othersOf(document, OWN_KEYS) });
  if (family === "transition") readTransition(document, entries);
  if (Array.isArray(document["where"])) entries.where = document["where"];
  return readOptions(document, entries);
}

/** A new document keeps the form's defaults; an existing one is shown unchanged. */
function readTransition(document: Record<string, unknown>, entries: CrossingEntries): void {
  const { within, types } = document;
  if (within === undefined && types === undefined) return;
  entries.within = typeof within === "string" || typeof within === "number" ? within : null;
  entries.types = Array.isArray(types) ? TRANSITIONS.filter((kind) => types.includes(kind)) : [...TRANSITIONS];
}

function readOptions(document: Record<string, unknown>, entries: CrossingEntries): CrossingEntries {
  const { hysteresis, accuracy, first, dwell } = document;
  entries.segments = document["segments"] === true;
  entries.hysteresis = shown(hysteresis);
  entries.accuracy = shown(accuracy);
  entries.first = FIRST_POLICIES.find((policy) => policy === first) ?? "ignore";
  entries.dwell = typeof dwell === "string" || typeof dwell === "number" ? dwell : null;
  if (Array.isArray(document["while"])) entries.while = document["while"];
  return entries;
}

/** Form rows for the conditions of a document; invalid values are left out. */
export function fromConditions(conditions: unknown): ConditionEntry[] {
  return Array.isArray(conditions) ? conditions.flatMap(condition) : [];
}

/** Conditions of a document from form rows: each constant in the type of its column. */
export function toConditions(entries: readonly ConditionEntry[], feed: Feed): unknown[] {
  const columns = columnsOf(feed);
  return entries
    .filter((row) => row.column !== "")
    .map((row) => [row.column, row.operator, constant(row, columns[row.column] ?? "string")]);
}

function condition(row: unknown): ConditionEntry[] {
  if (!Array.isArray(row) || row.length !== 3) return [];
  const value: unknown = row[2];
  const text = Array.isArray(value) ? value.map(shown).join(", ") : shown(value);
  const isEmptyText = text === "" && value !== null;
  return [{ column: String(row[0]), operator: String(row[1]), value: text, ...(isEmptyText ? { isEmptyText } : {}) }];
}

function shown(value: unknown): string {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

/** The kinds of answers that the entries can give. */
export function kindsOf(entries: CrossingEntries): string[] {
  return entries.family === "border" ? ["in", "out"] : entries.types;
}
