/** Asks before other queries are stopped because they derive from one that goes. */

import { ApiError } from "../lib/api";
import { confirmDanger } from "./dialog_view";
import { t } from "../lib/texts";

const POINTER = "/stop_dependents";

/**
 * Sends; when the server names queries that would stop, asks, and sends again with the answer. Null when the reader
 * thinks better of it.
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
