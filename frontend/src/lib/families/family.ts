/** The pages' knowledge of a family. One module a family; `index.ts` registers them, `views/editors/registry.ts` their editors. */

import { distanceWords } from "../units";
import { t } from "../texts";

/** An answer's kind in the words of the screens. */
export interface Kind {
  readonly name: string;
  /** When such an answer comes, in the present: "something enters". Null: "something gives ..." and the name. */
  readonly clause: string | null;
}

export type MeasureOf = (number: number, specification: Record<string, unknown>, isMetres: boolean) => [name: string, text: string];

export interface Family {
  readonly name: string;
  /** Its card among the questions: what a query of it finds, in a sentence. */
  readonly card: { readonly icon: string; readonly text: string };
  /** The kinds of answers it gives; none where its documents name them. */
  readonly kinds: Readonly<Record<string, Kind>>;
  /** Its answers as events of other queries: what their columns hold. Null: they cannot be events. */
  readonly columns: string | null;
  /** Whether its queries take answers of others as events. */
  readonly isDeriving: boolean;
  /** What the number of an answer is, and how it is written; null without one. */
  readonly measure: MeasureOf | null;
  /** What the number of an answer is, where it is a moment of the feed. */
  readonly moment: string | null;
  /** Whether its answers are fluents: a lane of the timeline for each value and grounding. */
  readonly isFluents: boolean;
}

export function something(does: string): string {
  return t("something {does}", { does });
}

/** An answer's number that is a distance. */
export function distance(name: string): MeasureOf {
  return (number, _, isMetres) => [name, distanceWords(number, isMetres)];
}

export const ABOUT_ONE = t("entity is the one it is about");
/** The most entities that an answer may name. */
const MOST_ENTITIES = 32;
export const ABOUT_SEVERAL = t("entity, entity2, … up to entity{MOSTENTITIES} are those it is about", { MOSTENTITIES: MOST_ENTITIES });
