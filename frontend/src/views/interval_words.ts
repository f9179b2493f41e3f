/** An interval in the words of the screens. */

import type { Interval } from "../data/interval";
import { formatClock, type TimeUnit, type Zone } from "../lib/time";
import { answerTitle } from "../lib/words";

export function headline(interval: Interval): string {
  return answerTitle(interval.entities, interval.kind);
}

/** What later events did to it; null when they left it alone. */
export function revisionText(interval: Interval, unit: TimeUnit, zone: Zone): string | null {
  if (interval.isWithdrawn) return "Withdrawn: later events contradict it";
  if (interval.isCut) return "Still open when its query was edited, switched off or removed";
  if (interval.revisedFrom !== null) return `Revised: it was to end at ${formatClock(interval.revisedFrom, unit, zone)}`;
  return null;
}
