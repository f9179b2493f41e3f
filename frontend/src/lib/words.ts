/** Kinds, states and severities in the words the screens use. */

import type { Severity } from "../data/shapes";

const KINDS: Record<string, string> = {
  in: "Entered",
  out: "Left",
  stay: "Inside",
  passed: "Passed through",
  returned: "Left and came back",
  stayed_in: "Stayed in",
  stayed_out: "Stayed out",
  match: "Match",
  detection: "Detected",
  occupied: "So many there",
  met: "Met",
  arriving: "On its way in",
};

export function kindName(kind: string): string {
  const known = KINDS[kind];
  if (known !== undefined) return known;
  return capitalised(kind.replaceAll("_", " "));
}

export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** "person-1 and person-2: greeting"; what nobody in particular takes part in is named by its kind alone, and who has several parts once. */
export function answerTitle(entities: readonly string[], kind: string): string {
  return entities.length === 0 ? kindName(kind) : `${[...new Set(entities)].join(" and ")}: ${kindName(kind).toLowerCase()}`;
}

/** The version that gave an answer, and whether the query asks something else now. */
export function versionWords({ version, unchanged }: { version: number; unchanged: boolean }): string {
  return unchanged ? `version ${version}` : `version ${version}; the query was changed since`;
}

const VERBS: Record<string, string> = {
  in: "enters",
  out: "leaves",
  passed: "passes through in time",
  returned: "comes back in time",
  stayed_in: "stays in too long",
  stayed_out: "stays out too long",
  met: "meets another",
  arriving: "is about to enter",
};

/** When an answer of the kind comes, in the present: "something enters". */
export function kindClause(kind: string): string {
  return kind === "occupied" ? "so many are there" : `something ${VERBS[kind] ?? `gives “${kindName(kind)}”`}`;
}

export const SEVERITY_NAMES: Record<Severity, string> = { info: "Info", low: "Low", high: "High", critical: "Critical" };
export const STATE_NAMES = {
  new: "New",
  seen: "Seen",
  acknowledged: "Acknowledged",
  assigned: "Assigned",
  reopened: "Reopened",
  resolved: "Resolved",
} as const;
export const STEP_NAMES: Record<string, string> = {
  seen: "looked at it",
  acknowledged: "acknowledged it",
  assigned: "gave it to",
  resolved: "resolved it",
  reopened: "reopened it",
  commented: "said",
  ended: "It ended by itself",
  withdrawn: "Its answer was withdrawn",
  changed: "Its query was edited or switched off",
  removed: "Its query was removed",
  resumed: "It holds again",
};
export const FAMILY_NAMES: Record<string, string> = {
  border: "Crossing a border",
  transition: "Passing or staying",
  motion: "Motion pattern",
  occupancy: "How many are there",
  encounter: "Who meets whom",
  arrival: "Who is about to arrive",
  constraint: "Events close together",
  composite: "Composite event",
  calculus: "Rules over time",
};
export const JOB_STATES: Record<string, string> = {
  starting: "Starting",
  running: "Running",
  stopping: "Stopping",
  stopped: "Stopped",
  backoff: "Waiting to start again",
  crash_loop: "Keeps failing",
};

export function familyName(family: string): string {
  return FAMILY_NAMES[family] ?? kindName(family);
}
