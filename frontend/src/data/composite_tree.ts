/**
 * The tree of a composite pattern: parsed from JSON, written as JSON and as text,
 * edited node by node. Pure.
 */

import { isObject } from "../lib/parse";

export const OPERATORS = ["sequence", "and", "or", "interval", "absence", "before", "around"] as const;
export type Operator = (typeof OPERATORS)[number];
/**
 * As in the document: a number in the feed's unit or an ISO 8601 duration; null for an
 * empty field or an open side.
 */
export type Span = string | number | null;

/** The constraints between two neighbours of a sequence. */
export interface Link {
  readonly bounds: readonly [Span, Span] | null;
  readonly without: PatternNode | null;
}

export interface PatternNode {
  /** Unique on this page only. */
  readonly id: number;
  readonly op: Operator | "primitive";
  /** The name of a primitive, else empty. */
  readonly name: string;
  /**
   * In the order of the text: for `absence` and `around` the event, then the negated part; for
   * `before` the negated part first.
   */
  readonly parts: readonly PatternNode[];
  /** For a sequence: `links[i]` is between `parts[i]` and `parts[i + 1]`. */
  readonly links: readonly Link[];
  /** For an interval or a negation with a time. */
  readonly span: Span;
}

const PLAIN: Link = { bounds: null, without: null };
let lastId = 0;

export function leaf(name: string): PatternNode {
  return { id: ++lastId, op: "primitive", name, parts: [], links: [], span: null };
}

export function group(
  op: Operator,
  parts: readonly PatternNode[],
  span: Span = null,
  links: readonly Link[] = parts.slice(1).map(() => PLAIN),
): PatternNode {
  return flat({ id: ++lastId, op, name: "", parts, links: op === "sequence" ? links : [], span: isList(op) ? null : span });
}

/** The index of the negated part of a negation with a time; null for other operators. */
export function never(op: PatternNode["op"]): number | null {
  return op === "before" ? 0 : op === "absence" || op === "around" ? 1 : null;
}

/** Operators with any number of parts, associative from the left. */
function isList(op: PatternNode["op"]): boolean {
  return op === "sequence" || op === "and" || op === "or";
}

/** `(A : B) : C` is `A : B : C`. */
function flat(node: PatternNode): PatternNode {
  const [first, ...rest] = node.parts;
  if (!isList(node.op) || first?.op !== node.op) return node;
  return { ...node, parts: [...first.parts, ...rest], links: [...first.links, ...node.links] };
}

// ---- The JSON form

/** Null when the value is not a pattern. */
export function fromTree(value: unknown): PatternNode | null {
  if (typeof value === "string") return leaf(value);
  const op = isObject(value) ? OPERATORS.find((one) => one in value) : undefined;
  if (op === undefined || !isObject(value) || !Array.isArray(value[op])) return null;
  const parts = value[op].map(fromTree);
  if (parts.length < 2 || parts.includes(null)) return null;
  const { bounds } = value;
  const without = value["without"] === undefined ? null : fromTree(value["without"]);
  const link: Link = { bounds: Array.isArray(bounds) ? [span(bounds[0]), span(bounds[1])] : null, without };
  return (parts as PatternNode[]).reduce((before, part) => group(op, [before, part], span(value["span"]), [link]));
}

function span(value: unknown): Span {
  return typeof value === "string" || typeof value === "number" ? value : null;
}

/** Operators with two operands each, as the engine writes them. */
export function toTree(node: PatternNode): unknown {
  const [first, ...rest] = node.parts;
  if (node.op === "primitive" || first === undefined) return node.name;
  const { op } = node;
  const length = node.span === null ? {} : { span: node.span };
  return rest.reduce(
    (before: unknown, part, i) => ({ [op]: [before, toTree(part)], ...length, ...linkTree(node.links[i] ?? PLAIN) }),
    toTree(first),
  );
}

function linkTree({ bounds, without }: Link): Record<string, unknown> {
  return { ...(without === null ? {} : { without: toTree(without) }), ...(bounds === null ? {} : { bounds }) };
}

// ---- The text

const [OR, AND, CHAIN, ATOM] = [0, 1, 2, 3];

/** A text that parses to the same tree, without unnecessary brackets. */
export function patternText(node: PatternNode): string {
  return operand(node, OR);
}

/** `node` as an operand whose operators must bind at least as tightly as `least`. */
function operand(node: PatternNode, least: number): string {
  const [text, binding] = written(node);
  return binding >= least ? text : `(${text})`;
}

