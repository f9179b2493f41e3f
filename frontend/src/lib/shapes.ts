/** Data from the server, typed and checked: rows of the API and of the frames. */

import {
  anything,
  boolean,
  dictionary,
  four,
  id,
  integer,
  isObject,
  list,
  nullable,
  number,
  object,
  oneOf,
  otherwise,
  ParseFault,
  record,
  string,
  type Parser,
} from "./parse";
import type { Geometry } from "./regions";
import { TIMING } from "./timing";
import { UNITS } from "./units";
import { t } from "./texts";

export const SEVERITIES = ["info", "low", "high", "critical"] as const;
export type Severity = (typeof SEVERITIES)[number];
export const severity = oneOf(...SEVERITIES);

export const evidenceItem = record({
  variable: otherwise(string, ""),
  entity: otherwise(string, ""),
  t: number,
  x: nullable(number),
  y: nullable(number),
});
export type EvidenceItem = ReturnType<typeof evidenceItem>;

export const detection = record({
  id,
  query: id,
  version: otherwise(integer, 1),
  kind: string,
  entities: list(string),
  value: anything,
  start: number,
  end: nullable(number),
  cut: otherwise(boolean, false),
  evidence: otherwise(list(evidenceItem), []),
  weight: otherwise(number, 1),
  backfill: otherwise(boolean, false),
  detected_at: anything,
});
export type Detection = ReturnType<typeof detection>;

/** A wall-clock time in milliseconds, from a number or from ISO 8601. */
export function moment(value: unknown, path = ""): number {
  if (typeof value === "number") return value;
  const parsed = Date.parse(string(value, path));
  if (Number.isNaN(parsed)) throw new ParseFault(path, t("a moment"));
  return parsed;
}

export const alert = record({
  id,
  feed: otherwise(id, ""),
  query: id,
  query_name: otherwise(string, ""),
  kind: string,
  entities: otherwise(list(string), []),
  start: number,
  end: nullable(number),
  severity,
  state: oneOf("new", "seen", "acknowledged", "assigned", "reopened", "resolved"),
  opened_at: otherwise(moment, 0),
  detection: nullable(id),
  acknowledged_by: nullable(string),
  acknowledged_at: nullable(moment),
  assignee: nullable(string),
  /**
   * The wall-clock time at which the alert's answer ended; null while it is open, and
   * for answers without an end.
   */
  over_at: nullable(moment),
  resolved_by: nullable(string),
  resolved_at: nullable(moment),
  revision: otherwise(integer, 0),
  /** A mute kept it from being delivered. */
  muted: otherwise(boolean, false),
  resolution: otherwise(string, ""),
  comments: (value: unknown) => (typeof value === "number" ? value : 0),
  editable: otherwise(boolean, true),
});
export type Alert = ReturnType<typeof alert>;

/** The alerts of one query, entity or region. */
export const alertGroup = record({
  key: string,
  name: string,
  count: integer,
  unattended: integer,
  severity,
  first: moment,
  last: moment,
  strip: list(integer),
});
export type AlertGroup = ReturnType<typeof alertGroup>;

const quantiles = record({ median: nullable(number), p90: nullable(number) });
const noisy = list(record({ key: id, name: string, count: integer }));
const bySeverity = record({ info: list(integer), low: list(integer), high: list(integer), critical: list(integer) });
/** Statistics of the desk over a period. */
export const alertNumbers = record({
  times: list(moment),
  open: bySeverity,
  opened: integer,
  seconds_to_acknowledge: quantiles,
  seconds_to_resolve: quantiles,
  ended_unattended: integer,
  noisiest_queries: noisy,
  noisiest_entities: noisy,
  verdicts: dictionary(integer),
});
export type AlertNumbers = ReturnType<typeof alertNumbers>;

/** A mute; `window_until` null: without an end. */
export const muteRow = record({
  id,
  of: string,
  feed: id,
  reason: otherwise(string, ""),
  rule: otherwise(string, ""),
  window_from: moment,
  window_until: nullable(moment),
  ended_at: nullable(moment),
  alerts: otherwise(integer, 0),
  owner: otherwise(record({ name: string }), { name: "someone" }),
  editable: otherwise(boolean, false),
});
export type MuteRow = ReturnType<typeof muteRow>;

/** An event of an alert; `author` null: automatic. */
export const alertStep = record({
  id: otherwise(id, ""),
  action: otherwise(string, "commented"),
  author: nullable(string),
  assignee: nullable(string),
  text: otherwise(string, ""),
  at: otherwise(moment, 0),
});
export type AlertStep = ReturnType<typeof alertStep>;

/** [t, x, y] */
export type TrackPoint = readonly [number, number, number];
const trackPoint: Parser<TrackPoint> = (value, path = "") => {
  const items = list(number)(value, path);
  if (items.length < 3) throw new ParseFault(path, "[t, x, y]");
  return [items[0]!, items[1]!, items[2]!];
};
export const track = record({ entity: string, points: list(trackPoint) });
export type Track = ReturnType<typeof track>;
export const tracks = record({ complete: otherwise(boolean, true), tracks: list(track) });

