/**
 * Conversion between a constraint query in the editor and its document, in both directions, and the
 * short form for k mutually close events. Pure.
 */

import type { Fault } from "../lib/api";
import { isObject } from "../lib/parse";
import { asGeometry, isReference, type Geometry, type Reference } from "../lib/regions";
import type { SignedSpan } from "./constraint_spans";
import { spanValue } from "./constraint_spans";
import { bound } from "./document_data";
import { columnsOf } from "../lib/columns";
import type { Feed } from "../lib/shapes";
import { t } from "../lib/texts";

export interface VariableEntry {
  name: string;
  where: unknown[];
}

export interface DistanceEntry {
  /** Metres, or units of the plan; empty: unbounded. */
  max: string;
  min: string;
  /** The bounds themselves are excluded. */
  isOpen: boolean;
}

export interface ComparisonEntry {
  /** `variable.column`, a sum of such terms and numbers, or a constant as in the document. */
  left: unknown;
  op: string;
  right: unknown;
}

export interface ConstraintEntry {
  /** Unique on this page only. */
  readonly id: number;
  between: string[];
  /** The second's time minus the first's; null: unconstrained. */
  dt: [SignedSpan, SignedSpan] | null;
  distance: DistanceEntry | null;
  /** Null as a member: a region is required but not chosen yet. */
  inside: { region: Geometry | Reference | null } | null;
  compare: ComparisonEntry[];
}

/** From a specification. */
export const MOST_VARIABLES = 32;
export const REPORTS = ["all", "first"] as const;
export const EXPIRATIONS = ["tight", "loose", "domains"] as const;

export interface ConstraintEntries {
  where: unknown[];
  variables: VariableEntry[];
  constraints: ConstraintEntry[];
  symmetric: string[][];
  report: string | null;
  expiration: string | null;
  others: Record<string, unknown>;
}

const OWN_KEYS = new Set(["family", "version", "where", "variables", "constraints", "symmetric", "report", "expiration"]);
let lastId = 0;

export function newConstraint(between: string[]): ConstraintEntry {
  return { id: ++lastId, between, dt: null, distance: null, inside: null, compare: [] };
}

export function fromDocument(document: Record<string, unknown>): ConstraintEntries {
  const { where, variables, constraints, symmetric, report, expiration } = document;
  return {
    where: items(where),
    variables: isObject(variables)
      ? Object.entries(variables).map(([name, value]) => ({ name, where: isObject(value) ? items(value["where"]) : [] }))
      : [],
    constraints: items(constraints).map(readConstraint),
    symmetric: items(symmetric).map((group) => items(group).map(String)),
    report: typeof report === "string" ? report : null,
    expiration: typeof expiration === "string" ? expiration : null,
    others: Object.fromEntries(Object.entries(document).filter(([key]) => !OWN_KEYS.has(key))),
  };
}