function written({ op, name, parts, links, span: length }: PatternNode): [string, number] {
  const [first, ...rest] = parts;
  if (op === "primitive" || first === undefined) return [name, ATOM];
  if (op === "or") return [[operand(first, OR), ...rest.map((part) => operand(part, AND))].join(" OR "), OR];
  if (op === "and") return [[operand(first, AND), ...rest.map((part) => operand(part, CHAIN))].join(" AND "), AND];
  if (op === "around") return [`${operand(first, AND)} AND !${operand(rest[0]!, ATOM)}[${length ?? ""}]`, AND];
  if (op === "before") return [`!${operand(first, ATOM)}[${length ?? ""}] : ${operand(rest[0]!, ATOM)}`, CHAIN];
  const before = operand(first, CHAIN);
  const atoms = rest.map((part) => operand(part, ATOM));
  if (op === "interval") return [`${before} ;[${length ?? ""}] ${atoms[0] ?? ""}`, CHAIN];
  if (op === "absence") return [`${before} : !${atoms[0] ?? ""}[${length ?? ""}]`, CHAIN];
  return [atoms.reduce((text, atom, i) => `${text}${linkText(links[i] ?? PLAIN)} ${atom}`, before), CHAIN];
}

function linkText({ bounds, without }: Link): string {
  const negated = without === null ? "" : ` : !${operand(without, ATOM)}`;
  return `${negated} :${bounds === null ? "" : `[${bounds[0] ?? "null"},${bounds[1] ?? "null"}]`}`;
}

// ---- Walking

/**
 * The role of a node in its parent. `then`: comes after the previous one;
 * `without`, `never`: must not occur.
 */
export type Role = "root" | "first" | "then" | "without" | "never" | "part";

export interface Row {
  node: PatternNode;
  /** Counts from 1. */
  level: number;
  role: Role;
  /** The link before it, for a `then` and its `without`. */
  link: Link | null;
  parent: PatternNode | null;
  /** The index of the part in its parent; a `without` has that of the part after it. */
  index: number;
}

/**
 * All nodes from top to bottom in display order: what must not occur between two
 * parts is shown between them.
 */
export function outline(root: PatternNode): Row[] {
  const rows: Row[] = [];
  const walk = (row: Row): void => {
    rows.push(row);
    const { node, level } = row;
    node.parts.forEach((part, index) => {
      const link = node.op === "sequence" ? (node.links[index - 1] ?? null) : null;
      if (link !== null && link.without !== null)
        walk({ node: link.without, level: level + 1, role: "without", link, parent: node, index });
      walk({ node: part, level: level + 1, role: roleOf(node.op, index), link, parent: node, index });
    });
  };
  walk({ node: root, level: 1, role: "root", link: null, parent: null, index: 0 });
  return rows;
}

function roleOf(op: PatternNode["op"], index: number): Role {
  if (op === "sequence") return index === 0 ? "first" : "then";
  return never(op) === null ? "part" : index === never(op) ? "never" : "first";
}

export function rowOf(root: PatternNode, id: number): Row | null {
  return outline(root).find((row) => row.node.id === id) ?? null;
}

/** The names of primitives, each once, from left to right. */
export function namesIn(root: PatternNode): string[] {
  return [...new Set(outline(root).flatMap(({ node }) => (node.op === "primitive" ? [node.name] : [])))];
}

// ---- Changes: each gives the new tree, or the same one if nothing changes

function changed(node: PatternNode, id: number, change: (node: PatternNode) => PatternNode): PatternNode {
  if (node.id === id) return flat(change(node));
  return flat({
    ...node,
    parts: node.parts.map((part) => changed(part, id, change)),
    links: node.links.map((link) => (link.without === null ? link : { ...link, without: changed(link.without, id, change) })),
  });
}

/**
 * Combines `fresh` with a node by an operator: added to an existing list of that operator, else
 * both become the parts of a new operator.
 */
export function joined(root: PatternNode, id: number, op: Operator, fresh: PatternNode, length: Span = null): PatternNode {
  const row = rowOf(root, id);
  if (row === null) return root;
  const { node, parent, role, index } = row;
  if (isList(op) && node.op === op) return changed(root, id, (one) => withPart(one, one.parts.length, fresh));
  if (isList(op) && parent?.op === op && role !== "without") return changed(root, parent.id, (one) => withPart(one, index + 1, fresh));
  return changed(root, id, (one) => group(op, never(op) === 0 ? [fresh, one] : [one, fresh], length));
}

