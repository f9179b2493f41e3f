/** Draws the sandbox's lanes on a canvas: labels, intervals (open ones hatched), moments, the lane and interval that are looked at. No state of its own. */

import { laneName, type Lane, type SandboxInterval } from "../../../data/calculus_sandbox_data";
import { axisLabel, axisStep, zoneOffset, type TimeUnit, type Zone } from "../../../lib/time";
import type { Ink } from "../../timeline_painter";

export const LANE_PX = 24;
export const HEAD_PX = 26;
const FONT = "'Inter Variable', system-ui, sans-serif";

export interface LaneScene {
  lanes: readonly Lane[];
  colour: (lane: Lane) => string;
  t0: number;
  t1: number;
  /** CSS pixels. */
  width: number;
  height: number;
  gutter: number;
  scroll: number;
  current: { lane: number; interval: SandboxInterval } | null;
  unit: TimeUnit;
  zone: Zone;
}

export function paintLanes(context: CanvasRenderingContext2D, scene: LaneScene, ink: Ink): void {
  const { width, height, gutter, scroll, lanes } = scene;
  context.clearRect(0, 0, width, height);
  axis(context, scene, ink);
  context.save();
  context.beginPath();
  context.rect(0, HEAD_PX, width, height - HEAD_PX);
  context.clip();
  const first = Math.max(0, Math.floor(scroll / LANE_PX));
  for (let i = first; i < lanes.length && HEAD_PX + i * LANE_PX - scroll < height; i++) paintLane(context, scene, ink, i);
  context.restore();
  context.fillStyle = ink.line;
  context.fillRect(0, HEAD_PX - 1, width, 1);
  context.fillRect(gutter - 1, 0, 1, height);
}

function axis(context: CanvasRenderingContext2D, { t0, t1, width, height, gutter, unit, zone }: LaneScene, ink: Ink): void {
  const plot = width - gutter;
  if (plot < 20 || t1 <= t0) return;
  const step = axisStep(((t1 - t0) / plot) * 88, unit);
  const offset = zoneOffset(t1, unit, zone);
  context.font = `500 11px ${FONT}`;
  context.textBaseline = "middle";
  for (let t = Math.ceil((t0 + offset) / step) * step - offset; t <= t1; t += step) {
    const x = Math.round(gutter + ((t - t0) / (t1 - t0)) * plot);
    context.fillStyle = ink.line;
    context.fillRect(x, HEAD_PX, 1, height);
    context.fillStyle = ink.faint;
    context.fillText(axisLabel(t, step, unit, zone), x + 4, HEAD_PX / 2);
  }
}

function paintLane(context: CanvasRenderingContext2D, scene: LaneScene, ink: Ink, place: number): void {
  const { width, gutter, scroll, t0, t1, current } = scene;
  const lane = scene.lanes[place]!;
  const y = HEAD_PX + place * LANE_PX - scroll;
  const isCurrent = current?.lane === place;
  if (isCurrent || lane.is_output) {
    context.fillStyle = ink.raised;
    context.fillRect(0, y, width, LANE_PX);
  }
  context.font = `${lane.is_output ? 620 : 450} 11.5px ${FONT}`;
  context.textBaseline = "middle";
  context.fillStyle = lane.is_output ? ink.text : ink.soft;
  clipped(context, laneName(lane), 12, y + LANE_PX / 2 + 0.5, gutter - 20);
  const colour = scene.colour(lane);
  const at = (t: number): number => gutter + ((t - t0) / (t1 - t0)) * (width - gutter);
  context.save();
  context.beginPath();
  context.rect(gutter, y, width - gutter, LANE_PX);
  context.clip();
  for (const interval of lane.intervals) {
    const left = at(interval.start);
    const right = interval.end === null ? width + 2 : at(interval.end);
    if (lane.kind === "event") diamond(context, left, y + LANE_PX / 2, 6, colour);
    else bar(context, left, y + 5, Math.max(2, right - left), LANE_PX - 10, colour, interval.end === null, lane.kind === "input");
    if (isCurrent && interval === current.interval) outline(context, ink, lane.kind === "event" ? left - 8 : left, y + 3, lane.kind === "event" ? 16 : Math.max(2, right - left), LANE_PX - 6);
  }
  context.restore();
  context.fillStyle = ink.line;
  context.fillRect(0, y + LANE_PX - 1, width, 1);
}

function bar(context: CanvasRenderingContext2D, x: number, y: number, wide: number, tall: number, colour: string, isOpen: boolean, isInput: boolean): void {
  context.fillStyle = colour;
  context.globalAlpha = isOpen ? 0.3 : isInput ? 0.5 : 0.9;
  context.beginPath();
  context.roundRect(x, y, wide, tall, Math.min(3, wide / 2));
  context.fill();
  context.globalAlpha = 1;
  if (!isOpen) return;
  // Open: hatched, for its end is not known.
  context.save();
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  for (let at = Math.floor(x / 7) * 7 - tall; at < x + wide + tall; at += 7) {
    context.moveTo(at, y + tall);
    context.lineTo(at + tall, y);
  }
  context.stroke();
  context.restore();
}

function diamond(context: CanvasRenderingContext2D, x: number, y: number, r: number, colour: string): void {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y - r);
  context.lineTo(x + r, y);
  context.lineTo(x, y + r);
  context.lineTo(x - r, y);
  context.closePath();
  context.fill();
}

function outline(context: CanvasRenderingContext2D, ink: Ink, x: number, y: number, wide: number, tall: number): void {
  context.strokeStyle = ink.text;
  context.lineWidth = 2;
  context.beginPath();
  context.roundRect(x - 1, y, wide + 2, tall, 4);
  context.stroke();
}

function clipped(context: CanvasRenderingContext2D, text: string, x: number, y: number, wide: number): void {
  let shown = text;
  if (context.measureText(text).width > wide) {
    let end = Math.max(1, Math.floor((text.length * wide) / context.measureText(text).width));
    while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > wide) end -= 1;
    shown = `${text.slice(0, end)}…`;
  }
  context.fillText(shown, x, y);
}
