/** A step of a motion pattern in words. Pure. */

import { describe, isCircle, isReference } from "../lib/regions";
import { formatSpan, parseDuration, type TimeUnit } from "../lib/time";
import { placeBefore, type MotionStep, type Place, type Span } from "./motion_data";
import type { Feed } from "./shapes";

export function placeWords(place: Place, feed: Feed): string {
  if (place === null) return "a place not chosen yet";
  if (Array.isArray(place)) return `the point ${place.map((one) => Number(one.toFixed(5))).join(", ")}`;
  if (isReference(place)) return place.region;
  const words = describe(place, feed.crs === "geographic");
  return isCircle(place) ? `a circle${words.slice("Circle".length)}` : `an area drawn (${words.toLowerCase()})`;
}

export function spanWords(span: Span, unit: TimeUnit): string {
  const length = span === null ? null : parseDuration(span);
  return length === null ? (span === null ? "…" : String(span)) : length === 0 ? "now" : formatSpan(length, unit);
}

/** "between 30 min and 20 min ago", "in the last 10 min", "after the step before". */
export function timeWords(steps: readonly MotionStep[], i: number, unit: TimeUnit): string {
  const step = steps[i]!;
  if (!step.isTimed && step.sense !== "distance") return orderWords(placeBefore(steps, i), i);
  const isRecent = step.to === 0 || (step.to !== null && parseDuration(step.to) === 0);
  const when = isRecent
    ? `in the last ${spanWords(step.from, unit)}`
    : `between ${spanWords(step.from, unit)} and ${spanWords(step.to, unit)} ago`;
  if (step.sense === "distance") return `${step.isForAll ? "the farthest" : "the closest"} ${when}`;
  if (step.total !== null) {
    const { bound, time } = step.total;
    return `${bound === "at_least" ? "at least" : "at most"} ${time === 0 ? "no time" : spanWords(time, unit)} in all ${when}`;
  }
  return `${step.isForAll ? "all the time" : "at some moment"} ${when}`;
}

function orderWords(before: number | null, i: number): string {
  if (before === null) return "first of the order";
  return before === i - 1 ? "after the step before" : `after step ${before + 1}`;
}

/** What is wrong with a step names the step; one without a place has nothing else to be told about it. */
export function faultWords({ pointer, message }: { pointer: string; message: string }, steps: readonly MotionStep[]): string {
  const place = /^\/predicates\/(\d+)/.exec(pointer)?.[1];
  if (place === undefined) return message;
  const isPlaced = steps[Number(place)]?.place !== null;
  return `Step ${Number(place) + 1}: ${isPlaced ? message : "choose its place, on the map or by name."}`;
}

export function titleWords({ sense, place }: MotionStep, feed: Feed): string {
  return `${{ inside: "Inside", outside: "Outside", distance: "Distance to" }[sense]} ${placeWords(place, feed)}`;
}
