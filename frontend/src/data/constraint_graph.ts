/**
 * The drawn graph of a constraint query: nodes and edges with labels, and the
 * server's additions. Pure.
 */

import { placedFault } from "../lib/api";
import { boolean, integer, list, nullable, number, object, record, string, type Parser } from "../lib/parse";
import { describe, isReference, type Geometry, type Reference } from "../lib/regions";
import { formatNumber } from "../lib/time";
import { shownRight, variablesOf, type ConstraintEntries, type ConstraintEntry, type DistanceEntry } from "./constraint_data";
import { lagWords, spanValue, type SignedSpan } from "./constraint_spans";
import { inSentence } from "../lib/words";
import type { Feed } from "../lib/shapes";
import { t } from "../lib/texts";

const pair: Parser<[string, string]> = (value, path = "") => {
  const names = list(string)(value, path);
  return [names[0] ?? "", names[1] ?? ""];
};
const edge = record({
  between: pair,
  dt: nullable(list(nullable(number))),
  distance: nullable(record({ max: number, open: boolean })),
  explicit: record({ dt: boolean, distance: boolean }),
});
export const closureAnswer = record({
  faults: list(placedFault),
  document: nullable(object),
  text: nullable(string),
  edges: list(edge),
  conflict: nullable(record({ constraints: list(integer), cycle: list(pair), reason: string })),
});
export type Closure = ReturnType<typeof closureAnswer>;

export interface GraphEdge {
  /** "A|B", names in the order of the variables. */
  key: string;
  from: string;
  to: string;
  lines: string[];
  /** The constraints that state it; none: it is implied by the others. */
  constraints: number[];
  isInConflict: boolean;
  /** The order of the two matters: the edge has an arrow. */
  isOrdered: boolean;
  /** Another edge shows the same constraint, so this one is redundant. */
  isRepeated: boolean;
}

/** The key of two names, in the order of the variables. */
function edgeKey(one: string, other: string, names: readonly string[]): string {
  return names.indexOf(one) <= names.indexOf(other) ? `${one}|${other}` : `${other}|${one}`;
}

export function graphEdges(entries: ConstraintEntries, closure: Closure | null, feed: Feed): GraphEdge[] {
  const names = entries.variables.map(({ name }) => name);
  const edges = new Map<string, GraphEdge>();
  for (const constraint of entries.constraints) {
    const known = constraint.between.filter((name) => names.includes(name));
    known.forEach((from, i) => {
      for (const to of known.slice(i + 1)) {
        const key = edgeKey(from, to, names);
        const found = edges.get(key) ?? {
          key,
          from,
          to,
          lines: [],
          constraints: [],
          isInConflict: false,
          isOrdered: false,
          isRepeated: false,
        };
        found.lines.push(...pairLines(constraint, from, to, feed));
        found.constraints.push(constraint.id);
        found.isOrdered ||= constraint.dt !== null && isOrdered(constraint.dt);
        edges.set(key, found);
      }
    });
  }
  for (const { between, dt, distance, explicit } of closure?.edges ?? []) {
    const key = edgeKey(...between, names);
    if (edges.has(key) || explicit.dt || explicit.distance || !between.every((name) => names.includes(name))) continue;
    const lines = dt === null ? [] : [lagWords([dt[0] ?? null, dt[1] ?? null], feed.time)];
    if (distance !== null) lines.push(distanceWords({ max: String(distance.max), min: "", isOpen: distance.open }, feed));
    edges.set(key, {
      key,
      from: between[0],
      to: between[1],
      lines,
      constraints: [],
      isInConflict: false,
      isOrdered: false,
      isRepeated: false,
    });
  }
  for (const between of closure?.conflict?.cycle ?? []) {
    const found = edges.get(edgeKey(...between, names));
    if (found !== undefined) found.isInConflict = true;
  }
  return withRepeats([...edges.values()]);
}

