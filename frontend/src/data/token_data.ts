/** The permissions of a token. */

import { record, string } from "../lib/parse";
import { t } from "../lib/texts";

export const SCOPES = { ingest: t("Send events"), read: t("Read everything you can see"), write: t("Change what you can change") } as const;

/** A scope that the server sent, for readers. */
export function scopeName(sent: string): string {
  return (SCOPES as Partial<Record<string, string>>)[sent] ?? sent;
}

/** A new token: it is shown only once. */
export const madeToken = record({ token: string });
