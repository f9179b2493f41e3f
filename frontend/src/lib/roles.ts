/** A reader's permissions by the server's rule of roles, known before a request is sent. */

import type { Me } from "./shapes";
import { t } from "./texts";

/**
 * Whether the reader may create queries and regions: everybody with a higher role than viewer in
 * some team.
 */
export function mayMake(reader: Pick<Me, "superuser" | "teams">): boolean {
  return reader.superuser || reader.teams.some(({ role }) => role !== "viewer");
}

/** Whether the reader may make feeds, channels, rules and shifts. */
export function mayOperate(reader: Pick<Me, "superuser" | "teams">): boolean {
  return reader.superuser || reader.teams.some(({ role }) => role === "operator" || role === "admin");
}

/** The text of a panel of channels, rules or shifts, and why it has no button to create one. */
export function orWhyNot(reader: Pick<Me, "superuser" | "teams">, text: string): string {
  return mayOperate(reader) ? text : `${text} ${t("To make one, you need the role operator in a team.")}`;
}
