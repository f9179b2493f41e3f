/**
 * Which steps of a motion pattern entities have done, as the server reports it, and the
 * witnesses of a match. Pure.
 */

import { boolean, integer, list, nullable, number, otherwise, record, string } from "../lib/parse";
import { formatNumber } from "../lib/time";
import type { MotionStep } from "./motion_data";
import type { Detection } from "../lib/shapes";
import { t, tn } from "../lib/texts";

const witness = record({ t: number, x: number, y: number, distance: nullable(number) });
const entityProgress = record({
  entity: string,
  done: integer,
  of: integer,
  matches: boolean,
  score: nullable(number),
  steps: list(nullable(witness)),
});
export const progressAnswer = record({ at: nullable(number), rows: otherwise(integer, 0), total: integer, entities: list(entityProgress) });

export type Witness = ReturnType<typeof witness>;
export type EntityProgress = ReturnType<typeof entityProgress>;

/**
 * "All 5 steps", "Step 3 of 5"; "Not among them" for an entity that did all steps but whose score
 * does not count. A pattern without order has no next step, only some that are done.
 */
export function stateOf({ done, of, steps, matches }: EntityProgress): string {
  if (done === of && !matches) return t("Not among them");
  if (done === of) return of === 1 ? t("The step is done") : t("All {of} steps", { of });
  const isPrefix = steps.slice(0, done).every((step) => step !== null);
  return isPrefix ? t("Step {done} of {of}", { done, of }) : t("{done} of {of} steps", { done, of });
}

/**
 * "2 match, 40 more have done some steps."; a pattern of distances only
 * (`isMeasured`) has no partial matches.
 */
export function progressWords(total: number, matching: number, isMeasured: boolean): string {
  if (isMeasured)
    return tn("1 of {total} that were measured matches.", "{count} of {total} that were measured match.", matching, {
      total: formatNumber(total),
    });
  const matches = matching === 0 ? t("nobody matches") : tn("1 matches", "{count} match", matching);
  return t("{matches}, {total} more have done some steps.", { matches, total: formatNumber(total - matching) });
}

/** The indices of the steps not done; of an ordered pattern the first is the next one. */
export function missingSteps({ steps }: EntityProgress): number[] {
  return steps.flatMap((step, i) => (step === null ? [i] : []));
}

/**
 * Begun, but not yet an answer. Being outside, or at some distance, does not count as begun,
 * because it holds for most entities.
 */
export function isHalfDone({ done, of, steps }: EntityProgress, pattern: readonly MotionStep[]): boolean {
  return done < of && steps.some((step, i) => step !== null && pattern[i]?.sense === "inside");
}

/** A match of the preview in the same form: its evidence items are named P1, P2, ... by step. */
export function ofDetection({ entities, evidence, value }: Detection, of: number): EntityProgress {
  const steps: (Witness | null)[] = Array.from({ length: of }, () => null);
  for (const { variable, t, x, y } of evidence) {
    const place = Number(/^P(\d+)$/.exec(variable)?.[1] ?? NaN) - 1;
    if (place >= 0 && place < of && x !== null && y !== null) steps[place] = { t, x, y, distance: null };
  }
  const done = steps.filter((step) => step !== null).length;
  return { entity: entities[0] ?? "", done, of, matches: true, score: typeof value === "number" ? value : null, steps };
}
