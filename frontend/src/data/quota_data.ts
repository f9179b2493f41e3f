/** Quotas of a user or a team, and their use. */

import { integer, list, nullable, record, string } from "../lib/parse";

export const quotas = list(record({ name: string, what: string, limit: integer, default: integer, used: nullable(integer) }));
export type Quota = ReturnType<typeof quotas>[number];

/**
 * The changed quotas by name: null for an empty field, which restores the server's default.
 * An invalid number is sent unchanged: the server refuses it.
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

/** The share in use, between 0 and 1; null if nothing is counted or nothing is allowed. */
export function fullness({ used, limit }: Quota): number | null {
  return used === null || limit === 0 ? null : Math.min(1, used / limit);
}
