/**
 * Conversion between the steps of a motion pattern in the editor and the document,
 * in both directions. Pure.
 */

import { isObject } from "../lib/parse";
import { asGeometry, isReference, type Geometry, type Reference } from "../lib/regions";
import type { Feed } from "../lib/shapes";
import { bound } from "./document_data";

export const SENSES = ["inside", "outside", "distance"] as const;
export type Sense = (typeof SENSES)[number];
/**
 * As in the document: a number in the feed's unit or an ISO 8601 duration; null for an empty field.
 */
export type Span = string | number | null;
export type Point = [number, number];
export type Place = Geometry | Reference | Point | null;

export interface MotionStep {
  /** Unique on this page only; kept when the step is moved. */
  readonly id: number;
  sense: Sense;
  place: Place;
  /** For a distance: to a point, which may not be set yet, instead of to a region. */
  isToPoint: boolean;
  /** Whether the step has its own time window, or comes after the previous step. */
  isTimed: boolean;
  /** Counted back from the evaluation: samples with now - from < t <= now - to. */
  from: Span;
  to: Span;
  /** For a distance: the greatest in the window instead of the least. */
  isForAll: boolean;
  /** The time inside (outside) is accumulated; null: single samples decide. */
  total: Total | null;
}

/**
 * The total time, at least or at most; a position is valid until the next one, for at
 * most `gap` (null: unlimited).
 */
export interface Total {
  bound: "at_least" | "at_most";
  time: Span;
  gap: Span;
}

export const SCORINGS = ["top", "min", "<=", "bottom", "max", ">="] as const;
/** How scores decide: the least k, the least, at most; the greatest k, the greatest, at least. */
export type Scoring = (typeof SCORINGS)[number];

export interface MotionEntries {
  steps: MotionStep[];
  scoring: Scoring;
  /** The number k, for the scorings that have one. */
  k: string;
  /** Metres, or units of the plan. */
  value: string;
  every: Span;
  horizon: Span;
  where: unknown[];
  /** Keys this page does not know: the server checks them. */
  others: Record<string, unknown>;
}

const OWN_KEYS = new Set(["family", "version", "predicates", "theta", "every", "horizon", "where"]);
let lastId = 0;

export function newStep(feed: Feed, isTimed: boolean): MotionStep {
  const isMs = feed.time === "ms";
  return {
    id: ++lastId,
    sense: "inside",
    place: null,
    isToPoint: false,
    isTimed,
    from: isMs ? "PT10M" : 1000,
    to: 0,
    isForAll: false,
    total: null,
  };
}

export function fromDocument(document: Record<string, unknown>, feed: Feed): MotionEntries {
  const { predicates, every, horizon, where } = document;
  const isMs = feed.time === "ms";
  const steps = Array.isArray(predicates) ? predicates.map((one) => readStep(one, feed)) : [newStep(feed, false), newStep(feed, false)];
  const isNew = predicates === undefined;
  return {
    steps,
    ...readTheta(document["theta"]),
    every: span(every) ?? (isNew ? (isMs ? "PT10S" : 25) : null),
    horizon: span(horizon) ?? (isNew ? (isMs ? "PT30M" : 45_000) : null),
    where: Array.isArray(where) ? where : [],
    others: Object.fromEntries(Object.entries(document).filter(([key]) => !OWN_KEYS.has(key))),
  };
}

function span(value: unknown): Span {
  return typeof value === "string" || typeof value === "number" ? value : null;
}

function readStep(value: unknown, feed: Feed): MotionStep {
  const source = isObject(value) ? value : {};
  const sense = SENSES.find((one) => one in source) ?? "inside";
  const window = Array.isArray(source["window"]) ? (source["window"] as unknown[]) : null;
  const step = newStep(feed, window !== null || sense === "distance");
  const place = readPlace(source[sense]);
  return {
    ...step,
    sense,
    place,
    isToPoint: sense === "distance" && (place === null || Array.isArray(place)),
    ...(window === null ? {} : { from: span(window[0]), to: span(window[1]) }),
    isForAll: source["quantifier"] === "forall",
    total: readTotal(source),
  };
}

