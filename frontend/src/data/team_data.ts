/** Teams, members, invitations and users in the form of the API. */

import { boolean, id, list, nullable, oneOf, otherwise, record, string } from "../lib/parse";
import { moment } from "../lib/shapes";
import { t, tn } from "../lib/texts";

export const ROLES = ["viewer", "analyst", "operator", "admin"] as const;
export type Role = (typeof ROLES)[number];
const role = oneOf(...ROLES);

/** The permissions of each role. */
export const ROLE_WORDS: Record<Role, string> = {
  viewer: t("Viewer: sees everything of the team"),
  analyst: t("Analyst: also queries, regions and alerts"),
  operator: t("Operator: also feeds, jobs and channels"),
  admin: t("Admin: also the team's members"),
};

export const ROLE_NAMES: Record<Role, string> = { viewer: t("Viewer"), analyst: t("Analyst"), operator: t("Operator"), admin: t("Admin") };

/** The name of a role that the server sent, for readers. */
export function roleName(sent: string): string {
  return (ROLE_NAMES as Partial<Record<string, string>>)[sent] ?? sent;
}

export const member = record({ id, name: string, email: otherwise(string, ""), active: boolean, role });
export type Member = ReturnType<typeof member>;

export const invitation = record({ id, email: string, role, invited_by: record({ name: string }), expires_at: moment });
export type Invitation = ReturnType<typeof invitation>;

export const team = record({ id, name: string, manageable: boolean, members: list(member), invitations: list(invitation) });
export type Team = ReturnType<typeof team>;

export const person = record({
  id,
  name: string,
  email: otherwise(string, ""),
  active: boolean,
  administrator: boolean,
  last_login: nullable(moment),
  teams: list(string),
});
export type Person = ReturnType<typeof person>;

const KINDS: Record<string, (count: number) => string> = {
  feed: (count) => tn("1 feed", "{count} feeds", count),
  region: (count) => tn("1 region", "{count} regions", count),
  query: (count) => tn("1 query", "{count} queries", count),
  channel: (count) => tn("1 channel", "{count} channels", count),
};

/** The transferred objects as text: "2 queries, 1 feed". */
export function countsText(counts: Record<string, number>): string {
  const parts = Object.entries(counts).map(([kind, count]) => KINDS[kind]?.(count) ?? `${count} ${kind}`);
  return parts.length === 0 ? t("nothing") : parts.join(", ");
}
