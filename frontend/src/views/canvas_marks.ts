/**
 * Marks that several canvases draw: the time axis, open intervals, instants, texts that must fit.
 */

import { axisLabel, axisStep, zoneOffset, type TimeUnit, type Zone } from "../lib/time";

export const FONT = "'Inter Variable', system-ui, sans-serif";

/** A time axis from `left` to `width`, CSS pixels; labels are in the top `head`, lines below it. */
export interface Axis {
  t0: number;
  t1: number;
  left: number;
  width: number;
  height: number;
  head: number;
  unit: TimeUnit;
  zone: Zone;
}

/** The minimum distance between two labels in CSS pixels. */
const LABEL_PX = 92;

export function axis(
  context: CanvasRenderingContext2D,
  { t0, t1, left, width, height, head, unit, zone }: Axis,
  ink: { line: string; faint: string },
): void {
  const plot = width - left;
  if (plot < 20 || t1 <= t0) return;
  const step = axisStep(((t1 - t0) / plot) * LABEL_PX, unit);
  const offset = zoneOffset(t1, unit, zone);
  context.font = `500 11px ${FONT}`;
  context.textBaseline = "middle";
  for (let t = Math.ceil((t0 + offset) / step) * step - offset; t <= t1; t += step) {
    const x = Math.round(left + ((t - t0) / (t1 - t0)) * plot);
    context.fillStyle = ink.line;
    context.globalAlpha = 0.7;
    context.fillRect(x, head, 1, height);
    context.globalAlpha = 1;
    context.fillStyle = ink.faint;
    const label = axisLabel(t, step, unit, zone);
    // A truncated number would be misleading.
    if (x + 4 + context.measureText(label).width < width) context.fillText(label, x + 4, head / 2);
  }
}

/** An interval that has ended. */
export function closedBar(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  wide: number,
  tall: number,
  colour: string,
  alpha: number,
): void {
  context.fillStyle = colour;
  context.globalAlpha = alpha;
  context.beginPath();
  context.roundRect(x, y, wide, tall, Math.min(3, wide / 2));
  context.fill();
  context.globalAlpha = 1;
}

/** An interval with an open end: hatched. */
export function openBar(context: CanvasRenderingContext2D, x: number, y: number, wide: number, tall: number, colour: string): void {
  context.fillStyle = colour;
  context.beginPath();
  context.roundRect(x, y, wide, tall, Math.min(3, wide / 2));
  context.globalAlpha = 0.3;
  context.fill();
  context.save();
  context.clip();
  context.globalAlpha = 0.9;
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  for (let at = Math.floor(x / 7) * 7 - tall; at < x + wide + tall; at += 7) {
    context.moveTo(at, y + tall);
    context.lineTo(at + tall, y);
  }
  context.stroke();
  context.restore();
  context.globalAlpha = 1;
}

/** An instant. `wide` and `tall` are half of its size. */
export function diamond(context: CanvasRenderingContext2D, x: number, y: number, wide: number, tall: number, colour: string): void {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y - tall);
  context.lineTo(x + wide, y);
  context.lineTo(x, y + tall);
  context.lineTo(x - wide, y);
  context.closePath();
  context.fill();
}

/** A text that is readable on any background, in the font of the context. */
export function haloText(context: CanvasRenderingContext2D, text: string, x: number, y: number, ink: { text: string; halo: string }): void {
  context.lineWidth = 3.5;
  // Sharp joins reach far beyond the letters.
  context.lineJoin = "round";
  context.strokeStyle = ink.halo;
  context.strokeText(text, x, y);
  context.fillStyle = ink.text;
  context.fillText(text, x, y);
}

/** The text, or its beginning and more of its end: names often differ only at their ends. */
export function shortenedText(context: CanvasRenderingContext2D, text: string, x: number, y: number, wide: number): void {
  let kept = text.length;
  let shown = text;
  while (kept > 2 && context.measureText(shown).width > wide) {
    kept = Math.min(kept - 1, Math.floor((kept * wide) / context.measureText(shown).width));
    const head = Math.max(1, Math.floor(kept / 3));
    shown = `${text.slice(0, head)}…${text.slice(text.length - Math.max(1, kept - head))}`;
  }
  context.fillText(shown, x, y);
}

