/**
 * Draws the timeline: axis, query rows with their density, lanes with intervals, the
 * present, the brush. Stateless.
 */

import { marksOf, numbersText, type EvidencePoint } from "../data/evidence";
import type { Interval } from "../data/interval";
import type { AnswerCounts } from "../data/answer_counts";
import type { Coverage, Period } from "../data/coverage";
import type { QueryIntervals } from "../data/intervals_data";
import { density, merge, type TimelineRow } from "../data/timeline_rows";
import { kindOf } from "../lib/families";
import { formatDate, formatNumber, type TimeUnit, type Zone } from "../lib/time";
import { axis, closedBar, cutBar, diamond, FONT, openBar, outline, playhead, retracted, revised, shortenedText } from "./canvas_marks";
import type { Ink } from "./ink";

export const AXIS_PX = 28;
const WITNESS_PX = 7;

export interface Scene {
  rows: readonly TimelineRow[];
  columns: ReadonlyMap<string, QueryIntervals>;
  colour: (query: string) => string;
  t0: number;
  t1: number;
  /** The instant that the page shows. */
  now: number;
  /** Where open intervals end for now. */
  present: number;
  /** Null if all answers are loaded. */
  counted: Counted | null;
  /** CSS pixels. */
  width: number;
  height: number;
  gutter: number;
  scroll: number;
  hovered: string | null;
  selected: Interval | null;
  /** The events of the selected answer: marked in its row with their numbers on the map. */
  witnesses: readonly EvidencePoint[];
  range: readonly [number, number] | null;
  unit: TimeUnit;
  zone: Zone;
  hoverX: number | null;
}

/**
 * The periods with loaded answers, the counts elsewhere, and the totals in the window by query.
 */
export interface Counted {
  counts: AnswerCounts | null;
  coverage: Coverage;
  totals: ReadonlyMap<string, number>;
}

const coarse = new Int32Array(257);
let counts = new Int32Array(0);

export function paint(context: CanvasRenderingContext2D, scene: Scene, ink: Ink): void {
  const { width, height, gutter } = scene;
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(gutter, 0, width - gutter, height);
  context.clip();
  // Before the first event there is no time axis to show.
  const isInTime = scene.t1 - scene.t0 > 1;
  if (isInTime) axis(context, { ...scene, left: gutter, head: AXIS_PX }, ink);
  context.restore();
  context.save();
  context.beginPath();
  context.rect(0, AXIS_PX, width, height - AXIS_PX);
  context.clip();
  for (const row of visibleRows(scene)) paintRow(context, scene, ink, row);
  context.restore();
  if (isInTime) overlay(context, scene, ink);
  context.fillStyle = ink.line;
  context.fillRect(0, AXIS_PX - 1, width, 1);
  context.fillRect(gutter - 1, 0, 1, height);
}

/** Rows inside the window, found by binary search, as there may be tens of thousands. */
export function* visibleRows({ rows, scroll, height }: Pick<Scene, "rows" | "scroll" | "height">): Generator<TimelineRow> {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle]!.top + rows[middle]!.height <= scroll) low = middle + 1;
    else high = middle;
  }
  for (let i = low; i < rows.length && rows[i]!.top < scroll + height - AXIS_PX; i++) yield rows[i]!;
}

function paintRow(context: CanvasRenderingContext2D, scene: Scene, ink: Ink, row: TimelineRow): void {
  const y = AXIS_PX + row.top - scene.scroll;
  const columns = scene.columns.get(row.query);
  if (columns === undefined) return;
  const colour = scene.colour(row.query);
  if (row.kind === "query") {
    context.fillStyle = ink.raised;
    context.fillRect(0, y, scene.width, row.height);
    context.fillStyle = ink.line;
    context.fillRect(0, y + row.height - 1, scene.width, 1);
  }
  context.save();
  context.beginPath();
  context.rect(scene.gutter, y, scene.width - scene.gutter, row.height);
  context.clip();
  if (row.kind === "query" && !isSparse(row, columns, scene)) strip(context, scene, row, columns, y, colour);
  else bars(context, scene, ink, row, columns, y, colour);
  for (const gap of scene.counted?.coverage.gaps(scene.t0, scene.t1) ?? []) unknown(context, scene, ink, row, y, colour, gap);
  context.restore();
  if (row.kind === "query") queryLabel(context, scene, ink, row, y, colour);
  else laneLabel(context, scene, ink, row, y);
}

