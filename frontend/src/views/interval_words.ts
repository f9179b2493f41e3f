/** An interval in the words of the screens. */

import { t } from "../lib/texts";
import type { Interval } from "../data/interval";
import { familyOf } from "../lib/families";
import type { Feed } from "../lib/shapes";
import { formatClock, type TimeUnit, type Zone } from "../lib/time";
import { answerTitle } from "../lib/words";

export function headline(interval: Interval): string {
  return answerTitle(interval.entities, interval.kind);
}

/** The number that an answer has, and what it is; null for those of families without one. */
export function measure(
  value: unknown,
  specification: Record<string, unknown> | undefined,
  { crs }: Pick<Feed, "crs">,
): [name: string, text: string] | null {
  const number = value === null || value === "" ? NaN : Number(value);
  if (specification === undefined || !Number.isFinite(number)) return null;
  return familyOf(specification["family"])?.measure?.(number, specification, crs === "geographic") ?? null;
}

/** What later events did to it; null when they left it alone. */
export function revisionText(interval: Interval, unit: TimeUnit, zone: Zone): string | null {
  if (interval.isRetracted) return t("Withdrawn: later events contradict it");
  if (interval.isCut) return t("Still open when its query was edited, switched off or removed");
  if (interval.revisedFrom !== null)
    return t("Revised: it was to end at {revisedFrom}", { revisedFrom: formatClock(interval.revisedFrom, unit, zone) });
  return null;
}
