/** A step of a motion pattern in words. Pure. */

import { describe, isReference } from "../lib/regions";
import { formatSpan, parseDuration, type TimeUnit } from "../lib/time";
import { placeBefore, type MotionStep, type Place, type Span } from "./motion_data";
import type { Feed } from "../lib/shapes";
import { t } from "../lib/texts";

function placeWords(place: Place, feed: Feed): string {
  if (place === null) return t("a place not chosen yet");
  if (Array.isArray(place)) return t("the point {value}", { value: place.map((one) => Number(one.toFixed(5))).join(", ") });
  if (isReference(place)) return place.region;
  return t("an area drawn ({shape})", { shape: describe(place, feed.crs === "geographic") });
}

function spanWords(span: Span, unit: TimeUnit): string {
  const length = span === null ? null : parseDuration(span);
  return length === null ? (span === null ? "…" : String(span)) : length === 0 ? t("now") : formatSpan(length, unit);
}

/** "between 30 min and 20 min ago", "in the last 10 min", "after the step before". */
export function timeWords(steps: readonly MotionStep[], i: number, unit: TimeUnit): string {
  const step = steps[i]!;
  if (!step.isTimed && step.sense !== "distance") return orderWords(placeBefore(steps, i), i);
  const isRecent = step.to === 0 || (step.to !== null && parseDuration(step.to) === 0);
  const when = isRecent
    ? t("in the last {from}", { from: spanWords(step.from, unit) })
    : t("between {from} and {to} ago", { from: spanWords(step.from, unit), to: spanWords(step.to, unit) });
  if (step.sense === "distance") return `${step.isForAll ? t("the farthest") : t("the closest")} ${when}`;
  if (step.total !== null) {
    const { bound, time } = step.total;
    const length = time === 0 ? t("no time") : spanWords(time, unit);
    return bound === "at_least"
      ? t("at least {length} in all {when}", { length, when })
      : t("at most {length} in all {when}", { length, when });
  }
  return `${step.isForAll ? t("all the time") : t("at some moment")} ${when}`;
}

function orderWords(before: number | null, i: number): string {
  if (before === null) return t("first of the order");
  return before === i - 1 ? t("after the step before") : t("after step {before}", { before: before + 1 });
}

/** A fault of a step names the step; a fault without one is returned unchanged. */
export function faultWords({ pointer, message }: { pointer: string; message: string }, steps: readonly MotionStep[]): string {
  const place = /^\/predicates\/(\d+)/.exec(pointer)?.[1];
  if (place === undefined) return message;
  const isPlaced = steps[Number(place)]?.place !== null;
  return t("Step {place}: {fault}", {
    place: Number(place) + 1,
    fault: isPlaced ? message : t("choose its place, on the map or by name."),
  });
}

export function titleWords({ sense, place }: MotionStep, feed: Feed): string {
  return `${{ inside: t("Inside"), outside: t("Outside"), distance: t("Distance to") }[sense]} ${placeWords(place, feed)}`;
}
