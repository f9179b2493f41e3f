/** Imports a file of regions into a feed, after asking what to do where there is a choice. */

import { ApiError, post, reason } from "../lib/api";
import { importedRegions } from "../lib/answers";
import type { Geometry } from "../lib/regions";
import type { Feed } from "../lib/shapes";
import { t, tn } from "../lib/texts";
import { chooseImport, importOthers, type ImportChoice, type UsedBy } from "./import_choice_view";
import { fail, toast } from "./shell_view";

/** The most faults that an answer lists. */
const MOST_FAULTS = 500;

/** The regions that were stored or replaced; null: nothing was. */
export async function importFile(file: File, feed: Feed, usedBy: UsedBy): Promise<readonly { geometry: Geometry }[] | null> {
  const form = new FormData();
  form.append("file", file);
  form.append("feed", feed.name);
  try {
    const choice = await askedAbout(form, usedBy);
    if (choice === null) return null;
    if (choice === "new") form.append("only_new", "true");
    if (choice === "replace") form.append("replace", "true");
    const { created, replaced } = await post("regions/import", form, importedRegions);
    if (created.length > 0) toast(tn("1 region imported.", "{count} regions imported.", created.length), "good");
    if (replaced.length > 0) toast(tn("1 region replaced.", "{count} regions replaced.", replaced.length), "good");
    return [...created, ...replaced];
  } catch (error) {
    const count = error instanceof ApiError ? error.faults.length : 0;
    const shown = count < MOST_FAULTS ? count : `${MOST_FAULTS}+`;
    if (count > 1)
      toast(t("Nothing was stored: the file has {count} faults. {reason}", { count: shown, reason: reason(error) }), "critical");
    else fail(error);
    return null;
  }
}

/**
 * What to import of a file; if some of it is refused, stored already, or gets another name, the
 * reader chooses. Null: nothing. A file that is refused as a whole is sent, so that the server
 * reports the reason.
 */
async function askedAbout(form: FormData, usedBy: UsedBy): Promise<ImportChoice | null> {
  form.append("dry_run", "true");
  const { created, refused } = await post("regions/import", form, importedRegions);
  form.delete("dry_run");
  if (created.length === 0) return "all";
  if (refused.length > 0) {
    if (!(await importOthers(refused, created.length))) return null;
    form.append("partial", "true");
  }
  const isPlain = created.every((row) => row.same_as === null && row.file_name === null);
  return isPlain ? "all" : await chooseImport(created, usedBy);
}
