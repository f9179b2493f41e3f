/**
 * Conversion between editor entries and documents of the family `composite`, in both directions,
 * and the server's analysis. Pure.
 */

import { placedFault } from "../lib/api";
import { anything, boolean, isObject, list, nullable, oneOf, record, string } from "../lib/parse";
import { asGeometry, describe, isReference, type Geometry, type Reference } from "../lib/regions";
import { formatSpan, parseDuration } from "../lib/time";
import {
  fromTree,
  group,
  leaf,
  namesIn,
  outline,
  patternText,
  renamed,
  toTree,
  type Link,
  type PatternNode,
  type Span,
} from "./composite_tree";
import { shownRight } from "./constraint_data";
import { inSentence } from "../lib/words";
import type { Feed } from "../lib/shapes";
import { t } from "../lib/texts";

export interface PrimitiveEntry {
  where: unknown[];
  /** A prefix of a column's text: a group of tags. */
  prefix: [column: string, beginning: string][];
  inside: Geometry | Reference | null;
  outside: Geometry | Reference | null;
  others: Record<string, unknown>;
}

export interface CompositeEntries {
  /** Null until the server has parsed the text. */
  root: PatternNode | null;
  /** The document's `pattern`: text, or a JSON tree if it was written as one. */
  written: unknown;
  /**
   * Includes primitives that the pattern does not use at present: a name that is used
   * again keeps its definition.
   */
  primitives: ReadonlyMap<string, PrimitiveEntry>;
  /** Primitives of the stored document that its pattern does not use: they are kept. */
  unused: ReadonlySet<string>;
  isPerEntity: boolean;
  within: Span;
  where: unknown[];
  others: Record<string, unknown>;
}

export const patternAnswer = record({
  faults: list(placedFault),
  tree: anything,
  words: nullable(string),
  leaves: list(record({ name: string, kind: oneOf("normal", "trigger", "negative"), needed: boolean })),
});
export type PatternAnswer = ReturnType<typeof patternAnswer>;
export type Leaf = PatternAnswer["leaves"][number];

const OWN_KEYS = new Set(["family", "version", "pattern", "primitives", "per", "within", "where"]);
const PRIMITIVE_KEYS = new Set(["where", "prefix", "inside", "outside"]);
const NAME = /^[\p{L}_][\p{L}\p{N}_]{0,99}$/u;
const WORDS = ["and", "or", "null"];

export function isName(text: string): boolean {
  return NAME.test(text) && !WORDS.includes(text.toLowerCase());
}

export function emptyPrimitive(): PrimitiveEntry {
  return { where: [], prefix: [], inside: null, outside: null, others: {} };
}

export function defaultSpan(feed: Feed): string | number {
  return feed.time === "ms" ? "PT5M" : 100;
}

/** A new query asks for one event after another, of the same entity. */
export function fromDocument(document: Record<string, unknown>, feed: Feed): CompositeEntries {
  const { pattern, primitives, per, within, where } = document;
  const others = Object.fromEntries(Object.entries(document).filter(([key]) => !OWN_KEYS.has(key)));
  if (pattern === undefined) {
    const root = group("sequence", [leaf("A"), leaf("B")]);
    const empty = new Map(namesIn(root).map((name) => [name, emptyPrimitive()]));
    return {
      root,
      written: patternText(root),
      primitives: empty,
      unused: new Set(),
      isPerEntity: true,
      within: feed.time === "ms" ? "PT10M" : 1000,
      where: [],
      others,
    };
  }
  const read = isObject(primitives)
    ? Object.entries(primitives).map(([name, value]): [string, PrimitiveEntry] => [name, readPrimitive(value)])
    : [];
  const root = typeof pattern === "string" ? null : fromTree(pattern);
  return {
    root,
    written: pattern,
    primitives: new Map(read),
    unused:
      root === null
        ? new Set()
        : unusedOf(
            root,
            read.map(([name]) => name),
          ),
    isPerEntity: per === "entity",
    within: typeof within === "string" || typeof within === "number" ? within : null,
    where: Array.isArray(where) ? where : [],
    others,
  };
}

function unusedOf(root: PatternNode, names: Iterable<string>): Set<string> {
  const named = new Set(namesIn(root));
  return new Set([...names].filter((name) => !named.has(name)));
}

/** The server has parsed the text: this is now the tree. */
export function withRead(entries: CompositeEntries, root: PatternNode): CompositeEntries {
  return { ...entries, root, unused: entries.root === null ? unusedOf(root, entries.primitives.keys()) : entries.unused };
}

function readPrimitive(value: unknown): PrimitiveEntry {
  const source = isObject(value) ? value : {};
  const { where, prefix, inside, outside } = source;
  return {
    where: Array.isArray(where) ? where : [],
    prefix: isObject(prefix) ? Object.entries(prefix).map(([column, text]) => [column, typeof text === "string" ? text : ""]) : [],
    inside: readRegion(inside),
    outside: readRegion(outside),
    others: Object.fromEntries(Object.entries(source).filter(([key]) => !PRIMITIVE_KEYS.has(key))),
  };
}

function readRegion(value: unknown): Geometry | Reference | null {
  return isReference(value) ? { region: value.region } : asGeometry(value);
}

/** The document; missing parts are left out, so that the server reports them. */
export function toDocument(entries: CompositeEntries): Record<string, unknown> {
  const { root, written, primitives, unused, isPerEntity, within, where, others } = entries;
  const named = new Set(root === null ? primitives.keys() : typeof written === "string" ? wordsOf(written) : namesIn(root));
  const meanings = [...primitives]
    .filter(([name]) => named.has(name) || unused.has(name))
    .map(([name, entry]): [string, unknown] => [name, writtenPrimitive(entry)]);
  const document: Record<string, unknown> = {
    ...others,
    family: "composite",
    version: 1,
    pattern: written,
    primitives: Object.fromEntries(meanings),
    per: isPerEntity ? "entity" : null,
  };
  if (within !== null) document["within"] = within;
  if (where.length > 0) document["where"] = where;
  return document;
}

