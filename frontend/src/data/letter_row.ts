/** The fields of a refused row, as a reader corrects them. Pure. */

import { columnsOf } from "../lib/columns";
import { isObject } from "../lib/parse";
import type { DeadLetter, Feed } from "../lib/shapes";

type Plain = string | number | boolean | null;
export type PlainRow = Readonly<Record<string, Plain>>;

/** Whether each value of the row fits in a field: no lists, no objects. */
export function isPlain(row: unknown): row is PlainRow {
  return isObject(row) && Object.values(row).every((value) => value === null || typeof value !== "object");
}

/** The row's fields, and where it has the feed's names also those that it lacks. */
export function fieldsOf(letter: DeadLetter, row: PlainRow, feed: Feed): string[] {
  return [...new Set([...Object.keys(typesFor(letter, feed)), ...Object.keys(row)])];
}

export function textOf(value: Plain | undefined): string {
  return value === null || value === undefined ? "" : String(value);
}

/** The row with the texts of its fields; one that was emptied is left out. */
export function withTexts(letter: DeadLetter, row: PlainRow, texts: ReadonlyMap<string, string>, feed: Feed): PlainRow {
  const types = typesFor(letter, feed);
  const values = [...texts].map(([name, text]) => [name, corrected(row[name], text, types[name] ?? typeof row[name])] as const);
  return Object.fromEntries(values.filter((one): one is [string, Plain] => one[1] !== undefined));
}

/** By name; none of a row that still has the names and the texts of its file. */
function typesFor({ source }: DeadLetter, feed: Feed): Record<string, string> {
  return /^(upload|connector):/.test(source) ? {} : { entity: "string", t: "int", ...columnsOf(feed) };
}

function corrected(before: Plain | undefined, text: string, type: string): Plain | undefined {
  if (text === "") return before === "" || before === null ? before : undefined;
  if (typeof before === "number" && type !== "string" && textOf(before) === text) return before;
  return valueOf(text, type);
}

/** A text that is no number stays a text: the server's answer names the fault. */
function valueOf(text: string, type: string): Plain {
  const plain = text.trim();
  if (type === "bool" || type === "boolean") return plain === "true" ? true : plain === "false" ? false : text;
  const isNumber = ["int", "float", "number"].includes(type) && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain);
  return isNumber && Math.abs(Number(plain)) <= Number.MAX_SAFE_INTEGER ? Number(plain) : text;
}