export const detectionDetail: Parser<Detection & { sentence: string; query_name: string; tracks: Track[] }> = (value, path = "") => ({
  ...detection(value, path),
  ...record({ sentence: otherwise(string, ""), query_name: otherwise(string, ""), tracks: otherwise(list(track), []) })(value, path),
});

export const alertDetail = record({
  /** The query version that gave it: sentence and areas are those of this version. */
  version: otherwise(integer, 1),
  /** The query was removed and has no page. */
  removed: otherwise(boolean, false),
  sentence: otherwise(string, ""),
  shapes: otherwise(list(anything), []),
  steps: otherwise(list(alertStep), []),
  feedback: otherwise(list(record({ author: string, verdict: string, reason: otherwise(string, "") })), []),
  mute: otherwise(nullable(record({ by: string, reason: otherwise(string, ""), until: nullable(moment) })), null),
  /** Users who may handle it, and to whom it can be assigned. */
  handlers: otherwise(list(string), []),
  evidence: otherwise(record({ detection: nullable(detection), closing: nullable(detection), tracks: otherwise(list(track), []) }), {
    detection: null,
    closing: null,
    tracks: [],
  }),
  deliveries: otherwise(
    list(
      record({
        channel: string,
        due_at: otherwise(nullable(moment), null),
        after_minutes: otherwise(integer, 0),
        sent_at: nullable(moment),
        error: otherwise(string, ""),
      }),
    ),
    [],
  ),
});
export type AlertDetail = ReturnType<typeof alertDetail>;

/** [entity, x, y, t] */
export type Position = readonly [string, number, number, number];
export const position: Parser<Position> = (value, path = "") => {
  if (!Array.isArray(value) || value.length < 4) throw new ParseFault(path, "[entity, x, y, t]");
  return [string(value[0], path), number(value[1], path), number(value[2], path), number(value[3], path)];
};

const centreAndZoom: Parser<{ center: [number, number]; zoom: number } | null> = (value, path = "") => {
  if (!isObject(value)) return null;
  const place = value["center"] ?? value["centre"];
  if (!Array.isArray(place) || place.length !== 2) return null;
  return { center: [number(place[0], path), number(place[1], path)], zoom: otherwise(number, 10)(value["zoom"], path) };
};

export const feed = record({
  name: string,
  title: otherwise(string, ""),
  crs: oneOf("geographic", "planar"),
  time: oneOf("ms", "ticks"),
  tick: otherwise(number, 1),
  lateness: otherwise(number, 0),
  columns: otherwise(dictionary(string), {}),
  wall_clock: otherwise(boolean, false),
  plan_image: nullable(string),
  plan_bounds: nullable(four),
  view: centreAndZoom,
  editable: otherwise(boolean, false),
});
export type Feed = ReturnType<typeof feed>;

export const regionGeometry: Parser<Geometry> = (value, path = "") => object(value, path) as unknown as Geometry;

const named = record({ id, name: string });
/** A region by name, with the queries that use it. */
export const regionUse = record({ id, name: string, used_by: otherwise(list(named), []) });

export const region = record({
  id,
  feed: otherwise(id, ""),
  name: string,
  geometry: regionGeometry,
  bbox: nullable(four),
  tags: otherwise(list(string), []),
  used_by: otherwise(list(named), []),
  editable: otherwise(boolean, true),
  updated_at: otherwise(moment, 0),
});
export type RegionRow = ReturnType<typeof region>;

export const queryRow = record({
  id,
  feed: id,
  name: string,
  description: otherwise(string, ""),
  folder: otherwise(string, ""),
  tags: otherwise(list(string), []),
  owner: otherwise(nullable(named), null),
  family: string,
  specification: object,
  version: otherwise(integer, 1),
  /** When the job stopped running the version; null while it runs. */
  left_at: otherwise(nullable(number), null),
  enabled: otherwise(boolean, true),
  severity: otherwise(severity, "info"),
  alert_kinds: otherwise(list(string), []),
  kinds: otherwise(list(string), []),
  channels: otherwise(list(id), []),
  /** How often users are notified of its alerts; null: of each one. */
  calls: otherwise(oneOf("each", "once"), "each"),
  calls_per_hour: otherwise(nullable(integer), null),
  sentence: otherwise(string, ""),
  regions: otherwise(list(named), []),
  public: otherwise(boolean, false),
  editable: otherwise(boolean, true),
  updated_at: otherwise(moment, 0),
  stopped: otherwise(nullable(record({ reason: string, at: moment })), null),
});
export type QueryRow = ReturnType<typeof queryRow>;

/** The folder and tags of a query. */
export const filing = record({ folder: otherwise(string, ""), tags: otherwise(list(string), []) });

