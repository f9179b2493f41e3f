/** What a reader may do, as far as the server's rule of roles says it before anything is sent. */

import type { Me } from "./shapes";
import { t } from "./texts";

/**
 * Whether the reader may make queries and regions: everybody who is more
 * than a viewer in some team.
 */
export function mayMake(reader: Pick<Me, "superuser" | "teams">): boolean {
  return reader.superuser || reader.teams.some(({ role }) => role !== "viewer");
}

/** Whether the reader may make feeds, channels, rules and shifts. */
export function mayOperate(reader: Pick<Me, "superuser" | "teams">): boolean {
  return reader.superuser || reader.teams.some(({ role }) => role === "operator" || role === "admin");
}

/** What a panel says of channels, rules or shifts, and why it has no button to make one. */
export function orWhyNot(reader: Pick<Me, "superuser" | "teams">, text: string): string {
  return mayOperate(reader) ? text : `${text} ${t("To make one, you need the role operator in a team.")}`;
}
