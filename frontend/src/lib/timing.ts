/** Quiet hours, digests and limits of a rule or a channel: the form of the API, and their text. */

import { boolean, integer, nullable, oneOf, otherwise, string } from "./parse";
import { t } from "./texts";

export const TIMING = {
  zone: otherwise(string, "UTC"),
  quiet_from: otherwise(nullable(string), null),
  quiet_until: otherwise(nullable(string), null),
  digest: otherwise(oneOf("", "hourly", "daily", "weekly"), ""),
  digest_at: otherwise(string, "08:00:00"),
  critical_passes: otherwise(boolean, true),
  group_by: otherwise(oneOf("", "query", "entity", "region"), ""),
  group_minutes: otherwise(integer, 30),
};

export interface Timing {
  zone: string;
  quiet_from: string | null;
  quiet_until: string | null;
  digest: "" | "hourly" | "daily" | "weekly";
  digest_at: string;
  critical_passes: boolean;
  group_by: "" | "query" | "entity" | "region";
  group_minutes: number;
}

/** Every message immediately. */
export function atOnce(zone: string): Timing {
  return {
    zone,
    quiet_from: null,
    quiet_until: null,
    digest: "",
    digest_at: "08:00:00",
    critical_passes: true,
    group_by: "",
    group_minutes: 30,
  };
}

/**
 * "quiet 22:00 to 06:00 · a digest every hour · one message by entity in 30 min";
 * "" if nothing is delayed.
 */
export function timingWords(timing: Timing): string {
  const quiet =
    timing.quiet_from === null || timing.quiet_until === null
      ? ""
      : t("quiet {quietfrom} to {quietuntil}", { quietfrom: clock(timing.quiet_from), quietuntil: clock(timing.quiet_until) });
  const at = { digestat: clock(timing.digest_at) };
  const digest = {
    "": "",
    hourly: t("a digest every hour"),
    daily: t("a digest at {digestat}", at),
    weekly: t("a digest on Mondays at {digestat}", at),
  }[timing.digest];
  const group =
    timing.group_by === ""
      ? ""
      : {
          query: t("one message by query in {minutes} min", { minutes: timing.group_minutes }),
          entity: t("one message by entity in {minutes} min", { minutes: timing.group_minutes }),
          region: t("one message by region in {minutes} min", { minutes: timing.group_minutes }),
        }[timing.group_by];
  const critical = (quiet !== "" || digest !== "") && timing.critical_passes ? t("critical ones immediately") : "";
  return [quiet, digest, group, critical].filter((text) => text !== "").join(" · ");
}

/** "22:00:00" as "22:00". */
export function clock(time: string): string {
  return time.slice(0, 5);
}
