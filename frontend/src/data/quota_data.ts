/** How much a user or a team may have, and has. */

import { integer, list, nullable, record, string } from "../lib/parse";

export const quotas = list(record({ name: string, what: string, limit: integer, default: integer, used: nullable(integer) }));
export type Quota = ReturnType<typeof quotas>[number];

/**
 * What was entered, by name, where it says something new: null for an empty field, which brings the server's quota back.
 * What is no number goes as it is: the server refuses it.
 */
export function changedLimits(rows: readonly Quota[], entered: Readonly<Record<string, string>>): Record<string, number | string | null> {
  const changed: Record<string, number | string | null> = {};
  for (const { name, limit, default: standard } of rows) {
    const text = (entered[name] ?? "").trim();
    const wanted = text === "" ? null : /^\d+$/.test(text) ? Number(text) : text;
    if ((wanted ?? standard) !== limit) changed[name] = wanted;
  }
  return changed;
}

/** How full it is, between 0 and 1; null where nothing is counted or nothing is allowed. */
export function fullness({ used, limit }: Quota): number | null {
  return used === null || limit === 0 ? null : Math.min(1, used / limit);
}
