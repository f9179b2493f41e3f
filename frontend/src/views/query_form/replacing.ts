/** Asks before the changes of others are replaced. */

import { get } from "../../lib/api";
import { queryRow, type QueryRow } from "../../lib/shapes";
import { t } from "../../lib/texts";
import { confirmDanger } from "../dialog_view";

/** Whether the form, which was opened with `stored`, may be saved: nobody has changed the query since, or the reader wants to. */
export async function mayReplace(stored: QueryRow): Promise<boolean> {
  const newest = await get(`queries/${stored.id}/`, queryRow);
  if (newest.updated_at <= stored.updated_at) return true;
  return confirmDanger(
    t("This query has been changed meanwhile"),
    t("Saving replaces the other change by this form. To see it first, open the query in another tab; earlier versions are kept."),
    t("Save mine"),
  );
}
