/** Types of the data of entity and region pages. Pure. */

import { boolean, dictionary, id, integer, list, nullable, number, otherwise, ParseFault, record, string, type Parser } from "../lib/parse";
import { moment } from "../lib/shapes";
import type { Track } from "../lib/shapes";
import { t } from "../lib/texts";

export const note = record({ id, entity: string, author: string, text: string, at: moment });
export type Note = ReturnType<typeof note>;

/** A watch for an entity's next report; `reported_t` null: it has not reported yet. */
export const watch = record({ feed: string, entity: string, created_at: moment, reported_t: nullable(number) });

const visit = record({ region: id, name: string, start: number, end: nullable(number) });
export type Visit = ReturnType<typeof visit>;

export const profile = record({
  entity: string,
  name: otherwise(string, ""),
  attributes: otherwise(dictionary(string), {}),
  notes: list(note),
  watch: nullable(watch),
  visited: record({ from: nullable(number), to: nullable(number), complete: boolean, visits: list(visit) }),
});
export type Profile = ReturnType<typeof profile>;

const present: Parser<readonly [string, number, number]> = (value, path = "") => {
  if (!Array.isArray(value) || value.length !== 3) throw new ParseFault(path, "[entity, since, last report]");
  return [string(value[0], path), number(value[1], path), number(value[2], path)];
};
export const activity = record({
  from: nullable(number),
  to: nullable(number),
  complete: boolean,
  inside: list(present),
  inside_count: integer,
  edges: list(number),
  entries: list(integer),
  exits: list(integer),
  dwell_edges: list(number),
  dwells: list(integer),
  median_dwell: nullable(number),
});
export type Activity = ReturnType<typeof activity>;

/** `name = value` lines as attributes, or the first invalid line. */
export function attributesFrom(text: string): { attributes: Record<string, string> } | { fault: string } {
  const attributes: Record<string, string> = {};
  for (const line of text.split("\n").map((one) => one.trim())) {
    if (line === "") continue;
    const at = line.indexOf("=");
    const [name, value] = [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    if (at <= 0 || name === "" || value === "") return { fault: t("“{line}”: write name = value.", { line }) };
    if (name in attributes) return { fault: t("“{name}” appears twice.", { name }) };
    attributes[name] = value;
  }
  return { attributes };
}

export function attributesText(attributes: Readonly<Record<string, string>>): string {
  return Object.entries(attributes)
    .map(([name, value]) => `${name} = ${value}`)
    .join("\n");
}

/**
 * The track as a GeoJSON feature: a LineString with the time of each point, or a
 * Point if there is only one.
 */
export function trackFeature({ entity, points }: Track): Record<string, unknown> {
  const coordinates = points.map(([, x, y]) => [x, y]);
  const geometry = points.length === 1 ? { type: "Point", coordinates: coordinates[0] } : { type: "LineString", coordinates };
  return { type: "Feature", properties: { entity, times: points.map(([t]) => t) }, geometry };
}
