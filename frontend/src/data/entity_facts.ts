/**
 * An entity's last report as text: its attributes, and speed and course from its
 * last two positions. Pure.
 */

import { formatTenths, t } from "../lib/texts";
import { dictionary, nullable, number, otherwise, record, string, type Parser } from "../lib/parse";
import { formatNumber, formatSpan, type TimeUnit } from "../lib/time";
import { formatSpeed } from "../lib/units";

export type Report = { event: string; t: number; x: number | null; y: number | null } & Record<string, unknown>;
export interface EntityReports {
  last: Report | null;
  before: Report | null;
}

const report: Parser<Report> = (value, path = "") => ({
  ...dictionary((one) => one)(value, path),
  ...record({ event: otherwise(string, ""), t: number, x: nullable(number), y: nullable(number) })(value, path),
});
export const entityReports: Parser<EntityReports> = record({ last: nullable(report), before: nullable(report) });

/** Common names of columns with speed and course. */
const SPEEDS = ["speed", "sog", "velocity"];
const COURSES = ["course", "cog", "heading", "bearing"];
const KNOWN = new Set(["event", "entity", "t", "t_end", "x", "y"]);
const EARTH_RADIUS_M = 6_371_008.8;

/** Metres on a geographic feed, else units of the plan. */
export function distance([x1, y1]: readonly [number, number], [x2, y2]: readonly [number, number], isGeographic: boolean): number {
  if (!isGeographic) return Math.hypot(x2 - x1, y2 - y1);
  const [a, b] = [(y1 * Math.PI) / 180, (y2 * Math.PI) / 180];
  const half = (angle: number): number => Math.sin(angle / 2) ** 2;
  return 2 * EARTH_RADIUS_M * Math.asin(Math.sqrt(half(b - a) + Math.cos(a) * Math.cos(b) * half(((x2 - x1) * Math.PI) / 180)));
}

/** Degrees clockwise from north (up on a plan), in whole degrees. */
export function course([x1, y1]: readonly [number, number], [x2, y2]: readonly [number, number], isGeographic: boolean): number {
  const wide = (x2 - x1) * (isGeographic ? Math.cos((((y1 + y2) / 2) * Math.PI) / 180) : 1);
  return (Math.round((Math.atan2(wide, y2 - y1) * 180) / Math.PI) + 360) % 360;
}

interface FeedKind {
  crs: "geographic" | "planar";
  time: TimeUnit;
}

/**
 * Rows of (name, text): the reported attributes, then speed and course from the last two positions
 * if no attribute gives them.
 */
export function entityFacts({ last, before }: EntityReports, feed: FeedKind, now: number): [string, string][] {
  if (last === null) return [];
  const ago = Math.max(0, now - last.t);
  const facts: [string, string][] = [[t("Last report"), ago === 0 ? t("now") : t("{span} ago", { span: formatSpan(ago, feed.time) })]];
  for (const [name, value] of Object.entries(last)) {
    if (!KNOWN.has(name) && value !== null && value !== "") facts.push([name, valueText(value)]);
  }
  if (last.event !== "" && last.event !== "position") facts.push([t("event"), last.event]);
  return [...facts, ...movement(last, before, feed)];
}

function movement(last: Report, before: Report | null, feed: FeedKind): [string, string][] {
  if (last.x === null || last.y === null) return [];
  const isGeographic = feed.crs === "geographic";
  const here = [last.x, last.y] as const;
  const found: [string, string][] = [[t("place"), here.map((part) => part.toFixed(isGeographic ? 5 : 1)).join(", ")]];
  if (before === null || before.x === null || before.y === null || feed.time !== "ms") return found;
  const there = [before.x, before.y] as const;
  const way = distance(there, here, isGeographic);
  const speed = way / ((last.t - before.t) / 1000);
  if (!SPEEDS.some((name) => last[name] !== undefined))
    found.push([
      t("speed"),
      isGeographic
        ? t("{speed}, by its last two places", { speed: formatSpeed(speed) })
        : t("{toFixed} a second, by its last two places", { toFixed: formatTenths(speed) }),
    ]);
  if (way > 0 && !COURSES.some((name) => last[name] !== undefined))
    found.push([t("course"), t("{there}°, by its last two places", { there: course(there, here, isGeographic) })]);
  return found;
}

function valueText(value: unknown): string {
  if (typeof value === "number") return formatNumber(Math.round(value * 100) / 100);
  return typeof value === "string" || typeof value === "boolean" ? String(value) : JSON.stringify(value);
}