function items(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function readConstraint(value: unknown): ConstraintEntry {
  const source = isObject(value) ? value : {};
  const made = newConstraint(items(source["between"]).map(String));
  const { dt, distance, inside, compare } = source;
  if (Array.isArray(dt)) made.dt = [span(dt[0]), span(dt[1])];
  if (isObject(distance)) made.distance = { max: text(distance["max"]), min: text(distance["min"]), isOpen: distance["open"] === true };
  if (inside !== undefined) made.inside = { region: isReference(inside) ? { region: inside.region } : asGeometry(inside) };
  made.compare = items(compare).flatMap((row) =>
    Array.isArray(row) && row.length === 3 ? [{ left: row[0] as unknown, op: text(row[1]), right: row[2] as unknown }] : [],
  );
  return made;
}

function span(value: unknown): SignedSpan {
  return typeof value === "string" || typeof value === "number" ? value : null;
}

function text(value: unknown): string {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

/** The document; missing parts are left out, so that the server reports them. */
export function toDocument(entries: ConstraintEntries): Record<string, unknown> {
  const document: Record<string, unknown> = { ...entries.others, family: "constraint", version: 1 };
  if (entries.where.length > 0) document["where"] = entries.where;
  document["variables"] = Object.fromEntries(entries.variables.map(({ name, where }) => [name, where.length > 0 ? { where } : {}]));
  document["constraints"] = entries.constraints.map(written);
  if (entries.symmetric.length > 0) document["symmetric"] = entries.symmetric;
  if (entries.report !== null) document["report"] = entries.report;
  if (entries.expiration !== null) document["expiration"] = entries.expiration;
  return document;
}

function written({ between, dt, distance, inside, compare }: ConstraintEntry): Record<string, unknown> {
  const constraint: Record<string, unknown> = { between };
  if (dt !== null) constraint["dt"] = dt;
  if (distance !== null)
    constraint["distance"] = { ...limit("max", distance.max), ...limit("min", distance.min), ...(distance.isOpen ? { open: true } : {}) };
  if (inside !== null) constraint["inside"] = inside.region;
  if (compare.length > 0) constraint["compare"] = compare.map(({ left, op, right }) => [left, op, right]);
  return constraint;
}

function limit(key: string, value: string): Record<string, unknown> {
  const read = bound(value);
  return read === null ? {} : { [key]: read };
}

/** Matches a column of a variable in a side of a comparison. */
const NAMED = /(?<![\w.])([A-Za-z_]\w*)\.([A-Za-z_]\w*)/g;

/** The variables of `names` whose columns occur in a side of a comparison, each once. */
export function variablesOf(side: unknown, names: readonly string[]): string[] {
  if (typeof side !== "string") return [];
  return [...new Set([...side.matchAll(NAMED)].flatMap(([, name]) => (name !== undefined && names.includes(name) ? [name] : [])))];
}

/**
 * A side of a comparison from the text typed: a column of a variable, a sum, or a constant in the
 * type of the other side's column.
 */
export function comparedWith(typed: string, other: unknown, op: string, { variables }: ConstraintEntries, feed: Feed): unknown {
  const value = typed.trim();
  const names = variables.map(({ name }) => name);
  if (variablesOf(value, names).length > 0) return value;
  const one = (part: string): unknown => constant(part, typeOf(other, names, feed));
  return op === "in" ? value.split(",").map((part) => one(part.trim())) : one(value);
}

function constant(part: string, type: string): unknown {
  if (type === "string") return part;
  if (type === "bool") return part === "true" ? true : part === "false" ? false : part;
  return bound(part) ?? "";
}

/** The type of a single column; a sum is a number. */
function typeOf(side: unknown, names: readonly string[], feed: Feed): string {
  const [variable, column, ...more] = typeof side === "string" ? side.trim().split(".") : [];
  if (variable === undefined || column === undefined || more.length > 0 || !names.includes(variable) || !/^\w+$/.test(column))
    return "float";
  return { t: "int", ...columnsOf(feed) }[column] ?? "string";
}

export function shownRight(right: unknown): string {
  return Array.isArray(right) ? right.map(text).join(", ") : text(right);
}

// ---- Variables

export function freshName({ variables }: ConstraintEntries): string {
  const taken = new Set(variables.map(({ name }) => name));
  for (let i = variables.length + 1; ; i++) if (!taken.has(`V${i}`)) return `V${i}`;
}

/** The query with a variable renamed everywhere. */
export function renamed(entries: ConstraintEntries, from: string, to: string): ConstraintEntries {
  const name = (one: string): string => (one === from ? to : one);
  const side = <T>(one: T): T | string =>
    typeof one === "string"
      ? one.replace(NAMED, (whole, variable, column) => (variable === from ? `${to}.${String(column)}` : whole))
      : one;
  return {
    ...entries,
    variables: entries.variables.map((one) => ({ ...one, name: name(one.name) })),
    constraints: entries.constraints.map((one) => ({
      ...one,
      between: one.between.map(name),
      compare: one.compare.map(({ left, op, right }) => ({ left: side(left), op, right: side(right) })),
    })),
    symmetric: entries.symmetric.map((group) => group.map(name)),
  };
}

/** The comparisons in which a variable is not read. */
export function comparedWithout(compare: ComparisonEntry[], name: string): ComparisonEntry[] {
  const reads = (one: unknown): boolean => variablesOf(one, [name]).length > 0;
  return compare.filter(({ left, right }) => !reads(left) && !reads(right));
}

/** The query without a variable; constraints that become empty are removed with it. */
export function without(entries: ConstraintEntries, name: string): ConstraintEntries {
  const constraints = entries.constraints.flatMap((one) => {
    const between = one.between.filter((other) => other !== name);
    const pairwise = between.length > 1 ? { dt: one.dt, distance: one.distance } : { dt: null, distance: null };
    const rest = { ...one, ...pairwise, between, compare: comparedWithout(one.compare, name) };
    return between.length > 0 && (rest.dt !== null || rest.distance !== null || rest.inside !== null || rest.compare.length > 0)
      ? [rest]
      : [];
  });
  return {
    ...entries,
    variables: entries.variables.filter((one) => one.name !== name),
    constraints,
    symmetric: entries.symmetric.map((group) => group.filter((one) => one !== name)).filter((group) => group.length > 1),
  };
}

// ---- The short form

export interface Mutual {
  /** The number of events. */
  k: number;
  /** In the feed's time, not negative; null: not entered yet. */
  within: SignedSpan;
  /** Metres, or units of the plan. */
  distance: string;
  where: unknown[];
  /** Each event is of another entity. */
  isDifferent: boolean;
}

/**
 * The short form, if the document is "k mutually close events" (one constraint between all of them,
 * interchangeable); else null.
 */
export function mutualOf({ variables, constraints, symmetric, others }: ConstraintEntries): Mutual | null {
  const [only, second] = constraints;
  const names = variables.map(({ name }) => name);
  if (only === undefined || second !== undefined || names.length < 2 || Object.keys(others).some((key) => key !== "name")) return null;
  const isAll = (group: readonly string[] | undefined): boolean =>
    group !== undefined && group.length === names.length && names.every((name) => group.includes(name));
  const { dt, distance, inside, compare, between } = only;
  const isEqual = variables.every(({ where }) => JSON.stringify(where) === JSON.stringify(variables[0]!.where));
  if (!isAll(between) || symmetric.length !== 1 || !isAll(symmetric[0]) || !isEqual || inside !== null) return null;
  const isDifferent = compare.length > 0;
  if (isDifferent && JSON.stringify(compare) !== JSON.stringify(differing(between))) return null;
  if (dt === null || distance === null || distance.min !== "" || distance.isOpen) return null;
  const [low, high] = [spanValue(dt[0]), spanValue(dt[1])];
  return low === null || high === null || low !== -high
    ? null
    : { k: names.length, within: dt[1], distance: distance.max, where: variables[0]!.where, isDifferent };
}

/** The number of events for an entry: the nearest possible one, or `before` if it is not a
 * number. */
export function eventsOf(text: string, before: number): number {
  const k = text.trim() === "" ? NaN : Math.round(Number(text));
  return Number.isNaN(k) ? before : Math.min(Math.max(k, 2), MOST_VARIABLES);
}

/** Without a greatest span every event would have to be kept: the short form shows this at its
 * field. */
export function faultOfMutual(fault: Fault, entries: ConstraintEntries): Fault {
  const isSpan = fault.pointer === "/constraints" && entries.constraints[0]?.dt?.[1] === null;
  return isSpan ? { ...fault, pointer: "/constraints/0/dt", message: t("No time yet: enter within how long they come.") } : fault;
}

/** The query of the short form; parts other than variables and constraints are kept. */
export function withMutual(entries: ConstraintEntries, { k, within, distance, where, isDifferent }: Mutual): ConstraintEntries {
  const names = Array.from({ length: k }, (_, i) => entries.variables[i]?.name ?? `V${i + 1}`);
  const unique = new Set(names).size === k ? names : names.map((_, i) => `V${i + 1}`);
  return {
    ...entries,
    variables: unique.map((name) => ({ name, where })),
    constraints: [
      {
        ...newConstraint(unique),
        dt: [negated(within), within],
        distance: { max: distance, min: "", isOpen: false },
        compare: isDifferent ? differing(unique) : [],
      },
    ],
    symmetric: [unique],
  };
}

/** No two of these variables are events of one entity. */
function differing(names: readonly string[]): ComparisonEntry[] {
  return names.flatMap((one, i) => names.slice(i + 1).map((other) => ({ left: `${one}.entity`, op: "!=", right: `${other}.entity` })));
}

function negated(value: SignedSpan): SignedSpan {
  if (typeof value === "number") return -value || 0;
  return value === null ? null : value.startsWith("-") ? value.slice(1) : `-${value}`;
}
