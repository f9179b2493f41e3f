/** The questions for a new query, those first that suit the feed's rows. */

import { positions } from "../../lib/answers";
import { get } from "../../lib/api";
import { familyOf } from "../../lib/families";
import { list, record, string } from "../../lib/parse";
import type { Question } from "../../data/question_data";
import { t } from "../../lib/texts";

const names = record({ entities: list(string) });

/** Of rows without places, questions about places come last, with a note. */
export async function suitedQuestions(offered: readonly Question[], feed: string): Promise<readonly Question[]> {
  const isPlaceless = await lacksPlaces(feed).catch(() => false);
  if (!isPlaceless) return offered;
  const isAboutPlaces = ({ family }: Question): boolean => familyOf(family)?.isAboutPlaces === true;
  const note = t("Begins with places, which this feed’s rows do not have.");
  return [...offered.filter((one) => !isAboutPlaces(one)), ...offered.filter(isAboutPlaces).map((question) => ({ ...question, note }))];
}

/** Whether rows have come, and none has a place. */
async function lacksPlaces(feed: string): Promise<boolean> {
  if ((await get(`feeds/${feed}/positions`, positions)).entities.length > 0) return false;
  return (await get(`feeds/${feed}/entities`, names)).entities.length > 0;
}
