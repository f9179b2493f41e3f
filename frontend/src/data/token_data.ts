/** What a token may do. */

import { record, string } from "../lib/parse";
import { t } from "../lib/texts";

export const SCOPES = { ingest: t("Send events"), read: t("Read everything you can see"), write: t("Change what you can change") } as const;

/** A scope that the server sent, for readers. */
export function scopeName(sent: string): string {
  return (SCOPES as Partial<Record<string, string>>)[sent] ?? sent;
}

/** A token that was just made: it is shown this once. */
export const madeToken = record({ token: string });
