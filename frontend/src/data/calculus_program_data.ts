/**
 * Analysis of a program's text for the rule editor, without the server: tokens, names and their
 * kinds, places of faults. Pure.
 */

import type { Fault } from "../lib/api";

export const HEADS = ["initiatedAt", "terminatedAt", "holdsFor", "happensAt", "initially", "initiates", "terminates"] as const;
export const CONDITIONS = ["happensAt", "holdsAt", "holdsFor", "start", "end"] as const;
export const CONSTRUCTS = [
  "union_all",
  "intersect_all",
  "relative_complement_all",
  "complement_all",
  "intDurGreater",
  "impliedSpeedBelow",
  "allen",
  "before",
  "meets",
  "starts",
  "finishes",
  "during",
  "overlaps",
  "equal",
] as const;
export const DECLARATIONS = [
  "spatial",
  "grounding",
  "dynamicDomain",
  "outputEntity",
  "inputEntity",
  "buildFromPoints",
  "collectIntervals",
  "points",
  "index",
  "cachingOrder",
  "event",
  "simpleFluent",
  "sDFluent",
  "fi",
  "p",
] as const;
export const FUNCTIONS = [
  "abs",
  "min",
  "max",
  "sqrt",
  "angle_difference",
  "bearing",
  "distance",
  "mod",
  "rem",
  "is",
  "inRange",
  "absoluteAngleDiff",
] as const;
const SPATIAL = ["distance", "proximity", "inside"];

export type TokenKind = "name" | "quoted" | "variable" | "number" | "comment" | "end" | "open" | "close" | "operator";
export interface Token {
  kind: TokenKind;
  text: string;
  /** Offset in the text. */
  at: number;
}

/** In order of precedence: the first kind that matches applies. */
const PATTERNS: readonly [TokenKind, RegExp][] = [
  ["comment", /%[^\n\r\u0085\u2028\u2029]*|\/\*[\s\S]*?(?:\*\/|$)/],
  ["quoted", /'[^'\n]*'?/],
  ["variable", /[A-Z_][A-Za-z0-9_]*/],
  ["name", /[a-z][A-Za-z0-9_]*/],
  ["number", /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/],
  ["end", /\.(?=\s|%|$)/],
  ["open", /[([]/],
  ["close", /[)\]]/],
  ["operator", /:-|\\\+|=:=|=\\=|\\==|\\=|==|@=<|@>=|@<|@>|=<|>=|\/\/|[-+*/=<>,;!.]/],
];
const TOKENS = new RegExp(PATTERNS.map(([, pattern]) => `(${pattern.source})`).join("|"), "g");

export function tokens(text: string): Token[] {
  const found: Token[] = [];
  for (const match of text.matchAll(TOKENS)) {
    const place = (match.slice(1) as (string | undefined)[]).findIndex((group) => group !== undefined);
    found.push({ kind: PATTERNS[place]![0], text: match[0], at: match.index });
  }
  return found;
}

export interface Used {
  name: string;
  kind: "event" | "fluent";
  /** The arguments as written at the first occurrence. */
  args: string[];
}

export interface Names {
  /** Fluents and events that rules or spatial declarations define, in order of appearance. */
  defined: Used[];
  /** Names that occur in conditions and are not defined: rows must provide them. */
  inputs: (Used & { points: boolean })[];
  /** Names of regions in `inside(...)`. */
  regions: string[];
  /** The names declared by `outputEntity(...)`. */
  outputs: string[];
  variables: string[];
}

/** Names and their kinds, as far as they are known from a text that may be incomplete. */
export function namesOf(text: string): Names {
  const all = tokens(text).filter((token) => token.kind !== "comment");
  const defined = new Map<string, Used>();
  const used = new Map<string, Used>();
  const points = new Set<string>();
  const regions = new Set<string>();
  const outputs = new Set<string>();
  let isHead = true;
  for (let i = 0; i < all.length; i++) {
    const token = all[i]!;
    const opens = token.kind === "name" && all[i + 1]?.text === "(";
    if (opens && ((HEADS as readonly string[]).includes(token.text) || token.text === "holdsAt")) {
      const first = patternAt(
        all,
        i + 2,
        token.text === "happensAt" || token.text === "initiates" || token.text === "terminates" ? "event" : "fluent",
      );
      const isTwo = token.text === "initiates" || token.text === "terminates";
      if (first !== null) put(isHead && !isTwo ? defined : used, first);
      if (isTwo) {
        const second = patternAt(all, argumentEnd(all, i + 2) + 1, "fluent");
        if (second !== null) put(isHead ? defined : used, second);
      }
    } else if (
      opens &&
      isHead &&
      (token.text === "spatial" || token.text === "buildFromPoints" || token.text === "points" || token.text === "collectIntervals")
    ) {
      const pattern = patternAt(all, i + 2, "fluent");
      if (pattern !== null) {
        put(token.text === "spatial" ? defined : used, pattern);
        if (token.text === "buildFromPoints" || token.text === "points") points.add(pattern.name);
      }
    } else if (opens && isHead && token.text === "outputEntity" && isName(all[i + 2])) {
      outputs.add(unquoted(all[i + 2]!.text));
    } else if (opens && SPATIAL.includes(token.text) && isName(all[i + 2]) && all[i + 3]?.text === "," && isWithinSpatial(all, i)) {
      put(used, { name: unquoted(all[i + 2]!.text), kind: "event", args: [] });
      const region = all[i + 4];
      if (token.text === "inside" && region !== undefined && isName(region)) regions.add(unquoted(region.text));
    }
    if (token.kind === "end") isHead = true;
    else if (isHead && (token.text === ":-" || depthCloses(all, i))) isHead = false;
  }
  const inputs = [...used.values()].filter((one) => !defined.has(one.name)).map((one) => ({ ...one, points: points.has(one.name) }));
  return {
    defined: [...defined.values()],
    inputs,
    regions: [...regions],
    outputs: [...outputs],
    variables: [...new Set(all.filter((token) => token.kind === "variable" && token.text !== "_").map((token) => token.text))],
  };
}

