/** The columns of a feed as queries use them. */

import type { Feed } from "./shapes";

/** Columns that a range or a condition may use, with their types. */
export function columnsOf(feed: Feed): Record<string, string> {
  return { x: "float", y: "float", ...feed.columns };
}

/** The columns that a range may use. */
export function numericColumns(feed: Feed): string[] {
  return Object.entries(columnsOf(feed))
    .filter(([, type]) => type === "float" || type === "int")
    .map(([name]) => name);
}
