/** Names that are free in the feed. */

import { get, getAll, query as address } from "../../lib/api";
import { record, string } from "../../lib/parse";
import { queryRow, type QueryRow } from "../../lib/shapes";
import { copyName, copyStem, freeName } from "../../data/query_list";

/** A query, and a free name for its copy. */
export type Original = QueryRow & { copyName: string };

/** The query `id`, from which a new one starts. */
export async function originalOf(id: string): Promise<Original> {
  const row = await get(`queries/${id}/`, queryRow);
  return { ...row, copyName: copyName(row.name, await namesLike(row.feed, copyStem(row.name))) };
}

/** The default name of a query. */
export async function suggestedName(feed: string, title: string): Promise<string> {
  return freeName(title, await namesLike(feed, title));
}

async function namesLike(feed: string, search: string): Promise<string[]> {
  const alike = await getAll(address("queries/", { feed, search, page_size: 1000 }), record({ name: string }), 1000);
  return alike.map(({ name }) => name);
}
