/** Entries of the audit log and their texts. */

import { moment } from "../lib/shapes";
import { id, isObject, nullable, number, otherwise, record, string, type Parser } from "../lib/parse";
import { t } from "../lib/texts";

const anyRecord: Parser<Record<string, unknown>> = (value) => (isObject(value) ? value : {});

export const entry = record({
  id,
  at: moment,
  actor_name: otherwise(string, ""),
  means: otherwise(string, ""),
  token: otherwise(string, ""),
  address: nullable(string),
  action: string,
  outcome: string,
  status: nullable(number),
  object_type: otherwise(string, ""),
  object_id: otherwise(string, ""),
  object_name: otherwise(string, ""),
  request: otherwise(string, ""),
  detail: otherwise(anyRecord, {}),
});
export type Entry = ReturnType<typeof entry>;

export const OUTCOMES: Readonly<Record<string, string>> = { done: t("Done"), refused: t("Refused"), failed: t("Failed") };

export function outcomeText(row: Entry): string {
  return OUTCOMES[row.outcome] ?? row.outcome;
}

/** The user, and how they were authenticated. */
export function actorText(row: Entry): string {
  if (row.means === "nobody") return t("not logged in");
  if (row.means === "token") return `${row.actor_name}, ${t("token {token}…", { token: row.token })}`;
  return row.means === "command" ? `${row.actor_name}, ${t("command on the server")}` : row.actor_name;
}

/** The object of the change. */
export function objectText(row: Entry): string {
  const name = row.object_name === "" ? "" : ` ${t("“{name}”", { name: row.object_name })}`;
  return `${row.object_type}${row.object_id === "" ? "" : ` ${row.object_id}`}${name}`.trim();
}

/** Further details, as `name: value`. */
export function detailText(row: Entry): string {
  return Object.entries(row.detail)
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" · ");
}
