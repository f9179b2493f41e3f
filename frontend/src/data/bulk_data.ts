/** The result for a file of regions: a row for each feature, faults first. Pure. */

import { faultList } from "../lib/api";
import { boolean, id, integer, list, nullable, otherwise, record, string } from "../lib/parse";
import { asGeometry } from "../lib/regions";
import { t } from "../lib/texts";

/** The placeholder in a template for each region. */
export const FEATURE = "$feature";

export const bulkAnswer = record({
  queries: list(record({ row: integer, name: string, id: nullable(id), geometry: (value: unknown) => asGeometry(value) })),
  existing: list(record({ row: integer, name: string, id, same: boolean })),
  refused: list(record({ row: integer, name: string, faults: faultList })),
  registered: otherwise(integer, 0),
  stored: otherwise(boolean, false),
  sentence: nullable(string),
});
export type BulkAnswer = ReturnType<typeof bulkAnswer>;

export interface BulkRow {
  row: number;
  name: string;
  state: "refused" | "other" | "same" | "new";
  text: string;
}

const ORDER = { refused: 0, other: 1, new: 2, same: 3 } as const;

/** One row per feature: faults first, then changed, new and unchanged queries. */
export function bulkRows({ queries, existing, refused }: BulkAnswer): BulkRow[] {
  const rows: BulkRow[] = [
    ...refused.map(({ row, name, faults }) => ({
      row,
      name,
      state: "refused" as const,
      text: faults.map((fault) => fault.message).join(" "),
    })),
    ...existing.map(({ row, name, same }) =>
      same
        ? { row, name, state: "same" as const, text: t("Is registered already.") }
        : { row, name, state: "other" as const, text: t("A query of this name has another specification; it is not changed.") },
    ),
    ...queries.map(({ row, name }) => ({ row, name, state: "new" as const, text: "" })),
  ];
  return rows.sort((one, other) => ORDER[one.state] - ORDER[other.state] || one.row - other.row);
}

/** "998 new, 1 there already, 1 refused". */
export function bulkSummary({ queries, existing, refused }: BulkAnswer): string {
  const parts = [
    t("{count} new", { count: queries.length }),
    existing.length > 0 ? t("{count} there already", { count: existing.length }) : "",
    refused.length > 0 ? t("{count} refused", { count: refused.length }) : "",
  ];
  return parts.filter((part) => part !== "").join(", ");
}
