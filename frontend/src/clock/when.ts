/**
 * An instant in common formats: "14:00", "yesterday 14:00", "22 Nov 07:12:05", "2026-11-22 07:12",
 * "22.11.2026 07:12", "-10 min", "3 h ago"; ticks as a number.
 */

import { t } from "../lib/texts";
import { fromWall, MONTHS as SHOWN_MONTHS, toWall, type TimeUnit, type Zone } from "../lib/time";

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/**
 * Words of the reader's language, each with its English one: pages show months in it, and
 * the field's hint uses it.
 */
const OWN_WORDS: [string, string][] = [
  [t("now"), "now"],
  [t("today"), "today"],
  [t("yesterday"), "yesterday"],
  ...SHOWN_MONTHS.map((month, i): [string, string] => [month.slice(0, 3), MONTHS[i]!]),
];
const SIZES: Record<string, number> = {
  s: 1000,
  sec: 1000,
  second: 1000,
  m: 60_000,
  min: 60_000,
  minute: 60_000,
  h: 3_600_000,
  hour: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
};
const DAY = 86_400_000;

/**
 * The instant that `text` names, relative to `present`; null if invalid. A time of day without a
 * date is the last one that has passed.
 */
export function parseWhen(text: string, present: number, unit: TimeUnit, zone: Zone, words = OWN_WORDS): number | null {
  const wanted = inEnglish(text.trim().toLowerCase(), words);
  if (wanted === "now" || wanted === "live") return present;
  if (unit === "ticks") return ticks(wanted, present);
  return ago(wanted, present) ?? onDay(wanted, present, zone);
}

function inEnglish(text: string, words: [string, string][]): string {
  return text.replaceAll(/\p{L}+/gu, (word) => words.find(([own]) => word.startsWith(own.toLowerCase()))?.[1] ?? word);
}

function ticks(text: string, present: number): number | null {
  const bare = text.replace(/^tick\s*/, "").replaceAll(/[,. _]/g, "");
  if (!/^-?\d+$/.test(bare)) return null;
  return bare.startsWith("-") ? present + Number(bare) : Number(bare);
}

function ago(text: string, present: number): number | null {
  const match = /^(-)?\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?(\s+ago)?$/.exec(text);
  if (match === null || (match[1] === undefined && match[4] === undefined)) return null;
  const size = SIZES[match[3]!] ?? SIZES[`${match[3]!}s`];
  return size === undefined ? null : present - Number(match[2]) * size;
}

function onDay(text: string, present: number, zone: Zone): number | null {
  const match = /^(?:(.*?)[\s,T]+)?(\d{1,2}):(\d\d)(?::(\d\d))?$/i.exec(text);
  const [day, clock] = match === null ? [text, "00:00:00"] : [match[1], `${match[2]!.padStart(2, "0")}:${match[3]}:${match[4] ?? "00"}`];
  const date = dateOf(day, present, zone);
  if (date === null) return null;
  const found = fromWall(`${date}T${clock}`, zone);
  // A time of day that is still in the future is yesterday's.
  if (found !== null && day === undefined && found > present) return fromWall(`${dateOf("yesterday", present, zone)}T${clock}`, zone);
  return found;
}

function dateOf(day: string | undefined, present: number, zone: Zone): string | null {
  const today = toWall(present, zone).slice(0, 10);
  if (day === undefined || day === "today") return today;
  if (day === "yesterday") return toWall(present - DAY, zone).slice(0, 10);
  if (/^\d{4}-\d\d-\d\d$/.test(day)) return day;
  const dotted = /^(\d{1,2})\.\s?(\d{1,2})\.(?:\s?(\d{4}))?$/.exec(day);
  if (dotted !== null) return `${dotted[3] ?? today.slice(0, 4)}-${dotted[2]!.padStart(2, "0")}-${dotted[1]!.padStart(2, "0")}`;
  const match = /^(\d{1,2})\.?\s+([a-z]{3})[a-z]*\.?(?:\s+(\d{4}))?$/.exec(day);
  const month = match === null ? -1 : MONTHS.indexOf(match[2]!);
  if (match === null || month < 0) return null;
  return `${match[3] ?? today.slice(0, 4)}-${String(month + 1).padStart(2, "0")}-${match[1]!.padStart(2, "0")}`;
}
