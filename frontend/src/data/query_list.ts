/** The list of queries: which are shown, and in which folders. Pure. */

import type { QueryRow } from "../lib/shapes";

type Filed = Pick<QueryRow, "folder" | "tags">;

export interface Wanted {
  /** Part of a name or sentence, ignoring case. */
  text: string;
  feed: string;
  tag: string;
  /** The id of the owner whose queries are shown; null: all. */
  owner: string | null;
}

export function matching(rows: readonly QueryRow[], { text, feed, tag, owner }: Wanted): QueryRow[] {
  const wanted = text.trim().toLowerCase();
  const isShown = (row: QueryRow): boolean =>
    (feed === "" || row.feed === feed) &&
    (tag === "" || row.tags.includes(tag)) &&
    (owner === null || row.owner?.id === owner) &&
    `${row.name} ${row.sentence} ${row.folder} ${row.tags.join(" ")}`.toLowerCase().includes(wanted);
  return rows.filter(isShown);
}

/** Folders by name, rows without a folder last; the rows of each keep their order. */
export function byFolder<Row extends Filed>(rows: readonly Row[]): [folder: string, rows: Row[]][] {
  const found = new Map<string, Row[]>();
  for (const row of rows) found.set(row.folder, [...(found.get(row.folder) ?? []), row]);
  return [...found].sort(([a], [b]) => Number(a === "") - Number(b === "") || a.localeCompare(b));
}

export function foldersOf(rows: readonly Filed[]): string[] {
  return [...new Set(rows.map((row) => row.folder))].filter((name) => name !== "").sort((a, b) => a.localeCompare(b));
}

export function tagsOf(rows: readonly Filed[]): string[] {
  return [...new Set(rows.flatMap((row) => row.tags))].sort((a, b) => a.localeCompare(b));
}

/** Comma-separated tags without duplicates. */
export function tagsOfText(text: string): string[] {
  return [...new Set(text.split(",").map((tag) => tag.trim()))].filter((tag) => tag !== "");
}

/** The name without the suffix of a copy, from which names of further copies are made. */
export function copyStem(name: string): string {
  return name.replace(/ \(copy(?: \d+)?\)$/, "");
}

/** `name`, or the first free name made of it and a number. */
export function freeName(name: string, taken: readonly string[]): string {
  for (let i = 1; ; i++) {
    const tried = i === 1 ? name : `${name.slice(0, 94)} ${i}`;
    if (!taken.includes(tried)) return tried;
  }
}

/** A free name for a copy. */
export function copyName(name: string, taken: readonly string[]): string {
  const stem = copyStem(name);
  for (let i = 1; ; i++) {
    const tried = `${stem.slice(0, 88)} (copy${i === 1 ? "" : ` ${i}`})`;
    if (!taken.includes(tried)) return tried;
  }
}