function withPart(node: PatternNode, at: number, fresh: PatternNode): PatternNode {
  const links = node.op === "sequence" ? node.links.toSpliced(at - 1, 0, PLAIN) : [];
  return { ...node, parts: node.parts.toSpliced(at, 0, fresh), links };
}

/** The tree without a node; an operator with only one part left is replaced by that part. */
export function removed(root: PatternNode, id: number): PatternNode {
  const row = rowOf(root, id);
  if (row === null || row.parent === null) return root;
  const { parent, index, role } = row;
  if (role === "without") return changed(root, parent.id, (one) => withLink(one, index, { without: null }));
  return changed(root, parent.id, (one) => {
    const parts = one.parts.toSpliced(index, 1);
    return parts.length === 1 ? parts[0]! : { ...one, parts, links: one.links.toSpliced(Math.max(0, index - 1), 1) };
  });
}

/** Whether a part can be swapped with its neighbour. */
export function canMove(row: Row, by: -1 | 1): boolean {
  const to = row.index + by;
  return row.parent !== null && row.role !== "without" && never(row.parent.op) === null && to >= 0 && to < row.parent.parts.length;
}

/** Swaps a part with its neighbour; the constraints between them stay in place. */
export function moved(root: PatternNode, id: number, by: -1 | 1): PatternNode {
  const row = rowOf(root, id);
  if (row === null || row.parent === null || !canMove(row, by)) return root;
  const [from, to] = [row.index, row.index + by];
  return changed(root, row.parent.id, (one) => ({ ...one, parts: one.parts.with(from, one.parts[to]!).with(to, one.parts[from]!) }));
}

/** Whether brackets around a part and the next one would change the meaning. */
export function canGroup({ parent, index, role }: Row): boolean {
  return parent !== null && role !== "without" && isList(parent.op) && index > 0 && index < parent.parts.length - 1;
}

/** Puts brackets around a part and the next one. */
export function grouped(root: PatternNode, id: number): PatternNode {
  const row = rowOf(root, id);
  if (row === null || row.parent === null || !canGroup(row)) return root;
  const { index } = row;
  return changed(root, row.parent.id, (one) => {
    const inner = group(one.op as Operator, one.parts.slice(index, index + 2), null, one.links.slice(index, index + 1));
    return { ...one, parts: one.parts.toSpliced(index, 2, inner), links: one.op === "sequence" ? one.links.toSpliced(index, 1) : [] };
  });
}

/** Another operator over the same parts; settings of the old one are dropped. */
export function turned(root: PatternNode, id: number, op: Operator, length: Span): PatternNode {
  return changed(root, id, (one) => {
    if (one.op === op || one.op === "primitive") return one;
    // From one negation to the other: the negated part stays negated.
    const isTurned = never(one.op) !== null && never(op) !== null && never(one.op) !== never(op);
    const [first, ...rest] = isTurned ? one.parts.toReversed() : one.parts;
    const made = isList(op)
      ? group(op, one.parts)
      : rest.reduce((before, part) => group(op, [before, part], never(one.op) === null ? length : one.span), first!);
    return { ...made, id: one.id };
  });
}

export function withSpan(root: PatternNode, id: number, length: Span): PatternNode {
  return changed(root, id, (one) => ({ ...one, span: length }));
}

/** Sets the constraints between a part of a sequence and the previous one. */
export function linked(root: PatternNode, id: number, change: Partial<Link>): PatternNode {
  const row = rowOf(root, id);
  return row === null || row.role !== "then" || row.parent === null
    ? root
    : changed(root, row.parent.id, (one) => withLink(one, row.index, change));
}

function withLink(node: PatternNode, index: number, change: Partial<Link>): PatternNode {
  return { ...node, links: node.links.map((link, i) => (i === index - 1 ? { ...link, ...change } : link)) };
}

/** Replaces the primitive of one leaf. */
export function named(root: PatternNode, id: number, name: string): PatternNode {
  return changed(root, id, (one) => ({ ...one, name }));
}

/** Renames a primitive everywhere. */
export function renamed(node: PatternNode, from: string, to: string): PatternNode {
  return {
    ...node,
    name: node.op === "primitive" && node.name === from ? to : node.name,
    parts: node.parts.map((part) => renamed(part, from, to)),
    links: node.links.map((link) => ({ ...link, without: link.without === null ? null : renamed(link.without, from, to) })),
  };
}
