/** Asks before the changes of others are replaced. */

import { get } from "../lib/api";
import { record } from "../lib/parse";
import { moment } from "../lib/shapes";
import { confirmDanger } from "./dialog_view";
import { t } from "../lib/texts";

const changed = record({ updated_at: moment });

interface Shown {
  id: string;
  updated_at: number;
}

/**
 * The time of the change that saving may replace, in the API's form: the one that the form was
 * opened with, or a later one that the reader agrees to replace. Null: do not save. `what` is the
 * text about the change, `effect` the text about the effect of saving.
 */
export async function replaceable(list: "queries" | "regions", shown: Shown, what: string, effect: string): Promise<string | null> {
  const { updated_at: newest } = await get(`${list}/${shown.id}/`, changed);
  if (newest > shown.updated_at && !(await confirmDanger(what, effect, t("Save mine")))) return null;
  return new Date(newest).toISOString();
}
