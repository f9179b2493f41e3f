/** The most frequent of a column's newest values. */

import { get } from "../../lib/api";
import { knownValues } from "../../data/known_values";
import type { Feed } from "../../lib/shapes";

const asked = new Map<string, Promise<string[]>>();

/** Requested once while the page is open; none if the request fails: they are optional. */
export function valuesOf(feed: Feed, column: string): Promise<string[]> {
  const path = `feeds/${feed.name}/histogram?${new URLSearchParams({ column }).toString()}`;
  const known = asked.get(path) ?? get(path, knownValues).then(({ values }) => values);
  asked.set(path, known);
  return known.catch(() => {
    asked.delete(path);
    return [];
  });
}
