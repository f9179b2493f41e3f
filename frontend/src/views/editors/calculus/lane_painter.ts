/**
 * Draws the sandbox's lanes on a canvas: labels, intervals (open ones hatched), instants, the lane
 * and interval that are hovered. Stateless.
 */

import { laneName, type Lane, type SandboxInterval } from "../../../data/calculus_sandbox_data";
import type { TimeUnit, Zone } from "../../../lib/time";
import { axis, clippedText, closedBar, diamond, FONT, openBar } from "../../canvas_marks";
import type { Ink } from "../../ink";

export const LANE_PX = 24;
export const HEAD_PX = 26;

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
  axis(context, { ...scene, left: gutter, head: HEAD_PX }, ink);
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
  clippedText(context, laneName(lane), 12, y + LANE_PX / 2 + 0.5, gutter - 20);
  const colour = scene.colour(lane);
  const at = (t: number): number => gutter + ((t - t0) / (t1 - t0)) * (width - gutter);
  context.save();
  context.beginPath();
  context.rect(gutter, y, width - gutter, LANE_PX);
  context.clip();
  for (const interval of lane.intervals) {
    const left = at(interval.start);
    const right = interval.end === null ? width + 2 : at(interval.end);
    const wide = Math.max(2, right - left);
    if (lane.kind === "event") diamond(context, left, y + LANE_PX / 2, 6, 6, colour);
    else if (interval.end === null) openBar(context, left, y + 5, wide, LANE_PX - 10, colour);
    else closedBar(context, left, y + 5, wide, LANE_PX - 10, colour, lane.kind === "input" ? 0.5 : 0.9);
    if (isCurrent && interval === current.interval)
      outline(context, ink, lane.kind === "event" ? left - 8 : left, y + 3, lane.kind === "event" ? 16 : wide, LANE_PX - 6);
  }
  context.restore();
  context.fillStyle = ink.line;
  context.fillRect(0, y + LANE_PX - 1, width, 1);
}

function outline(context: CanvasRenderingContext2D, ink: Ink, x: number, y: number, wide: number, tall: number): void {
  context.strokeStyle = ink.text;
  context.lineWidth = 2;
  context.beginPath();
  context.roundRect(x - 1, y, wide + 2, tall, 4);
  context.stroke();
}