function readTotal(source: Record<string, unknown>): Total | null {
  if (source["quantifier"] !== "total") return null;
  const bound = "at_most" in source ? "at_most" : "at_least";
  return { bound, time: span(source[bound]), gap: span(source["gap"]) };
}

function readPlace(value: unknown): Place {
  if (isReference(value)) return { region: value.region };
  const pair = isObject(value) && value["type"] === "Point" ? value["coordinates"] : value;
  if (Array.isArray(pair) && pair.length === 2 && pair.every((one) => typeof one === "number"))
    return [pair[0] as number, pair[1] as number];
  return asGeometry(value);
}

function readTheta(theta: unknown): Pick<MotionEntries, "scoring" | "k" | "value"> {
  const source = isObject(theta) ? theta : {};
  const { op, k, value, order } = source;
  const scoring = op === "top" ? (order === "max" ? "bottom" : "top") : (SCORINGS.find((one) => one === op) ?? "top");
  return { scoring, k: text(k, "10"), value: text(value, "") };
}

function text(value: unknown, otherwise: string): string {
  return typeof value === "number" || typeof value === "string" ? String(value) : otherwise;
}

/** The document; missing parts are left out, so that the server reports them. */
export function toDocument(entries: MotionEntries): Record<string, unknown> {
  const document: Record<string, unknown> = { ...entries.others, family: "motion", version: 1, predicates: entries.steps.map(predicate) };
  if (isScored(entries)) document["theta"] = theta(entries);
  if (entries.every !== null) document["every"] = entries.every;
  if (isOrdered(entries) && entries.horizon !== null) document["horizon"] = entries.horizon;
  if (entries.where.length > 0) document["where"] = entries.where;
  return document;
}

function predicate({ sense, place, isTimed, from, to, isForAll, total }: MotionStep): Record<string, unknown> {
  const written: Record<string, unknown> = place === null ? {} : { [sense]: place };
  if (!isTimed && sense !== "distance") return written;
  const isTotal = total !== null && sense !== "distance";
  Object.assign(written, { window: [from, to], quantifier: isTotal ? "total" : isForAll ? "forall" : "exists" });
  if (isTotal) Object.assign(written, { [total.bound]: total.time }, total.gap === null ? {} : { gap: total.gap });
  return written;
}

function theta({ scoring, k, value }: MotionEntries): Record<string, unknown> {
  if (scoring === "top" || scoring === "bottom") return { op: "top", k: bound(k), order: scoring === "top" ? "min" : "max" };
  return scoring === "<=" || scoring === ">=" ? { op: scoring, value: bound(value) } : { op: scoring };
}

/** Whether any step is a distance: only then is there a score. */
export function isScored({ steps }: MotionEntries): boolean {
  return steps.some((step) => step.sense === "distance");
}

/** Whether any step has no time window: only then is there a horizon. */
export function isOrdered({ steps }: MotionEntries): boolean {
  return steps.some((step) => step.sense !== "distance" && !step.isTimed);
}

/** The steps with one moved to another index; indices beyond the ends are clamped. */
export function moved(steps: readonly MotionStep[], id: number, to: number): MotionStep[] {
  const step = steps.find((one) => one.id === id);
  if (step === undefined) return [...steps];
  const rest = steps.filter((one) => one !== step);
  rest.splice(Math.max(0, Math.min(to, rest.length)), 0, step);
  return rest;
}

/**
 * The index of the step that this one comes after: the previous step that takes part in
 * the order (no distance, no accumulated time), if one of both has no fixed time. Null
 * when it comes after none.
 */
export function placeBefore(steps: readonly MotionStep[], i: number): number | null {
  const isPart = (step: MotionStep | undefined): step is MotionStep =>
    step !== undefined && step.sense !== "distance" && step.total === null;
  const at = steps.slice(0, i).findLastIndex(isPart);
  const [before, step] = [steps[at], steps[i]];
  return before !== undefined && isPart(step) && (!step.isTimed || !before.isTimed) ? at : null;
}
