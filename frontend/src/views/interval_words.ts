/** Texts of an interval. */

import { t } from "../lib/texts";
import type { Interval } from "../data/interval";
import { familyOf } from "../lib/families";
import type { Feed } from "../lib/shapes";
import { formatClock, type TimeUnit, type Zone } from "../lib/time";
import { answerTitle } from "../lib/words";

export function headline(interval: Interval): string {
  return answerTitle(interval.entities, interval.kind);
}

/** The value of an answer and its label; null for families without one. */
export function measure(
  value: unknown,
  specification: Record<string, unknown> | undefined,
  { crs }: Pick<Feed, "crs">,
): [name: string, text: string] | null {
  const number = value === null || value === "" ? NaN : Number(value);
  if (specification === undefined || !Number.isFinite(number)) return null;
  return familyOf(specification["family"])?.measure?.(number, specification, crs === "geographic") ?? null;
}

/** How later events changed it; null if they did not. */
export function revisionText(interval: Interval, unit: TimeUnit, zone: Zone): string | null {
  if (interval.isRetracted) return t("Withdrawn: later events contradict it");
  if (interval.isCut) return t("Still open when its query was edited, switched off or removed");
  if (interval.revisedFrom !== null)
    return t("Revised: it was to end at {revisedFrom}", { revisedFrom: formatClock(interval.revisedFrom, unit, zone) });
  return null;
}
