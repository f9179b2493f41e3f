/** Connectors of a feed as the API tells and takes them. */

import { boolean, dictionary, id, integer, list, nullable, number, object, oneOf, otherwise, record, string, anything } from "../lib/parse";
import { formatNumber } from "../lib/time";
import { moment } from "./shapes";

const field = record({
  name: string,
  label: string,
  type: oneOf("text", "secret", "integer", "boolean", "choice"),
  default: anything,
  required: boolean,
  hint: string,
  choices: list(record({ value: string, label: string })),
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
  faults: list(list(string)),
  said: string,
});
export type Trial = ReturnType<typeof trial>;

export const STATES: Record<string, [string, string]> = {
  running: ["Running", "badge-good"],
  starting: ["Connecting", "badge-accent"],
  backoff: ["Waits, then tries again", "badge-high"],
  stopped: ["Stopped", ""],
};

/** What a connector has done, in words; `ago`: when it last did. */
export function counted(one: Connector, direction: "in" | "out", ago: string | null): string[] {
  const count = (n: number, what: string): string => `${formatNumber(n)} ${what}${n === 1 ? "" : "s"}`;
  const rate = formatNumber(Math.round(one.rate * 10) / 10);
  if (direction === "out")
    return [`${rate} answers/s`, `${count(one.messages, "record")} sent`, ago === null ? "nothing sent yet" : `last ${ago}`];
  return [
    `${rate} messages/s`,
    count(one.messages, "message"),
    ...(one.merged > 0 ? [`${formatNumber(one.merged)} merged`] : []),
    count(one.rows, "row"),
    count(one.dead, "dead letter"),
    ago === null ? "nothing came yet" : `last ${ago}`,
  ];
}

/** What stands in the form, as the API takes it: numbers where numbers are asked for, secrets only when they were typed in. */
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

/** How the columns of records are read; empty when nothing was chosen: then they are named as the feed's are. */
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
    crs: given("crs") || "EPSG:4326",
    attributes: columns.flatMap((column) => {
      const [name = "", type = ""] = column.split(":");
      const source = given(`attribute ${name}`);
      return source === "" ? [] : [{ source, name, type }];
    }),
  };
}
