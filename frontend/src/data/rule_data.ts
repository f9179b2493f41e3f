/** Routing rules in the form of the API, and as text. */

import { fromSeverity } from "../lib/words";
import { boolean, id, integer, list, nullable, otherwise, record, string } from "../lib/parse";
import { TIMING, timingWords } from "../lib/timing";
import { severity } from "../lib/shapes";
import { t, tn } from "../lib/texts";

export const rule = record({
  id,
  name: string,
  enabled: boolean,
  feed: nullable(string),
  queries: list(id),
  tags: list(string),
  regions: list(id),
  min_severity: severity,
  days: list(integer),
  from_time: nullable(string),
  until_time: nullable(string),
  ...TIMING,
  after_minutes: integer,
  channels: list(id),
  teams: list(id),
  people: list(string),
  shifts: otherwise(list(id), []),
  /** Why it reaches nobody; empty if it reaches someone, or for readers who may not change it. */
  warning: otherwise(string, ""),
  editable: otherwise(boolean, false),
});
export type Rule = ReturnType<typeof rule>;

const route = record({
  channel: record({ id, name: string, owner: string }),
  rule: nullable(string),
  after_minutes: integer,
  count: integer,
  messages: integer,
  alerts: list(record({ id, query_name: string, entities: list(string), severity })),
});
/**
 * Only the newest `alerts` of the `opened` ones were evaluated; `unreached` reach nobody, `unseen`
 * only channels that the user does not see. For a rule tried alone, `matched`: the alerts that it
 * matches, `reached`: those of them that reach someone; `warning`: why the rule reaches nobody.
 */
export const dryRun = record({
  opened: integer,
  alerts: integer,
  unreached: integer,
  unseen: otherwise(integer, 0),
  matched: otherwise(nullable(integer), null),
  reached: otherwise(nullable(integer), null),
  warning: otherwise(string, ""),
  results: list(route),
});
export type DryRun = ReturnType<typeof dryRun>;

export const DAYS = [t("Monday"), t("Tuesday"), t("Wednesday"), t("Thursday"), t("Friday"), t("Saturday"), t("Sunday")];

/**
 * The conditions of the rule: "High and above · yard · 1 query · 22:00 to 06:00 · after 10 min
 * without acknowledgement".
 */
export function conditionWords(one: Rule): string {
  const span =
    one.from_time === null && one.until_time === null
      ? ""
      : t("{from} to {until} {zone}", { from: clock(one.from_time), until: clock(one.until_time), zone: one.zone });
  return [
    fromSeverity(one.min_severity),
    one.feed ?? "",
    one.queries.length === 0 ? "" : tn("1 query", "{count} queries", one.queries.length),
    one.tags.map((tag) => t("tag {tag}", { tag })).join(t(" or ")),
    one.regions.length === 0 ? "" : tn("1 region", "{count} regions", one.regions.length),
    one.days.map((day) => DAYS[day] ?? "").join(", "),
    span,
    one.after_minutes === 0 ? "" : t("after {afterminutes} min without acknowledgement", { afterminutes: one.after_minutes }),
    timingWords(one),
  ]
    .filter((text) => text !== "")
    .join(" · ");
}

/** "22:00:00" as "22:00"; null is midnight. */
function clock(time: string | null): string {
  return time === null ? "00:00" : time.slice(0, 5);
}

/** By id. */
type Names = ReadonlyMap<string, string>;

/**
 * Where a rule sends: names of channels, "all of team harbour", "ben's own", "on call in “Night”".
 */
export function targetWords(one: Rule, channels: Names, teams: Names, shifts: Names): string {
  return [
    ...one.channels.map((channel) => channels.get(channel) ?? t("a channel")),
    ...one.teams.map((team) => t("all of {team}", { team: teams.get(team) ?? t("a team") })),
    ...one.people.map((name) => t("{name}'s own", { name })),
    ...one.shifts.map((shift) => t("on call in “{name}”", { name: shifts.get(shift) ?? t("a shift") })),
  ]
    .filter((text) => text !== "")
    .join(", ");
}