/** Where only counts are loaded, a query's row shows them, and its lanes are hatched. */
function unknown(
  context: CanvasRenderingContext2D,
  scene: Scene,
  ink: Ink,
  row: TimelineRow,
  y: number,
  colour: string,
  [from, to]: Period,
): void {
  const scale = (scene.width - scene.gutter) / (scene.t1 - scene.t0);
  const at = (t: number): number => scene.gutter + (t - scene.t0) * scale;
  const [left, right] = [Math.max(scene.gutter, at(from)), Math.min(scene.width, at(to))];
  const counts = scene.counted?.counts ?? null;
  const sums = counts?.byQuery.get(row.query);
  const isCounted = counts !== null && counts.from <= Math.max(from, scene.t0) && counts.to >= Math.min(to, scene.t1, scene.present);
  if (row.kind === "lane" || !isCounted) {
    hatch(context, ink.line, left, y + 2, right - left, row.height - 4);
    return;
  }
  if (sums === undefined) return;
  const most = sums.reduce((greatest, count) => Math.max(greatest, count), 3);
  const room = row.height - 7;
  context.fillStyle = colour;
  context.globalAlpha = 0.72;
  sums.forEach((count, n) => {
    const [a, b] = [at(counts.from + n * counts.width), at(counts.from + (n + 1) * counts.width)];
    if (count === 0 || (a + b) / 2 < left || (a + b) / 2 >= right) return;
    const tall = Math.max(2, (count / most) * room);
    context.fillRect(Math.max(left, a), y + row.height - 3 - tall, Math.max(1, Math.min(right, b) - Math.max(left, a)), tall);
  });
  context.globalAlpha = 1;
}

function hatch(context: CanvasRenderingContext2D, colour: string, x: number, y: number, wide: number, tall: number): void {
  context.save();
  context.beginPath();
  context.rect(x, y, wide, tall);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = x - tall; at < x + wide; at += 6) {
    context.moveTo(at, y + tall);
    context.lineTo(at + tall, y);
  }
  context.stroke();
  context.restore();
}

/** A collapsed query with few visible intervals shows them; one with many shows their density. */
function isSparse(row: TimelineRow, columns: QueryIntervals, { t0, t1, present }: Scene): boolean {
  if (row.isExpanded) return false;
  if (row.items.length > 4000) return false;
  return density(row, columns, t0, t1, present, coarse) <= 1;
}

function strip(
  context: CanvasRenderingContext2D,
  scene: Scene,
  row: TimelineRow,
  columns: QueryIntervals,
  y: number,
  colour: string,
): void {
  const plot = Math.max(1, Math.floor(scene.width - scene.gutter));
  if (counts.length !== plot + 1) counts = new Int32Array(plot + 1);
  const most = density(row, columns, scene.t0, scene.t1, scene.present, counts);
  if (most === 0) return;
  const room = row.height - 7;
  context.beginPath();
  for (let x = 0; x < plot;) {
    const count = counts[x]!;
    let end = x + 1;
    while (end < plot && counts[end] === count) end += 1;
    if (count > 0) {
      const tall = Math.max(2, (count / Math.max(3, most)) * room);
      context.rect(scene.gutter + x, y + row.height - 3 - tall, end - x, tall);
    }
    x = end;
  }
  context.fillStyle = colour;
  context.globalAlpha = 0.72;
  context.fill();
  context.globalAlpha = 1;
}