function withRepeats(edges: GraphEdge[]): GraphEdge[] {
  const seen = new Set<string>();
  for (const edge of edges) {
    const key = JSON.stringify([edge.constraints, edge.lines]);
    edge.isRepeated = edge.constraints.length > 0 && !edge.isInConflict && seen.has(key);
    seen.add(key);
  }
  return edges;
}

function isOrdered([low, high]: readonly [SignedSpan, SignedSpan]): boolean {
  const [from, to] = [spanValue(low), spanValue(high)];
  return from === null ? to !== null : to === null || from !== -to;
}

/** The constraints on one pair, one per line; of a longer list only the part about these two. */
function pairLines({ dt, distance, compare }: ConstraintEntry, from: string, to: string, feed: Feed): string[] {
  const lines = dt === null ? [] : [lagWords(dt, feed.time)];
  if (distance !== null) lines.push(distanceWords(distance, feed));
  for (const { left, op, right } of compare) {
    const named = [left, right].flatMap((side) => variablesOf(side, [from, to]));
    if (named.includes(from) && named.includes(to)) lines.push(`${shownRight(left)} ${op} ${shownRight(right)}`);
  }
  return lines;
}

function distanceWords({ max, min, isOpen }: DistanceEntry, feed: Feed): string {
  const [most, least] = isOpen ? ["<", ">"] : ["≤", "≥"];
  const parts = [min === "" ? "" : `${least} ${lengthWords(min, feed)}`, max === "" ? "" : `${most} ${lengthWords(max, feed)}`].filter(
    (part) => part !== "",
  );
  return parts.length === 0 ? t("some distance") : parts.join(t(" and "));
}

function lengthWords(text: string, feed: Feed): string {
  const value = Number(text);
  if (!Number.isFinite(value)) return text;
  const rounded = (one: number): string => formatNumber(Number(one.toPrecision(6)));
  if (feed.crs !== "geographic") return rounded(value);
  return value >= 1000 ? `${rounded(value / 1000)} km` : `${rounded(value)} m`;
}

function regionWords(region: Geometry | Reference | null, feed: Feed): string {
  if (region === null) return "…";
  return isReference(region) ? region.region : inSentence(describe(region, feed.crs === "geographic"));
}

/** The conditions on a node's events, one per line. */
export function nodeLines(entries: ConstraintEntries, name: string, feed: Feed): string[] {
  const variable = entries.variables.find((one) => one.name === name);
  const names = entries.variables.map((one) => one.name);
  const lines = (variable?.where ?? []).map((row) =>
    Array.isArray(row) ? `${String(row[0])} ${String(row[1])} ${shownRight(row[2])}` : "",
  );
  for (const { between, inside, compare } of entries.constraints) {
    if (between.includes(name) && inside !== null) lines.push(t("inside {region}", { region: regionWords(inside.region, feed) }));
    for (const { left, op, right } of compare) {
      const named = new Set([left, right].flatMap((side) => variablesOf(side, names)));
      // A node's own columns are shown without its name.
      if (named.size === 1 && named.has(name)) lines.push([shownRight(left), op, shownRight(right)].join(" ").replaceAll(`${name}.`, ""));
    }
  }
  return lines;
}

/** Positions on a circle in a frame of `width` by `height` CSS pixels, the first at the top. */
export function circlePlaces(names: readonly string[], width: number, height: number): Map<string, [number, number]> {
  const [rx, ry] = [Math.max(60, width / 2 - 110), Math.max(50, height / 2 - 62)];
  const flat = names.length === 2 ? Math.PI / 2 : 0;
  return new Map(
    names.map((name, i) => {
      const angle = (i / Math.max(1, names.length)) * 2 * Math.PI - Math.PI / 2 - flat;
      return [
        name,
        names.length === 1
          ? [width / 2, height / 2]
          : [Math.round(width / 2 + rx * Math.cos(angle)), Math.round(height / 2 + ry * Math.sin(angle))],
      ];
    }),
  );
}
