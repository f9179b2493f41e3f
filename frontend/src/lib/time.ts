/**
 * Times and spans in a feed's unit, formatted for readers. `ms` feeds count milliseconds
 * since 1970 UTC, others ticks.
 */

import { formatNumber, language, t, tn } from "./texts";

export { formatNumber };
export type TimeUnit = "ms" | "ticks";
/** "UTC", "local" for the browser's zone, or a name of the IANA database. */
export type Zone = string;

const two = (value: number): string => String(value).padStart(2, "0");

/** Calendar fields of an instant in the zone. */
function fields(t: number, zone: Zone): { y: number; mo: number; d: number; h: number; mi: number; s: number; ms: number } {
  const date = new Date(t + zoneOffset(t, "ms", zone));
  return {
    y: date.getUTCFullYear(),
    mo: date.getUTCMonth(),
    d: date.getUTCDate(),
    h: date.getUTCHours(),
    mi: date.getUTCMinutes(),
    s: date.getUTCSeconds(),
    ms: date.getUTCMilliseconds(),
  };
}

/** As dates show them. */
export const MONTHS = Array.from({ length: 12 }, (_, month) =>
  new Intl.DateTimeFormat(language, { month: "short", timeZone: "UTC" }).format(Date.UTC(2026, month)),
);

export function formatClock(at: number, unit: TimeUnit, zone: Zone): string {
  if (unit === "ticks") return t("tick {t}", { t: formatNumber(at) });
  const f = fields(at, zone);
  return `${two(f.h)}:${two(f.mi)}:${two(f.s)}`;
}

export function formatDate(at: number, zone: Zone): string {
  const f = fields(at, zone);
  return t("{day} {month} {year}", { day: f.d, month: MONTHS[f.mo] ?? "", year: f.y });
}

function dayAndMonth(f: { mo: number; d: number }): string {
  return t("{day} {month}", { day: f.d, month: MONTHS[f.mo] ?? "" });
}

/** Date and time with the name of the zone, for tables and details. */
export function formatMoment(t: number, unit: TimeUnit, zone: Zone): string {
  if (unit === "ticks") return formatClock(t, unit, zone);
  return `${formatDate(t, zone)}, ${formatClock(t, unit, zone)}`;
}

/** The value of a datetime-local field: "2026-11-22T07:12:05". */
export function toWall(t: number, zone: Zone): string {
  const f = fields(t, zone);
  return `${String(f.y).padStart(4, "0")}-${two(f.mo + 1)}-${two(f.d)}T${two(f.h)}:${two(f.mi)}:${two(f.s)}`;
}

/**
 * The instant of this local time; the earlier one of two; null for an invalid date or time.
 */
export function fromWall(text: string, zone: Zone): number | null {
  const wall = Date.parse(`${text}Z`);
  if (!/^\d{4,6}-\d\d-\d\dT\d\d:\d\d/.test(text) || Number.isNaN(wall)) return null;
  const day = 86_400_000;
  const offsets = [zoneOffset(wall - day, "ms", zone), zoneOffset(wall + day, "ms", zone)];
  return offsets.map((offset) => wall - offset).find((t) => t + zoneOffset(t, "ms", zone) === wall) ?? wall - offsets[0]!;
}

/** The zone by its name of the IANA list. */
export function zoneId(zone: Zone): string {
  return zone === "local" ? Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC" : zone;
}

export function zoneName(zone: Zone): string {
  const options: Intl.DateTimeFormatOptions = { timeZoneName: "short" };
  if (zone !== "local") options.timeZone = zone;
  const parts = new Intl.DateTimeFormat("en-GB", options).formatToParts(new Date());
  return parts.find((part) => part.type === "timeZoneName")?.value ?? zone;
}

const STEPS: readonly [number, string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
];

/** A length of time in its two largest units: "2 min 5 s"; ticks as a plain number. */
export function formatSpan(span: number, unit: TimeUnit): string {
  if (unit === "ticks") return tn("1 tick", "{count} ticks", span);
  if (Math.abs(span) < 1000) return `${Math.round(span)} ms`;
  const parts: string[] = [];
  let rest = Math.abs(Math.round(span / 1000) * 1000);
  for (const [size, name] of STEPS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${name}`);
    if (parts.length === 2) break;
  }
  return (span < 0 ? "−" : "") + parts.join(" ");
}

/** Milliseconds in the largest unit: "15 min". */
export function formatRough(ms: number): string {
  return formatSpan(Math.round(ms / 1000) * 1000, "ms")
    .split(" ")
    .slice(0, 2)
    .join(" ");
}

/** How long ago by the wall clock, for processing times in milliseconds. */
export function formatAgo(at: number, now: number): string {
  const span = now - at;
  if (span < 5000) return t("just now");
  return t("{span} ago", { span: formatRough(Math.floor(span / 1000) * 1000) });
}

const DURATION = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;

/**
 * An ISO 8601 duration of days to seconds, or a plain number, in the unit of the
 * feed; null if it is neither.
 */
export function parseDuration(text: string | number): number | null {
  if (typeof text === "number") return text;
  if (/^\d+$/.test(text)) return Number(text);
  const match = DURATION.exec(text);
  if (match === null || text === "P" || text.endsWith("T")) return null;
  const [, days = "0", hours = "0", minutes = "0", seconds = "0"] = match;
  return Number(days) * 86_400_000 + Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(seconds) * 1000;
}

const TICK_STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000,
  3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000, 172_800_000, 604_800_000, 2_592_000_000, 31_536_000_000,
];

/** The smallest round step, in the feed's unit, that is at least `least`. */
export function axisStep(least: number, unit: TimeUnit): number {
  if (unit === "ms") return TICK_STEPS_MS.find((step) => step >= least) ?? 31_536_000_000;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) ?? power * 10;
}

/** The label of a tick of an axis whose ticks are `step` apart. */
export function axisLabel(t: number, step: number, unit: TimeUnit, zone: Zone): string {
  if (unit === "ticks") return formatNumber(t);
  const f = fields(t, zone);
  if (step >= 86_400_000) return dayAndMonth(f);
  if (f.h === 0 && f.mi === 0 && f.s === 0 && f.ms === 0) return dayAndMonth(f);
  if (step >= 60_000) return `${two(f.h)}:${two(f.mi)}`;
  if (step >= 1000) return `${two(f.h)}:${two(f.mi)}:${two(f.s)}`;
  return `${two(f.mi)}:${two(f.s)}.${String(f.ms).padStart(3, "0")}`;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/**
 * The offset of the zone at `t`, in milliseconds: added to UTC it puts round
 * hours on ticks of the axis.
 */
export function zoneOffset(t: number, unit: TimeUnit, zone: Zone): number {
  if (unit === "ticks" || zone === "UTC") return 0;
  if (zone === "local") return -new Date(t).getTimezoneOffset() * 60_000;
  let format = formats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(zone, format);
  }
  const part = Object.fromEntries(format.formatToParts(t).map(({ type, value }) => [type, Number(value)]));
  const wall = Date.UTC(part["year"]!, part["month"]! - 1, part["day"], part["hour"], part["minute"], part["second"]);
  return wall - Math.floor(t / 1000) * 1000;
}
