/** The server's analysis of an uploaded file, and the user's changes to its mapping. */

import { anything, boolean, four, integer, list, nullable, number, oneOf, otherwise, record, string, type Parser } from "../lib/parse";
import { formatNumber, t } from "../lib/texts";
import { withoutAccents } from "../lib/accents";

export const COLUMN_TYPES = ["string", "int", "float", "bool"] as const;
export const attribute = record({ source: string, name: string, type: oneOf(...COLUMN_TYPES) });
export type Attribute = ReturnType<typeof attribute>;

export const reading = record({
  kind: string,
  encoding: string,
  delimiter: string,
  header: boolean,
  sheet: string,
  time: list(string),
  entity: list(string),
  x: string,
  y: string,
  event: string,
  attributes: list(attribute),
  thing: string,
  decimal: string,
  time_format: string,
  zone: string,
  place_format: otherwise(string, "numbers"),
  crs: string,
});
export type Reading = ReturnType<typeof reading>;

const pair: Parser<[number, number]> = (value, path = "") => {
  const [first, second] = list(number)(value, path);
  return [first ?? 0, second ?? 0];
};
const values = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

export const inspection = record({
  reading,
  sheets: list(string),
  columns: list(record({ name: string, examples: list(string), empty: integer, odd: string })),
  rows: list(values),
  lines: list(integer),
  read: list(values),
  count: integer,
  good: integer,
  faults: list(record({ line: integer, problem: string, row: anything })),
  fault_count: integer,
  places: list(pair),
  bounds: nullable(four),
  entities: integer,
  from: nullable(number),
  to: nullable(number),
  intervals: list(record({ up_to: nullable(number), count: integer })),
  lateness: integer,
  tick: integer,
  ordered: boolean,
  into: otherwise(
    nullable(
      record({
        feed: string,
        title: string,
        wall_clock: boolean,
        remembered: boolean,
        from: nullable(number),
        ahead: nullable(number),
        missing: list(string),
        left_out: list(string),
      }),
    ),
    null,
  ),
});
export type Inspection = ReturnType<typeof inspection>;

const STATES = ["uploading", "ready", "reading", "sending", "paused", "done", "cancelled", "failed"] as const;
export const upload = record({
  id: string,
  name: string,
  size: integer,
  offset: integer,
  state: oneOf(...STATES),
  error: otherwise(string, ""),
  feed: nullable(string),
  as_now: boolean,
  rate: number,
  read: integer,
  rows: nullable(integer),
  position: integer,
  late: integer,
  dead: integer,
});
export type Upload = ReturnType<typeof upload>;
export const samples: Parser<Sample[]> = (value, path = "") => samplePage(value, path).results;
const samplePage = record({
  results: list(
    record({
      name: string,
      title: string,
      about: string,
      licence: string,
      origin: string,
      live: boolean,
      here: boolean,
      file: string,
      rows: integer,
      from: nullable(number),
      to: nullable(number),
      minutes: nullable(number),
      opens: nullable(record({ window: pair, instant: number, map: record({ x: number, y: number, zoom: number }) })),
      queries: list(record({ name: string, description: string })),
    }),
  ),
});
export type Sample = ReturnType<typeof samplePage>["results"][number];
export const STATE_WORDS: Record<Upload["state"], string> = {
  uploading: t("Being uploaded"),
  ready: t("Waits for its feed"),
  reading: t("Being read"),
  sending: t("Being loaded"),
  paused: t("Paused"),
  done: t("Loaded"),
  cancelled: t("Cancelled"),
  failed: t("Failed"),
};

/**
 * The name that all rows have because no column names their things; null when one does, or when
 * there is a single row.
 */
export function nameOfAll(found: Inspection): string | null {
  return found.reading.entity.length === 0 && found.good > 1 ? found.reading.thing : null;
}

/**
 * Keys that change how the file is parsed: its columns may change, so choices
 * about columns are dropped.
 */
const LAYOUT = ["kind", "encoding", "delimiter", "header", "sheet"] as const;
const PLACES = ["time", "entity", "x", "y", "event", "place_format", "crs"] as const;
export type Chosen = Partial<Reading>;

