/**
 * The questions for a new query: one for each family, and variants of a family that its empty
 * editor does not show. Pure.
 */

import { familyOf } from "../lib/families";
import { familyName } from "../lib/words";
import type { Feed } from "../lib/shapes";
import { t } from "../lib/texts";

export interface Question {
  /** Its name in the address, and the key of its draft. */
  readonly key: string;
  readonly family: string;
  /** The title of its card, its icon, and a sentence that describes its answers. */
  readonly title: string;
  readonly icon: string;
  readonly text: string;
  /** Why it does not suit the feed's rows. */
  readonly note?: string;
  /** The initial document, without family and version. */
  readonly begin: (feed: Feed) => Record<string, unknown>;
}

/** A family with its empty editor. */
export function plainQuestion(family: string): Question {
  const card = familyOf(family)?.card ?? { icon: "waypoints", text: t("Written as a specification.") };
  return { key: family, family, title: familyName(family), ...card, begin: () => ({}) };
}

/** What questions about the same place and the same events share. */
export function draftOf({ key, family }: Question): string {
  return familyOf(family)?.draft?.key ?? key;
}

/** Each family, followed by its variants. */
export function questionsOf(families: readonly string[]): Question[] {
  return families.flatMap((family) => [
    plainQuestion(family),
    ...(familyOf(family)?.variants ?? []).map((variant) => ({ family, ...variant })),
  ]);
}
