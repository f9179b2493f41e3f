/** Connectors of a feed in the form of the API. */

import { boolean, dictionary, id, integer, list, nullable, number, object, oneOf, otherwise, record, string, anything } from "../lib/parse";
import { formatNumber } from "../lib/time";
import { moment } from "../lib/shapes";
import { t, tn } from "../lib/texts";

const field = record({
  name: string,
  label: string,
  type: oneOf("text", "lines", "secret", "integer", "boolean", "choice", "queries"),
  default: anything,
  required: boolean,
  hint: string,
  choices: list(record({ value: string, label: string })),
  when: nullable(record({ field: string, values: list(anything) })),
});
export type ConnectorField = ReturnType<typeof field>;

export const connectorKind = record({
  name: string,
  title: string,
  guarantee: string,
  direction: oneOf("in", "out"),
  needs_reading: boolean,
  fields: list(field),
});
export type ConnectorKind = ReturnType<typeof connectorKind>;

export const connector = record({
  id,
  name: string,
  kind: string,
  settings: object,
  reading: object,
  enabled: boolean,
  state: string,
  rate: number,
  messages: integer,
  merged: integer,
  rows: integer,
  dead: integer,
  last_error: string,
  last_error_at: otherwise(nullable(moment), null),
  last_message_at: otherwise(nullable(moment), null),
  editable: boolean,
});
export type Connector = ReturnType<typeof connector>;

export const trial = record({
  columns: list(string),
  reading: object,
  records: list(dictionary(anything)),
  rows: list(dictionary(anything)),
  dead: list(record({ reason: string, detail: string })),
  faults: list(record({ pointer: string, message: string })),
  said: string,
});
export type Trial = ReturnType<typeof trial>;

export const STATES: Record<string, [string, string]> = {
  running: [t("Running"), "badge-good"],
  starting: [t("Connecting"), "badge-accent"],
  backoff: [t("Waits, then tries again"), "badge-high"],
  stopped: [t("Stopped"), ""],
};

/** A feed's connectors that keep failing or do not run. */
export const failingSentence = (names: readonly string[]): string =>
  tn(
    "The connector {names} does not work: open Connectors to see why.",
    "The connectors {names} do not work: open Connectors to see why.",
    names.length,
    { names: names.join(", ") },
  );

/** The progress of a connector as text; `ago`: when it was last active. */
export function counted(one: Connector, direction: "in" | "out", ago: string | null): string[] {
  const rate = formatNumber(Math.round(one.rate * 10) / 10);
  if (direction === "out")
    return [
      t("{rate} answers/s", { rate }),
      tn("1 record sent", "{count} records sent", one.messages),
      ago === null ? t("nothing sent yet") : t("last {ago}", { ago }),
    ];
  return [
    t("{rate} messages/s", { rate }),
    tn("1 message", "{count} messages", one.messages),
    ...(one.merged > 0 ? [t("{merged} merged", { merged: formatNumber(one.merged) })] : []),
    tn("1 row", "{count} rows", one.rows),
    tn("1 dead letter", "{count} dead letters", one.dead),
    ago === null ? t("nothing came yet") : t("last {ago}", { ago }),
  ];
}

/** The fields that apply for the current choices. */
export function shownFields(fields: readonly ConnectorField[], typed: ReadonlyMap<string, string | boolean>): ConnectorField[] {
  return fields.filter(({ when }) => when === null || when.values.includes(typed.get(when.field)));
}

/** The ids of queries in a setting's text. */
export function chosenQueries(text: string): string[] {
  return text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
}

export function queriesText(chosen: ReadonlySet<string>): string {
  return [...chosen].sort((one, other) => Number(one) - Number(other)).join(", ");
}

export function queriesWords(count: number): string {
  if (count === 0) return t("No query is chosen: choose at least one, or all queries of the feed.");
  return tn("1 query is chosen.", "{count} queries are chosen.", count);
}

/**
 * The form's values for the API: numbers where numbers are required,
 * secrets only if they were typed.
 */
export function settingsOf(fields: readonly ConnectorField[], typed: ReadonlyMap<string, string | boolean>): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const one of fields) {
    const value = typed.get(one.name) ?? "";
    if (one.type === "secret" && value === "") continue;
    const text = typeof value === "string" ? value.trim() : "";
    found[one.name] =
      one.type === "integer" && /^-?\d+$/.test(text)
        ? Number(text)
        : one.type === "secret"
          ? value
          : typeof value === "string"
            ? text
            : value;
  }
  return found;
}

/**
 * How the columns of records are mapped; empty without a choice: then their
 * names are those of the feed.
 */
export function readingOf(typed: Readonly<Record<string, string>>, columns: readonly string[]): Record<string, unknown> {
  const given = (name: string): string => (typed[name] ?? "").trim();
  if (["entity", "time", "x", "y", "event"].every((name) => given(name) === "")) return {};
  const names = (text: string): string[] =>
    text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "");
  return {
    entity: names(given("entity")),
    time: names(given("time")),
    time_format: given("time_format") || "iso",
    x: given("x"),
    y: given("y"),
    event: given("event"),
    ...(given("place_format") === "" ? {} : { place_format: given("place_format") }),
    crs: given("crs") || "EPSG:4326",
    ...(given("zone") === "" ? {} : { zone: given("zone") }),
    ...(given("decimal") === "" ? {} : { decimal: given("decimal") }),
    attributes: columns.flatMap((column) => {
      const [name = "", type = ""] = column.split(":");
      const source = given(`attribute ${name}`);
      return source === "" ? [] : [{ source, name, type }];
    }),
  };
}
