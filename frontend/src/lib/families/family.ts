/**
 * The pages' description of a family. One module per family; `index.ts` registers them,
 * `views/editors/registry.ts` their editors.
 */

import type { Feed } from "../shapes";
import { distanceWords } from "../units";
import { t } from "../texts";

/** The label of a kind of answer. */
export interface Kind {
  readonly name: string;
  /**
   * The occurrence of such an answer, in the present tense: "something enters". Null:
   * "something gives ..." and the name.
   */
  readonly clause: string | null;
  /**
   * The answer is between its first two events, with its value as their distance; otherwise it
   * is at the query's regions.
   */
  readonly isBetweenTwo?: true;
  /** The kind of the answers that end what these began: the two are one interval. */
  readonly endedBy?: string;
  /** Its bar on the timeline is paler than others: it is about an absence. */
  readonly isPale?: true;
  /** Its bar has a mark at its end: a time limit that was reached. */
  readonly isLimit?: true;
}

export type MeasureOf = (number: number, specification: Record<string, unknown>, isMetres: boolean) => [name: string, text: string];

/** A separate question that a family answers, which its empty editor does not show. */
export interface Variant {
  /** Its name in the address, and the key of its draft. */
  readonly key: string;
  readonly title: string;
  readonly icon: string;
  readonly text: string;
  /** The initial document, without family and version. */
  readonly begin: (feed: Feed) => Record<string, unknown>;
}

export interface Family {
  readonly name: string;
  /** Its card among the questions: a sentence about the answers of a query. */
  readonly card: { readonly icon: string; readonly text: string };
  readonly variants?: readonly Variant[];
  /** Its empty editor asks about places: of rows without places it has little to say. */
  readonly isAboutPlaces?: true;
  /** Its queries watch one region, under `region`: a file of regions can become as many of them. */
  readonly hasRegion?: true;
  /**
   * Families that ask about the same place and the same events share a draft; `own`: the keys that
   * only some of them write into it.
   */
  readonly draft?: { readonly key: string; readonly own: readonly string[] };
  /** The kinds of answers; empty if its documents name them. */
  readonly kinds: Readonly<Record<string, Kind>>;
  /**
   * Answers as events of other queries: the meaning of their columns. Null: they cannot be events.
   */
  readonly columns: string | null;
  /** Whether its queries can take answers of others as events. */
  readonly isDeriving: boolean;
  /** The label and format of an answer's value; null without a value. */
  readonly measure: MeasureOf | null;
  /** The label of an answer's value if the value is an instant of the feed. */
  readonly moment: string | null;
  /** Whether its answers are fluents: then the timeline has a lane for each value and grounding. */
  readonly isFluents: boolean;
  /**
   * Its queries take answers that become known only after their times, too: they revise their own.
   */
  readonly isRevising?: true;
  /** Whether the answers of a query become known only after their times. */
  readonly isKnownLate?: (specification: Record<string, unknown>) => boolean;
  /**
   * Shown on the live page in addition to its answers: an entity's progress in its steps, the
   * number over time, the rules behind an answer.
   */
  readonly detail?: "progress" | "count" | "rules";
}

export function something(does: string): string {
  return t("something {does}", { does });
}

/** An answer's value that is a distance. */
export function distance(name: string): MeasureOf {
  return (number, _, isMetres) => [name, distanceWords(number, isMetres)];
}

export const ABOUT_ONE = t("entity is the one it is about");
/** The maximum number of entities of an answer. */
const MOST_ENTITIES = 32;
export const ABOUT_SEVERAL = t("entity, entity2, … up to entity{MOSTENTITIES} are the entities of the answer", {
  MOSTENTITIES: MOST_ENTITIES,
});