/**
 * A defined name that differs from the undefined `name` by one letter, or two exchanged ones.
 */
export function definedAlike(name: string, { defined }: Names): string | null {
  return defined.find((one) => one.name !== name && name.length > 3 && isOneSlip(name, one.name))?.name ?? null;
}

function isOneSlip(a: string, b: string): boolean {
  const [short, long] = a.length <= b.length ? [a, b] : [b, a];
  let i = 0;
  while (i < short.length && short[i] === long[i]) i++;
  if (short.length < long.length) return short.slice(i) === long.slice(i + 1);
  return (
    short.slice(i + 1) === long.slice(i + 1) ||
    (short[i] === long[i + 1] && short[i + 1] === long[i] && short.slice(i + 2) === long.slice(i + 2))
  );
}

/** The head ends when its outermost bracket closes. */
function depthCloses(all: readonly Token[], i: number): boolean {
  if (all[i]!.kind !== "close") return false;
  let depth = 0;
  for (let j = i; j >= 0 && all[j]!.kind !== "end"; j--) depth += all[j]!.kind === "close" ? 1 : all[j]!.kind === "open" ? -1 : 0;
  return depth === 0;
}

function isWithinSpatial(all: readonly Token[], i: number): boolean {
  let j = i;
  while (j > 0 && all[j - 1]!.kind !== "end") j--;
  return all[j]!.text === "spatial";
}

/** The first use of a name decides its kind; a later use with arguments adds them. */
function put(into: Map<string, Used>, one: Used): void {
  const known = into.get(one.name);
  if (known === undefined || (known.args.length === 0 && one.args.length > 0)) into.set(one.name, one);
}

/** `name(args)` or `name(args)=value` at a token, or the fluent inside start(...) and end(...). */
function patternAt(all: readonly Token[], at: number, kind: "event" | "fluent"): Used | null {
  const token = all[at];
  if (token === undefined || !isName(token)) return null;
  if (kind === "event" && (token.text === "start" || token.text === "end") && all[at + 1]?.text === "(")
    return patternAt(all, at + 2, "fluent");
  const args: string[] = [];
  if (all[at + 1]?.text === "(") {
    for (let from = at + 2; from < all.length;) {
      const end = argumentEnd(all, from);
      if (end > from)
        args.push(
          all
            .slice(from, end)
            .map((one) => one.text)
            .join(""),
        );
      if (all[end]?.text !== ",") break;
      from = end + 1;
    }
  }
  return { name: unquoted(token.text), kind, args };
}

/** The index of the comma or bracket that ends the argument beginning at `from`. */
function argumentEnd(all: readonly Token[], from: number): number {
  let depth = 0;
  for (let i = from; i < all.length; i++) {
    const { kind, text } = all[i]!;
    if (kind === "end" || (depth === 0 && (text === "," || kind === "close"))) return i;
    if (kind === "open") depth += 1;
    else if (kind === "close") depth -= 1;
  }
  return all.length;
}

function isName(token: Token | undefined): boolean {
  return token?.kind === "name" || token?.kind === "quoted";
}

function unquoted(text: string): string {
  return text.startsWith("'") ? text.replace(/^'|'$/g, "") : text;
}

/** A name in the program's syntax: quoted unless it is one word that begins with a small letter. */
export function quoted(name: string): string {
  return /^[a-z][A-Za-z0-9_]*$/.test(name) ? name : `'${name}'`;
}

export interface Placed {
  /** Both count from 1. */
  line: number;
  column: number;
  message: string;
}

/**
 * Splits a fault of the program into place and message (the place comes first in every
 * language); null without a place.
 */
export function placed(fault: Fault): Placed | null {
  const match = /^\p{L}+ (\d+), \p{L}+ (\d+): ([\s\S]*)$/u.exec(fault.message);
  return match === null || !fault.pointer.endsWith("/program")
    ? null
    : { line: Number(match[1]), column: Number(match[2]), message: match[3]! };
}

/** The range of the text to mark for a fault: the word at its place, or the rest of the line. */
export function marked(text: string, { line, column }: Pick<Placed, "line" | "column">): [number, number] {
  const lines = text.split("\n");
  const row = Math.min(Math.max(1, line), lines.length);
  let start = 0;
  for (let i = 0; i < row - 1; i++) start += lines[i]!.length + 1;
  const content = lines[row - 1]!;
  const from = Math.min(column - 1, content.length);
  const word = /^[A-Za-z0-9_']+/.exec(content.slice(from))?.[0].length ?? 1;
  const to = Math.min(content.length, from + word);
  return to > from ? [start + from, start + to] : [start + Math.max(0, content.length - 1), start + content.length];
}