function bars(
  context: CanvasRenderingContext2D,
  scene: Scene,
  ink: Ink,
  row: TimelineRow,
  columns: QueryIntervals,
  y: number,
  colour: string,
): void {
  const inset = row.kind === "query" ? 7 : 3;
  const tall = row.height - inset * 2;
  merge(row, columns, scene.t0, scene.t1, scene.width - scene.gutter, scene.present, (left, right, item, count) => {
    const x = scene.gutter + Math.max(-4, left);
    const wide = Math.max(2, Math.min(scene.width + 4, scene.gutter + right) - x);
    if (count > 1) {
      context.fillStyle = colour;
      context.globalAlpha = 0.5;
      context.fillRect(x, y + inset, wide, tall);
      context.globalAlpha = 1;
      return;
    }
    const interval = columns.intervals[item]!;
    if (interval.isMark) diamond(context, scene.gutter + left, y + row.height / 2, tall / 2 - 1, tall / 2, colour);
    else if (interval.isRetracted) retracted(context, x, y + inset, wide, tall, colour);
    else bar(context, interval, x, y + inset, wide, tall, colour);
    if (interval.revisedFrom !== null && !interval.isRetracted)
      revision(context, scene, ink, interval.revisedFrom, x + wide, y + inset, tall, colour);
    if (interval.key === scene.hovered) outline(context, ink.accent, x, y + inset, wide, tall);
    const name = columns.lanes[columns.lane[item]!];
    if (wide > 56 && row.kind === "lane" && row.label === "" && name !== undefined && !interval.isRetracted)
      caption(context, ink, name, x, y + row.height / 2, wide);
  });
  if (scene.selected?.query === row.query) chosen(context, scene, ink, scene.selected, row, columns, y);
}

/** The selected answer is highlighted, even where several are drawn as one. */
function chosen(
  context: CanvasRenderingContext2D,
  scene: Scene,
  ink: Ink,
  { key, start, end }: Interval,
  row: TimelineRow,
  columns: QueryIntervals,
  y: number,
): void {
  if (!row.items.some((item) => columns.intervals[item]!.key === key)) return;
  const at = (t: number): number => scene.gutter + ((t - scene.t0) / (scene.t1 - scene.t0)) * (scene.width - scene.gutter);
  const inset = row.kind === "query" ? 7 : 3;
  const x = Math.max(scene.gutter - 4, at(start));
  const right = Math.min(scene.width + 4, at(end ?? scene.present));
  if (right >= scene.gutter && x <= scene.width) outline(context, ink.text, x, y + inset, Math.max(2, right - x), row.height - inset * 2);
  witnesses(context, scene, ink, y + row.height / 2);
}

function bar(
  context: CanvasRenderingContext2D,
  interval: Interval,
  x: number,
  y: number,
  wide: number,
  tall: number,
  colour: string,
): void {
  if (interval.end === null) {
    openBar(context, x, y, wide, tall, colour);
    return;
  }
  if (interval.isCut) {
    cutBar(context, x, y, wide, tall, colour);
    return;
  }
  const { isPale, isLimit } = kindOf(interval.kind) ?? {};
  closedBar(context, x, y, wide, tall, colour, isPale === true ? 0.55 : 0.9);
  if (isLimit === true && wide > 6) context.fillRect(x + wide - 3, y - 1, 3, tall + 2);
}

/**
 * The end was reported earlier and has moved since: a notch at the current end,
 * dashes to the former one.
 */
function revision(
  context: CanvasRenderingContext2D,
  scene: Scene,
  ink: Ink,
  before: number,
  end: number,
  y: number,
  tall: number,
  colour: string,
): void {
  const was = Math.min(scene.width + 4, scene.gutter + ((before - scene.t0) / (scene.t1 - scene.t0)) * (scene.width - scene.gutter));
  revised(context, ink.text, was, end, y, tall, colour);
}

/** Numbered dots, as on the map: one for all that are too close. */
function witnesses(context: CanvasRenderingContext2D, scene: Scene, ink: Ink, middle: number): void {
  const at = (t: number): number => scene.gutter + ((t - scene.t0) / (scene.t1 - scene.t0)) * (scene.width - scene.gutter);
  context.font = `650 9.5px ${FONT}`;
  context.textBaseline = "middle";
  for (const { x, points } of marksOf(scene.witnesses, ({ t }) => [at(t), middle], 2 * WITNESS_PX)) {
    const text = numbersText(points);
    const wide = Math.max(2 * WITNESS_PX, context.measureText(text).width + 7);
    context.beginPath();
    context.roundRect(x - wide / 2, middle - WITNESS_PX, wide, 2 * WITNESS_PX, WITNESS_PX);
    context.fillStyle = ink.accent;
    context.fill();
    context.strokeStyle = context.fillStyle = ink.surface;
    context.lineWidth = 1.5;
    context.stroke();
    context.textAlign = "center";
    context.fillText(text, x, middle + 0.5);
    context.textAlign = "start";
  }
}