/** Possible names in a text that the server has not parsed yet, or cannot parse. */
function wordsOf(text: string): string[] {
  return text.match(/[\p{L}_][\p{L}\p{N}_]*/gu) ?? [];
}

function writtenPrimitive({ where, prefix, inside, outside, others }: PrimitiveEntry): Record<string, unknown> {
  const document: Record<string, unknown> = { ...others };
  if (where.length > 0) document["where"] = where;
  if (prefix.length > 0) document["prefix"] = Object.fromEntries(prefix);
  if (inside !== null) document["inside"] = inside;
  if (outside !== null) document["outside"] = outside;
  return document;
}

// ---- Changes

/** Keeps the document's form of the pattern, text or tree, after a change of the tree. */
export function withRoot(entries: CompositeEntries, root: PatternNode): CompositeEntries {
  return root === entries.root
    ? entries
    : { ...entries, root, written: typeof entries.written === "string" ? patternText(root) : toTree(root) };
}

export function withPrimitive(entries: CompositeEntries, name: string, entry: PrimitiveEntry): CompositeEntries {
  return { ...entries, primitives: new Map([...entries.primitives, [name, entry]]) };
}

/** A copy of a primitive under another name. */
export function withRenamed(entries: CompositeEntries, from: string, to: string): CompositeEntries {
  if (entries.root === null) return entries;
  const primitives = new Map(
    [...entries.primitives].flatMap(([name, entry]) => (name === to ? [] : [[name === from ? to : name, entry] as const])),
  );
  return { ...withRoot(entries, renamed(entries.root, from, to)), primitives };
}

export function freshName({ primitives }: CompositeEntries): string {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (let i = 0; ; i++) {
    const name = i < letters.length ? letters[i]! : `P${i + 1}`;
    if (!primitives.has(name)) return name;
  }
}

/** Names in the pattern without a definition. */
export function undefinedNames({ root, primitives }: CompositeEntries): string[] {
  return root === null ? [] : namesIn(root).filter((name) => !primitives.has(name));
}

// ---- Words

/** A short text of the conditions on an event. */
export function primitiveWords(entry: PrimitiveEntry, feed: Feed): string {
  const parts = entry.where.map((row) => (Array.isArray(row) ? `${String(row[0])} ${String(row[1])} ${shownRight(row[2])}` : ""));
  parts.push(...entry.prefix.map(([column, beginning]) => t("{column} begins {beginning}", { column, beginning })));
  const words = (region: Geometry | Reference): string =>
    isReference(region) ? region.region : inSentence(describe(region, feed.crs === "geographic"));
  if (entry.inside !== null) parts.push(t("inside {region}", { region: words(entry.inside) }));
  if (entry.outside !== null) parts.push(t("outside {region}", { region: words(entry.outside) }));
  return parts.join(", ") || t("any event");
}

function spanWords(value: Span, feed: Feed): string {
  const length = value === null ? null : parseDuration(value);
  return length === null ? String(value ?? "…") : formatSpan(length, feed.time);
}

/** "within 5 min", "1 min to 5 min later"; empty without bounds. */
export function boundsWords(link: Link | null, feed: Feed): string {
  const [low, high] = link?.bounds ?? [null, null];
  const [from, to] = [low === 0 ? null : low, high];
  if (from !== null && to !== null) return t("{from} to {to} later", { from: spanWords(from, feed), to: spanWords(to, feed) });
  return to !== null
    ? t("within {span}", { span: spanWords(to, feed) })
    : from !== null
      ? t("at least {from} later", { from: spanWords(from, feed) })
      : "";
}

/** The text of an operator. */
export function operatorWords({ op, span }: PatternNode, feed: Feed): string {
  if (op === "interval") return t("within {span} of each other", { span: spanWords(span, feed) });
  if (op === "absence") return t("then not for {span}", { span: spanWords(span, feed) });
  if (op === "before") return t("and not in the {span} before", { span: spanWords(span, feed) });
  if (op === "around")
    return t("and not from {span} before until {span2} after", { span: spanWords(span, feed), span2: spanWords(span, feed) });
  return { sequence: t("in this order"), and: t("all, in any order"), or: t("one of them"), primitive: "" }[op];
}

/**
 * The server's leaf of each leaf node: both are ordered from left to right.
 * Empty while they do not match.
 */
export function leavesById(root: PatternNode, leaves: readonly Leaf[]): Map<number, Leaf> {
  const nodes = outline(root).flatMap(({ node }) => (node.op === "primitive" ? [node] : []));
  if (nodes.length !== leaves.length || nodes.some(({ name }, i) => name !== leaves[i]!.name)) return new Map();
  return new Map(nodes.map((node, i) => [node.id, leaves[i]!]));
}

/**
 * When the pattern is evaluated: the names that trigger it, and those that
 * must have occurred before.
 */
export function evaluation(leaves: readonly Leaf[]): { triggers: string[]; needed: string[] } {
  const triggers = [...new Set(leaves.filter(({ kind }) => kind === "trigger").map(({ name }) => name))];
  const [only] = triggers.length === 1 ? triggers : [];
  const needed = [...new Set(leaves.filter((one) => one.needed && one.name !== only).map(({ name }) => name))];
  return { triggers, needed };
}
