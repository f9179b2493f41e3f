/** Asks before other queries are stopped because they derive from a removed one. */

import { ApiError } from "../lib/api";
import { confirmDanger } from "./dialog_view";
import { t } from "../lib/texts";

const POINTER = "/stop_dependents";

/**
 * Sends; if the server names queries that would stop, asks, and sends again with the consent.
 * Null if the reader cancels.
 */
export async function unlessOthersStop<T>(send: (stopDependents: boolean) => Promise<T>, action: string): Promise<T | null> {
  try {
    return await send(false);
  } catch (error) {
    const fault = error instanceof ApiError ? error.faults.find(({ pointer }) => pointer === POINTER) : undefined;
    if (fault === undefined) throw error;
    const message = fault.message.replace(/: [^:]*stop_dependents.*$/, ".");
    return (await confirmDanger(t("Other queries derive from it"), t("{message} Their answers are kept.", { message }), action))
      ? await send(true)
      : null;
  }
}
