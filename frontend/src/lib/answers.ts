/**
 * Answers of single API calls, typed and checked: counts, secrets shown once, lists for one dialog.
 * Rows are in `shapes.ts`.
 */

import { faultList } from "./api";
import { boolean, dictionary, id, integer, isObject, list, nullable, number, object, oneOf, otherwise, record, string } from "./parse";
import type { Parser } from "./parse";
import { asGeometry } from "./regions";
import { alertGroup, detection, moment, position, regionGeometry, type Detection } from "./shapes";

/** Why the alerts that rules send to the reader do not arrive; empty if they do. */
export const reachability = record({ warning: string });

// ---- Queries

/** The answer to a specification that was checked. */
export const checked = record({
  faults: faultList,
  sentence: nullable(string),
  kinds: otherwise(list(string), []),
  notices: otherwise(list(string), []),
  placement: otherwise(nullable(string), null),
});

export const versionRow = record({
  version: number,
  sentence: otherwise(string, ""),
  created_at: moment,
  created_by: nullable(string),
  current: otherwise((value: unknown) => value === true, false),
  specification: object,
});
export type VersionRow = ReturnType<typeof versionRow>;

/** The query of a preview's answers: those of an unregistered query have none. */
export const PREVIEW = "preview";
const previewed: Parser<Detection> = (value, path = "") => detection({ ...object(value, path), query: PREVIEW }, path);
export const preview = record({
  from: otherwise(number, 0),
  to: otherwise(number, 0),
  rows: number,
  truncated: otherwise(boolean, false),
  seconds: otherwise(number, 0),
  total: number,
  answers: list(previewed),
  lacks_places: otherwise(boolean, false),
  unmet: otherwise(list(string), []),
});

const upstream = record({
  id: nullable(id),
  name: nullable(string),
  family: nullable(string),
  called: string,
  event: string,
  kind: string,
  at: oneOf("start", "end"),
  runs: boolean,
});
const dependent = record({ id, name: string, family: string, direct: boolean, runs: boolean });
export type Upstream = ReturnType<typeof upstream>;
export const derivation = record({ derives_from: list(upstream), derived_by: list(dependent), hidden: number });

export const filledTemplate = record({ specification: object });
export const removedHere = record({ removed: list(id) });

const behind = (value: unknown) => ({ ...detection(value), query_name: isObject(value) ? string(value["query_name"]) : "" });
export const answersBehind = record({ answers: list(behind) });
export type AnswerBehind = ReturnType<typeof behind>;

const score = record({
  kind: string,
  family: otherwise(string, ""),
  happened: number,
  found: number,
  reported: number,
  right: number,
  precision: nullable(number),
  recall: nullable(number),
});
export const scores = record({ scores: list(score) });
export type Score = ReturnType<typeof score>;

// ---- Feeds and regions

export const positions = record({ t: nullable(number), entities: list(position) });

/** The data that are removed with a feed. */
export const holdings = record({
  rows: integer,
  regions: integer,
  queries: integer,
  in_the_way: list(string),
  answers: integer,
  connectors: integer,
});

export const corrected = record({
  sent: integer,
  late: integer,
  refused: integer,
  wrong: integer,
  left: integer,
  problems: otherwise(list(record({ detail: string })), []),
});

export const registered = record({ results: list(record({ entity: string, name: string })) });

/** A file of regions, imported for one query. */
export const importedShapes = record({
  created: list(record({ name: otherwise(string, "region"), geometry: (value: unknown) => asGeometry(value) })),
  refused: otherwise(list(record({ row: otherwise(number, 0), faults: faultList })), []),
});

/** A file of regions, imported into the feed. */
export const importedRegions = record({
  created: list(
    record({
      name: string,
      geometry: regionGeometry,
      /** Its name in the file, if another region has this name. */
      file_name: otherwise(nullable(string), null),
      /** A stored region of the same shape. */
      same_as: otherwise(nullable(string), null),
      /** The stored region of its name that the reader may change, and what of it differs. */
      could_replace: otherwise(nullable(record({ id, changes: list(oneOf("geometry", "tags")) })), null),
    }),
  ),
  replaced: otherwise(list(record({ id, name: string, geometry: regionGeometry })), []),
  refused: list(record({ row: number, name: otherwise(string, ""), faults: faultList })),
});

// ---- Alerts

export const alertCount = record({ count: integer });
export const alertGroups = record({ results: list(alertGroup) });
export const changedAlerts = record({ changed: list(id), looked_at: otherwise(integer, 0), below: nullable(integer) });

export const named = record({ id, name: string });
export type Named = ReturnType<typeof named>;
export const savedView = record({
  id,
  name: string,
  parameters: otherwise(string, ""),
  editable: otherwise(boolean, false),
  team: otherwise(nullable(named), null),
});
export type SavedView = ReturnType<typeof savedView>;

export const shift = record({
  id,
  name: string,
  on_call: list(string),
  unknown: list(string),
  known_until: moment,
  warning: otherwise(string, ""),
  editable: otherwise(boolean, false),
});
export type Shift = ReturnType<typeof shift>;
export const turn = record({ id, person: string, begins_at: moment, ends_at: moment, by_hand: boolean });
export type Turn = ReturnType<typeof turn>;

export const newChannel = record({ secret: otherwise(string, "") });
export const tested = record({ ok: boolean, status: nullable(number), error: otherwise(string, "") });
export const pushKey = record({ key: nullable(string) });

// ---- Accounts and teams

export const newSecret = record({ secret: string });
export const newShare = record({ id, link: string });
export const share = record({ id, name: otherwise(string, ""), maker: record({ name: string }), expires_at: moment });
export type Share = ReturnType<typeof share>;
export const newInvitation = record({ link: string, sent: boolean, email: string });
export const transferred = record({ counts: dictionary(number) });
