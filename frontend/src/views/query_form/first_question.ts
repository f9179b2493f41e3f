/** The question with which the form of a new query begins. */

import { positions } from "../../lib/answers";
import { get } from "../../lib/api";
import { familyOf } from "../../lib/families";
import { list, record, string } from "../../lib/parse";
import type { Question } from "../../data/question_data";

const names = record({ entities: list(string) });

/** That of the address, else one that suits the feed's rows. */
export async function firstQuestion(offered: readonly Question[], wanted: string | null, feed: string): Promise<Question> {
  const asked = offered.find(({ key }) => key === wanted);
  if (asked !== undefined) return asked;
  const isPlaceless = await lacksPlaces(feed).catch(() => false);
  const suited = isPlaceless ? offered.find(({ family }) => familyOf(family)?.isAboutPlaces !== true) : undefined;
  return suited ?? offered[0]!;
}

/** Whether rows have come, and none has a place. */
async function lacksPlaces(feed: string): Promise<boolean> {
  if ((await get(`feeds/${feed}/positions`, positions)).entities.length > 0) return false;
  return (await get(`feeds/${feed}/entities`, names)).entities.length > 0;
}
