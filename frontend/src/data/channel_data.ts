/** Texts for channels and their deliveries. */

import { boolean, id, integer, list, nullable, otherwise, record, string } from "../lib/parse";
import { moment, type Channel } from "../lib/shapes";
import { t, tn } from "../lib/texts";

export const delivery = record({
  id,
  test: boolean,
  alerts: list(id),
  /** For each alert that is in it by an escalation: after how many minutes. */
  escalations: otherwise(list(integer), []),
  created_at: moment,
  attempts: integer,
  next_at: moment,
  sent_at: nullable(moment),
  failed_at: nullable(moment),
  status_code: nullable(integer),
  error: otherwise(string, ""),
});
export type Delivery = ReturnType<typeof delivery>;

export type DeliveryState = "sent" | "waiting" | "given up";

export function stateOf(one: Delivery): DeliveryState {
  return one.sent_at !== null ? "sent" : one.failed_at !== null ? "given up" : "waiting";
}

/** "A test", "Alert 12", "3 alerts". */
export function contentWords(one: Delivery): string {
  if (one.test) return t("A test");
  return one.alerts.length === 1
    ? t("Alert {value}", { value: one.alerts[0] ?? "" })
    : one.alerts.length === 100
      ? t("{count} or more alerts", { count: 100 })
      : t("{count} alerts", { count: one.alerts.length });
}

/** That nobody had acknowledged its alerts in time; "" if none is in it by an escalation. */
export function escalationWords(one: Delivery): string {
  const minutes = one.escalations[0];
  if (minutes === undefined) return "";
  return one.alerts.length === 1
    ? escalatedWords(minutes)
    : tn("one of them by an escalation", "{count} of them by an escalation", one.escalations.length);
}

export const escalatedWords = (minutes: number): string => t("Escalation: not acknowledged within {minutes} min", { minutes });

/** Why the last attempt failed; "" if none failed. */
export function reasonWords(one: Delivery): string {
  const isRepeated = one.attempts > 1;
  if (one.sent_at !== null) return isRepeated ? t("arrived after {attempts} attempts", { attempts: one.attempts }) : "";
  const why = one.error !== "" ? one.error : one.status_code === null ? "" : t("status {code}", { code: one.status_code });
  return why !== "" && isRepeated ? `${why} · ${t("{attempts} attempts", { attempts: one.attempts })}` : why;
}

/** The target of the channel. */
export function addressWords(one: Channel): string {
  return one.kind === "mail" ? one.recipient : one.url;
}
