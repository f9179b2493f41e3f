/** Labels of kinds, states and severities. */

import { familyOf, kindOf } from "./families";
import { something } from "./families/family";
import { language, t } from "./texts";
import type { Severity } from "./shapes";

export function kindName(kind: string): string {
  // For a stay: the period between entering and leaving.
  if (kind === "stay") return t("Inside");
  const known = kindOf(kind);
  if (known !== undefined) return known.name;
  // Rule programs write a name as one word: illegalFishing.
  return capitalised(kind.replaceAll("_", " ").replace(/(?<=[a-z])[A-Z](?=[a-z])/g, (first) => ` ${first.toLowerCase()}`));
}

/** A name within a sentence: German keeps the capitals of its nouns. */
export function inSentence(name: string): string {
  return language === "en" ? name.toLowerCase() : name;
}

export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * "person-1 and person-2: greeting". Without entities only the kind; an entity in
 * several roles is named once.
 */
export function answerTitle(entities: readonly string[], kind: string): string {
  return entities.length === 0 ? kindName(kind) : `${[...new Set(entities)].join(t(" and "))}: ${inSentence(kindName(kind))}`;
}

export const REASONS: Record<string, string> = {
  malformed: t("Not readable"),
  missing_entity: t("Without an entity"),
  missing_t: t("Without a time"),
  wrong_type: t("Wrong type"),
  t_out_of_range: t("Time out of range"),
  not_finite: t("Not a finite number"),
  out_of_range: t("Place out of range"),
  half_position: t("Incomplete position"),
  ends_before_start: t("Ends before it begins"),
  reserved_event: t("Reserved name of an event"),
  future: t("Too far in the future"),
  late: t("Too late"),
};

/** Why a row is refused, in a few words. */
export function reasonName(reason: string): string {
  return REASONS[reason] ?? kindName(reason);
}

/** The version that gave an answer, and whether the query has changed since. */
export function versionWords({ version, unchanged }: { version: number; unchanged: boolean }): string {
  return unchanged ? t("version {version}", { version }) : t("version {version}; the query was changed since", { version });
}

/** The occurrence of an answer of the kind, in the present tense: "something enters". */
export function kindClause(kind: string): string {
  return kindOf(kind)?.clause ?? something(t("gives “{kind}”", { kind: kindName(kind) }));
}

export const SEVERITY_NAMES: Record<Severity, string> = { info: t("Info"), low: t("Low"), high: t("High"), critical: t("Critical") };

/** Alerts of this severity and the greater ones. */
export function fromSeverity(least: Severity): string {
  if (least === "info") return t("All alerts");
  return least === "critical" ? t("Critical only") : t("{value} and above", { value: SEVERITY_NAMES[least] });
}

export const STATE_NAMES = {
  new: t("New"),
  seen: t("Seen"),
  acknowledged: t("Acknowledged"),
  assigned: t("Assigned"),
  reopened: t("Reopened"),
  resolved: t("Resolved"),
} as const;
export const STEP_NAMES: Record<string, string> = {
  seen: t("looked at it"),
  acknowledged: t("acknowledged it"),
  assigned: t("assigned it to"),
  resolved: t("resolved it"),
  reopened: t("reopened it"),
  commented: t("commented"),
  ended: t("It ended by itself"),
  withdrawn: t("Its answer was withdrawn"),
  changed: t("Its query was edited or switched off"),
  removed: t("Its query was removed"),
  resumed: t("It holds again"),
};
export const JOB_STATES: Record<string, string> = {
  starting: t("Starting"),
  running: t("Running"),
  stopping: t("Stopping"),
  stopped: t("Stopped"),
  backoff: t("Waiting to start again"),
  crash_loop: t("Keeps failing"),
};
/** Events of jobs and their feeds (webapp/jobs/models.py, JobEvent). */
export const JOB_EVENTS: Record<string, string> = {
  started: t("Started"),
  ready: t("Ready"),
  adopted: t("Adopted"),
  stopped: t("Stopped"),
  crashed: t("Crashed"),
  killed: t("Ended by force"),
  orphan: t("Leftover process ended"),
  crash_loop: t("Keeps failing"),
  rebuilt: t("Rebuilt from the log"),
  requested: t("Requested"),
  query: t("Query stopped"),
  damaged: t("Log damaged"),
  repaired: t("Log repaired"),
  stalled: t("Stalled"),
  resumed: t("Resumed"),
  unreadable: t("File not read"),
  connector_failed: t("Connector keeps failing"),
  connector_runs: t("Connector runs again"),
};

export function familyName(family: string): string {
  return familyOf(family)?.name ?? kindName(family);
}

/** The page's text when an address names a feed that it cannot show. */
export const anotherFeed = (feed: string): string =>
  t("The feed “{feed}” no longer exists, or is not shared with you. This is another one.", { feed });