/** The text, or as much of its beginning as fits into `wide`. */
export function clippedText(context: CanvasRenderingContext2D, text: string, x: number, y: number, wide: number): void {
  const whole = context.measureText(text).width;
  if (whole <= wide) {
    context.fillText(text, x, y);
    return;
  }
  let end = Math.max(1, Math.floor((text.length * wide) / whole));
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > wide) end -= 1;
  context.fillText(`${text.slice(0, end)}…`, x, y);
}

/**
 * A chevron that points along `heading`; a dot for entities that stand still or reported only once
 * (NaN). Appended to the path.
 */
export function body(context: CanvasRenderingContext2D, x: number, y: number, heading: number, r: number): void {
  if (Number.isNaN(heading)) {
    context.moveTo(x + r * 0.62, y);
    context.arc(x, y, r * 0.62, 0, 2 * Math.PI);
    return;
  }
  const c = Math.cos(heading) * r;
  const s = Math.sin(heading) * r;
  context.moveTo(x + c * 1.25, y + s * 1.25);
  context.lineTo(x - c * 0.85 - s * 0.78, y - s * 0.85 + c * 0.78);
  context.lineTo(x - c * 0.45, y - s * 0.45);
  context.lineTo(x - c * 0.85 + s * 0.78, y - s * 0.85 - c * 0.78);
  context.closePath();
}

/** Was open when its query stopped running: a jagged end. */
export function cutBar(context: CanvasRenderingContext2D, x: number, y: number, wide: number, tall: number, colour: string): void {
  const tear = Math.min(4, wide / 3);
  context.fillStyle = colour;
  context.globalAlpha = 0.9;
  context.beginPath();
  context.moveTo(x, y);
  for (let n = 0; n <= 4; n++) context.lineTo(x + wide - (n % 2 === 0 ? 0 : tear), y + (tall * n) / 4);
  context.lineTo(x, y + tall);
  context.closePath();
  context.fill();
  context.globalAlpha = 1;
}

/** Retracted: its outline, struck through. */
export function retracted(context: CanvasRenderingContext2D, x: number, y: number, wide: number, tall: number, colour: string): void {
  context.strokeStyle = colour;
  context.globalAlpha = 0.75;
  context.lineWidth = 1;
  context.setLineDash([3, 3]);
  context.strokeRect(x + 0.5, y + 0.5, Math.max(1, wide - 1), tall - 1);
  context.setLineDash([]);
  context.fillStyle = colour;
  context.fillRect(x, y + tall / 2 - 0.5, wide, 1);
  context.globalAlpha = 1;
}

/** `was`: the former end, `end`: the current one. */
export function revised(
  context: CanvasRenderingContext2D,
  notch: string,
  was: number,
  end: number,
  y: number,
  tall: number,
  colour: string,
): void {
  if (was > end + 1) {
    context.strokeStyle = colour;
    context.globalAlpha = 0.75;
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.strokeRect(end, y + 0.5, was - end, tall - 1);
    context.setLineDash([]);
    context.globalAlpha = 1;
  }
  context.fillStyle = notch;
  context.beginPath();
  context.moveTo(end - 6, y);
  context.lineTo(end, y);
  context.lineTo(end, y + 6);
  context.closePath();
  context.fill();
}

export function outline(context: CanvasRenderingContext2D, colour: string, x: number, y: number, wide: number, tall: number): void {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  context.roundRect(x - 2, y - 2, wide + 4, tall + 4, 4);
  context.stroke();
}

/** Marks the instant that the page shows while it is not the present. */
export function playhead(context: CanvasRenderingContext2D, x: number, y: number): void {
  context.beginPath();
  context.moveTo(x - 5, y - 6);
  context.lineTo(x + 5, y - 6);
  context.lineTo(x + 5, y);
  context.lineTo(x, y + 6);
  context.lineTo(x - 5, y);
  context.closePath();
  context.fill();
}
