/** Signed lengths of time: bounds of the time from A to B. Pure. */

import { formatSpan, parseDuration, type TimeUnit } from "../lib/time";
import { fromDuration, toDuration, type SpanUnit } from "./query_form_data";
import { t } from "../lib/texts";

/**
 * As in the document: a number in the feed's unit or an ISO 8601 duration, with a sign if
 * negative; null: unbounded.
 */
export type SignedSpan = string | number | null;

/** In the unit of the feed; null for an invalid value. */
export function spanValue(value: SignedSpan): number | null {
  if (typeof value !== "string") return value;
  const isNegative = /^[-−]/.test(value);
  const length = parseDuration(value.replace(/^[-−+]/, ""));
  return length === null ? null : isNegative ? -length || 0 : length;
}

/**
 * The value typed; an invalid number is kept as text, for the server to
 * refuse; null for an empty field.
 */
export function toSigned(amount: string, unit: SpanUnit): SignedSpan {
  const trimmed = amount.trim().replace("−", "-");
  if (trimmed === "") return null;
  const isNegative = trimmed.startsWith("-");
  const written = toDuration(isNegative ? trimmed.slice(1) : trimmed, unit);
  if (written === null) return trimmed;
  if (!isNegative) return written;
  return typeof written === "string" ? `-${written}` : -written || 0;
}

export function fromSigned(value: SignedSpan, time: TimeUnit): { amount: string; unit: SpanUnit } {
  const length = spanValue(value);
  const { amount, unit } = fromDuration(length === null ? null : Math.abs(length), time);
  return { amount: length !== null && length < 0 ? `-${amount}` : amount, unit };
}

/** "within 5 min", "0 s to 5 min later", "at least 2 min later", relative to the first event. */
export function lagWords([low, high]: readonly [SignedSpan, SignedSpan], unit: TimeUnit): string {
  const [from, to] = [spanValue(low), spanValue(high)];
  const words = (length: number): string => (length === 0 ? "0" : formatSpan(Math.abs(length), unit));
  if (from === null && to === null) return t("at any time");
  if (from !== null && to !== null && from === -to) return from === 0 ? t("at the same time") : t("within {span}", { span: words(to) });
  if (from === null) return to! < 0 ? t("at least {to} earlier", { to: words(to!) }) : t("at most {to} later", { to: words(to!) });
  if (to === null) return from < 0 ? t("at most {from} earlier", { from: words(from) }) : t("at least {from} later", { from: words(from) });
  if (to <= 0) return t("{to} to {from} earlier", { to: words(to), from: words(from) });
  return from >= 0
    ? t("{from} to {to} later", { from: words(from), to: words(to) })
    : t("{from} earlier to {to} later", { from: words(from), to: words(to) });
}