/** The specification of a query version, with its regions at that time. */
export const queryVersion = record({
  version: integer,
  specification: object,
  sentence: otherwise(string, ""),
  /** The query still has this specification: at most it was switched off and on since. */
  unchanged: boolean,
});
export type QueryVersion = ReturnType<typeof queryVersion>;

export const counters = record({
  received: integer,
  processed: integer,
  duplicates: integer,
  late: integer,
  dead: integer,
  lost: otherwise(integer, 0),
  waiting: integer,
});
export type Counters = ReturnType<typeof counters>;

export const feedHead = record({
  seq: nullable(number),
  watermark: nullable(number),
  max_t: nullable(number),
  outbox_seq: nullable(number),
  batch_ms: nullable(number),
  rows_per_s: nullable(number),
  query_version: nullable(number),
  updated_at: nullable(moment),
  job: nullable(string),
});
export type FeedHead = ReturnType<typeof feedHead>;

export const happened = record({ at: moment, kind: string, text: otherwise(string, "") });
export type Happened = ReturnType<typeof happened>;

/** Measurements of the feed's processing, lists of equal length, oldest first. */
export const feedMeasures = record({
  at: list(number),
  rows_per_s: list(nullable(number)),
  lag: list(nullable(number)),
  batch_ms: list(nullable(number)),
});
const teamName = record({ id, name: string });
export type TeamName = ReturnType<typeof teamName>;
export type FeedStatus = Feed & {
  counters: Counters | null;
  head: FeedHead | null;
  query_version: number | null;
  editable: boolean;
  damage: string | null;
  events: Happened[];
  /** The names of connectors that keep failing or do not run. */
  failing_connectors: string[];
  ahead: number | null;
  retention_hours: number;
  team: TeamName | null;
  public: boolean;
};
export const feedStatus: Parser<FeedStatus> = (value, path = "") => ({
  ...feed(value, path),
  ...record({
    counters: nullable(counters),
    head: nullable(feedHead),
    query_version: nullable(number),
    editable: otherwise(boolean, true),
    damage: nullable(string),
    events: otherwise(list(happened), []),
    failing_connectors: otherwise(list(string), []),
    ahead: nullable(number),
    retention_hours: otherwise(integer, 72),
    team: otherwise(nullable(teamName), null),
    public: otherwise(boolean, false),
  })(value, path),
});

export const job = record({
  name: string,
  team: otherwise(nullable(teamName), null),
  desired_state: string,
  observed_state: string,
  started_at: nullable(moment),
  heartbeat: nullable(moment),
  restarts: otherwise(integer, 0),
  failures: otherwise(integer, 0),
  last_error: otherwise(string, ""),
  feeds: otherwise(list(string), []),
  editable: otherwise(boolean, true),
  events: otherwise(list(happened), []),
});
export type Job = ReturnType<typeof job>;

export const deadLetter = record({
  id,
  reason: string,
  detail: otherwise(string, ""),
  row: anything,
  line: nullable(number),
  source: otherwise(string, ""),
  received_at: moment,
  sent_at: otherwise(nullable(moment), null),
});
export type DeadLetter = ReturnType<typeof deadLetter>;

export const me = record({
  id,
  name: string,
  email: otherwise(string, ""),
  time_zone: otherwise(string, "UTC"),
  units: otherwise(oneOf(...UNITS), "metric"),
  language: otherwise(string, ""),
  superuser: otherwise(boolean, false),
  teams: otherwise(list(record({ id, name: string, role: string })), []),
});
export type Me = ReturnType<typeof me>;

export const token = record({
  id,
  name: string,
  prefix: otherwise(string, ""),
  scopes: list(string),
  feed: otherwise(nullable(string), null),
  created_at: moment,
  expires_at: nullable(moment),
  last_used_at: nullable(moment),
});
export type Token = ReturnType<typeof token>;

export const channel = record({
  id,
  name: string,
  kind: otherwise(string, "webhook"),
  url: otherwise(string, ""),
  recipient: otherwise(string, ""),
  enabled: otherwise(boolean, true),
  disabled_reason: otherwise(string, ""),
  min_severity: otherwise(severity, "info"),
  per_minute: otherwise(integer, 30),
  all_queries: otherwise(boolean, true),
  queries: otherwise(list(id), []),
  failures: otherwise(integer, 0),
  /** Why its last message failed; empty after one that arrived. */
  problem: otherwise(string, ""),
  /** Nothing is sent before. */
  not_before: otherwise(nullable(moment), null),
  last_sent_at: nullable(moment),
  waiting: otherwise(integer, 0),
  held_back: otherwise(integer, 0),
  editable: otherwise(boolean, true),
  ...TIMING,
});
export type Channel = ReturnType<typeof channel>;

/** A removed query; its answers are kept. */
export const removedQuery = record({ id, name: string, feed: string, family: string, removed_at: moment, answers: integer });
export type RemovedQuery = ReturnType<typeof removedQuery>;
export const removedQueries = record({ results: list(removedQuery) });