function caption(context: CanvasRenderingContext2D, ink: Ink, text: string, x: number, y: number, wide: number): void {
  context.save();
  context.beginPath();
  context.rect(x, y - 10, wide - 4, 20);
  context.clip();
  context.font = `550 10.5px ${FONT}`;
  context.textBaseline = "middle";
  context.fillStyle = ink.onBar;
  context.fillText(text, Math.max(x, 0) + 6, y + 0.5);
  context.restore();
}

function queryLabel(context: CanvasRenderingContext2D, scene: Scene, ink: Ink, row: TimelineRow, y: number, colour: string): void {
  const middle = y + row.height / 2;
  context.fillStyle = ink.raised;
  context.fillRect(0, y, scene.gutter - 1, row.height - 1);
  context.strokeStyle = ink.faint;
  context.lineWidth = 1.6;
  context.beginPath();
  if (row.isExpanded) {
    context.moveTo(9, middle - 2);
    context.lineTo(13, middle + 2);
    context.lineTo(17, middle - 2);
  } else {
    context.moveTo(11, middle - 4);
    context.lineTo(15, middle);
    context.lineTo(11, middle + 4);
  }
  context.stroke();
  context.fillStyle = colour;
  context.beginPath();
  context.roundRect(24, middle - 5, 10, 10, 3);
  context.fill();
  const number = formatNumber(scene.counted?.totals.get(row.query) ?? row.count);
  context.font = `500 11px ${FONT}`;
  context.textBaseline = "middle";
  const taken = context.measureText(number).width;
  context.fillStyle = ink.faint;
  context.fillText(number, scene.gutter - 10 - taken, middle + 0.5);
  context.font = `580 12px ${FONT}`;
  context.fillStyle = ink.text;
  shortenedText(context, row.label, 41, middle + 0.5, scene.gutter - 60 - taken);
}

function laneLabel(context: CanvasRenderingContext2D, scene: Scene, ink: Ink, row: TimelineRow, y: number): void {
  context.font = `450 11px ${FONT}`;
  context.textBaseline = "middle";
  context.fillStyle = ink.soft;
  shortenedText(context, row.label, 41, y + row.height / 2 + 0.5, scene.gutter - 50);
}

function overlay(context: CanvasRenderingContext2D, scene: Scene, ink: Ink): void {
  const { t0, t1, width, height, gutter, now, present, range, unit, zone, hoverX } = scene;
  const at = (t: number): number => gutter + ((t - t0) / (t1 - t0)) * (width - gutter);
  context.save();
  context.beginPath();
  context.rect(gutter, 0, width - gutter, height);
  context.clip();
  if (range !== null) {
    const [a, b] = [at(range[0]), at(range[1])];
    context.fillStyle = ink.accent;
    context.globalAlpha = 0.12;
    context.fillRect(a, 0, b - a, height);
    context.globalAlpha = 1;
    context.fillRect(a, 0, 1.5, height);
    context.fillRect(b - 1.5, 0, 1.5, height);
    context.fillRect(a, 0, b - a, 3);
  }
  if (now >= t0 && now <= t1) {
    const x = Math.round(at(now));
    context.fillStyle = ink.surface;
    context.globalAlpha = 0.5;
    context.fillRect(x + 1, AXIS_PX, width - x, height);
    context.globalAlpha = 1;
    const isLive = now >= present;
    context.fillStyle = isLive ? ink.critical : ink.accent;
    context.fillRect(x, AXIS_PX - 6, 1.5, height);
    if (!isLive) playhead(context, x + 0.75, AXIS_PX - 6);
  }
  if (hoverX !== null) {
    context.fillStyle = ink.soft;
    context.globalAlpha = 0.5;
    context.fillRect(hoverX, AXIS_PX, 1, height);
    context.globalAlpha = 1;
  }
  context.restore();
  if (unit === "ms") {
    context.font = `600 11px ${FONT}`;
    context.textBaseline = "middle";
    context.fillStyle = ink.soft;
    context.fillText(formatDate(t0, zone), 12, AXIS_PX / 2);
  }
}