/** The choices after `change`: the server guesses everything else again. */
export function afterChange(chosen: Chosen, change: Chosen): Chosen {
  const keys = Object.keys(change) as (keyof Reading)[];
  if (keys.some((key) => (LAYOUT as readonly string[]).includes(key))) {
    const kept = Object.fromEntries(
      LAYOUT.filter((key) => chosen[key] !== undefined && !keys.includes("kind")).map((key) => [key, chosen[key]]),
    );
    return { ...kept, ...change };
  }
  const next = { ...chosen, ...change };
  // A column chosen as the time is no longer an attribute: the list is guessed again.
  if (keys.some((key) => (PLACES as readonly string[]).includes(key)) && !keys.includes("attributes")) delete next.attributes;
  if ((keys.includes("x") || keys.includes("y")) && !keys.includes("place_format")) delete next.place_format;
  if (keys.includes("time") && !keys.includes("time_format")) delete next.time_format;
  if (next.attributes !== undefined) next.attributes = next.attributes.filter(({ source }) => !placesOf(next).has(source));
  return next;
}

/**
 * The columns chosen as entity, time, place or event. The reader may change an attribute before the
 * answer to such a choice has come: the form then still lists the chosen column.
 */
function placesOf({ entity = [], time = [], x = "", y = "", event = "" }: Chosen): ReadonlySet<string> {
  return new Set([...entity, ...time, x, y, event]);
}

/** A feed name from the file name. */
export function feedName(file: string): string {
  const plain = withoutAccents(plainName(file))
    .replace(/[^a-z0-9_-]+/g, "-")
    .replace(/^[^a-z]+|-+$/g, "");
  return plain.slice(0, 63) || "feed";
}

/**
 * Columns of the file that the feed cannot use, or only in another form: sentences for the reader,
 * worst first.
 */
export function differences(
  { into, from, to, reading }: Pick<Inspection, "into" | "from" | "to" | "reading">,
  clock: (t: number) => string,
): string[] {
  if (into === null) return [];
  const sentences: string[] = [];
  const first = into.from;
  if (!into.wall_clock && first !== null && from !== null && to !== null && from < first)
    sentences.push(
      to < first
        ? t("The sample is older than the feed: rows before {first} are left out. Create a new feed for older files.", {
            first: clock(first),
          })
        : t("Rows before {first} are left out: the feed's clock has passed them.", { first: clock(first) }),
    );
  if (!into.wall_clock && first !== null && from !== null && into.ahead !== null && from > first + into.ahead)
    sentences.push(
      t("The file begins further ahead than the feed allows: its rows may become dead letters. Change that in the feed's settings first."),
    );
  if (into.missing.length > 0) sentences.push(t("The file has no values for {missing}: it stays empty.", { missing: names(into.missing) }));
  if (into.left_out.length > 0)
    sentences.push(
      t("The feed has no column for {leftout}: left out. To keep it, add a column in the feed's settings first.", {
        leftout: names(into.left_out),
      }),
    );
  if (into.wall_clock) sentences.push(t("The feed uses the wall clock: the first row happens now."));
  if (into.remembered && reading.time.length > 0) sentences.push(t("The file is read as the last one was, where it has the same columns."));
  return sentences;
}

function names(all: readonly string[]): string {
  return all.length < 2 ? all.join("") : t("{some} and {last}", { some: all.slice(0, -1).join(", "), last: all[all.length - 1]! });
}

/** `name`, or the first free name made of it and a number; `taken` are names of feeds. */
export function freeFeedName(name: string, taken: readonly string[]): string {
  for (let i = 1; ; i++) {
    const tried = i === 1 ? name : `${name.slice(0, 58)}-${i}`;
    if (!taken.includes(tried)) return tried;
  }
}

/** A feed title from the file name: "liverpool_route-14.csv.gz" becomes "Liverpool route 14". */
export function feedTitle(file: string): string {
  const words = plainName(file)
    .replace(/[_\s]+|(?<=\p{L})-(?=\p{L}|\d)/gu, " ")
    .trim();
  return words === "" ? file : `${words[0]!.toUpperCase()}${words.slice(1)}`.slice(0, 100);
}

/** The name without the suffixes of its format. */
function plainName(file: string): string {
  return file.replace(/(\.[a-z][a-z0-9]{0,7}){1,2}$/i, "");
}

/** The progress of a file, from 0 to 1: reading is half of it. */
export function progress(row: Upload): number {
  if (row.state === "uploading") return row.size === 0 ? 0 : row.offset / row.size;
  if (row.state === "done") return 1;
  return row.rows === null || row.rows === 0 ? 0 : row.position / row.rows;
}

/** "up to 5 s", "10 min to 15 min": the bars of the histogram of intervals. */
export function intervalLabel(upTo: number | null, before: number | null): string {
  if (upTo === null) return t("over {span}", { span: span(before ?? 0) });
  return t("to {span}", { span: span(upTo) });
}

function span(seconds: number): string {
  if (seconds >= 86_400) return `${seconds / 86_400} d`;
  if (seconds >= 3600) return `${seconds / 3600} h`;
  return seconds >= 60 ? `${seconds / 60} min` : `${formatNumber(seconds)} s`;
}

/** UTM with an unknown zone: no row is read before the zone is chosen. */
export const UTM = "UTM";

export const PLACE_FORMATS: readonly (readonly [string, string])[] = [
  ["numbers", t("Two columns of numbers")],
  ["e7", t("Two columns, ten millionths of a degree (E7)")],
  ["e6", t("Two columns, millionths of a degree (E6)")],
  ["lat_lon", t("One column, latitude first: 52.5, 13.4")],
  ["lon_lat", t("One column, longitude first: 13.4, 52.5")],
  ["wkt", t("One column, WKT: POINT (13.4 52.5)")],
  ["wkb", t("One column, WKB, as in GeoParquet")],
];

/** Whether one column holds both coordinates. */
export function isInOne(format: string): boolean {
  return ["lat_lon", "lon_lat", "wkt", "wkb"].includes(format);
}

export const CRS_CHOICES: readonly (readonly [string, string])[] = [
  ["EPSG:4326", t("Longitude and latitude")],
  ["EPSG:3857", t("Web Mercator (metres)")],
  ["EPSG:27700", t("British National Grid")],
  ["utm", t("UTM, a zone")],
  ["other", t("Another system, by its EPSG code")],
  ["plane", t("A plane: leave them as they are")],
];

/** Zone and hemisphere of a UTM system of WGS 84; null for another system. */
export function utmOf(crs: string): { zone: number; south: boolean } | null {
  const found = /^EPSG:32([67])(\d\d)$/.exec(crs);
  const zone = Number(found?.[2] ?? 0);
  return found === null || zone < 1 || zone > 60 ? null : { zone, south: found[1] === "7" };
}

export function utmCrs(zone: number, south: boolean): string {
  return `EPSG:32${south ? 7 : 6}${String(zone).padStart(2, "0")}`;
}

export const TIME_FORMATS: readonly (readonly [string, string])[] = [
  ["iso", "ISO 8601: 2026-01-31T14:05:00Z"],
  ["epoch_s", t("Seconds since 1970")],
  ["epoch_ms", t("Milliseconds since 1970")],
  ["epoch_us", t("Microseconds since 1970")],
  ["epoch_ns", t("Nanoseconds since 1970")],
  ["ticks", t("Ticks, such as frames")],
  ["%d/%m/%Y %H:%M:%S", "31/01/2026 14:05:00"],
  ["%d/%m/%Y %H:%M", "31/01/2026 14:05"],
  ["%m/%d/%Y %H:%M:%S", "01/31/2026 14:05:00"],
  ["%m/%d/%Y %H:%M", "01/31/2026 14:05"],
  ["%d/%m/%Y %I:%M:%S %p", "31/01/2026 02:05:00 PM"],
  ["%m/%d/%Y %I:%M:%S %p", "01/31/2026 02:05:00 PM"],
  ["%d.%m.%Y %H:%M:%S", "31.01.2026 14:05:00"],
  ["%d.%m.%Y %H:%M", "31.01.2026 14:05"],
  ["%Y%m%d%H%M%S", "20260131140500"],
];
