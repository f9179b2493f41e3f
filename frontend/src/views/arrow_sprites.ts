/**
 * Arrows drawn once for each direction and then copied: a thousand copies cost as much as the
 * outline of fifty. Without a graphics card (measured in bench/playback.py), 2,000 outlines with a
 * halo take 36 ms of each frame and their copies 4.
 */

import { body } from "./canvas_marks";

export interface ArrowStyle {
  colour: string;
  /** The halo around the arrow, so that neighbours can be distinguished; null: none. */
  halo: string | null;
  /** CSS pixels. */
  size: number;
  /** Canvas pixels per CSS pixel. */
  ratio: number;
}

const DIRECTIONS = 64;
/** The halo's width, and how far an outline extends beyond the size. */
const [HALO_PX, ROOM_PX] = [2, 2];
/** The maximum of colours; beyond it the atlases are emptied. */
const MOST_STYLES = 128;

/**
 * Sprites in one row: the directions clockwise from the right, then the dot for
 * entities that stand still.
 */
class Atlas {
  private readonly canvas = document.createElement("canvas");
  /** Pixels of the canvas. */
  private readonly cell: number;

  constructor(private readonly style: ArrowStyle) {
    this.cell = 2 * Math.ceil((style.size * 1.25 + HALO_PX + ROOM_PX) * style.ratio);
    this.canvas.width = this.cell * (DIRECTIONS + 1);
    this.canvas.height = this.cell;
    const context = this.canvas.getContext("2d");
    if (context === null) return;
    for (let n = 0; n <= DIRECTIONS; n++) this.paint(context, n);
  }

  private paint(context: CanvasRenderingContext2D, n: number): void {
    const { colour, halo, size, ratio } = this.style;
    context.setTransform(ratio, 0, 0, ratio, (n + 0.5) * this.cell, 0.5 * this.cell);
    context.beginPath();
    body(context, 0, 0, n === DIRECTIONS ? NaN : (n / DIRECTIONS) * 2 * Math.PI, size);
    if (halo !== null) {
      context.lineJoin = "round";
      context.strokeStyle = halo;
      context.lineWidth = HALO_PX;
      context.stroke();
    }
    context.fillStyle = colour;
    context.fill();
  }

  /** On whole pixels: copies between them would be interpolated, and blurred. */
  stamp(context: CanvasRenderingContext2D, x: number, y: number, heading: number): void {
    const { cell, style } = this;
    const turn = Math.round((heading / (2 * Math.PI)) * DIRECTIONS);
    const n = Number.isNaN(heading) ? DIRECTIONS : ((turn % DIRECTIONS) + DIRECTIONS) % DIRECTIONS;
    const left = Math.round(x * style.ratio - cell / 2) / style.ratio;
    const top = Math.round(y * style.ratio - cell / 2) / style.ratio;
    context.drawImage(this.canvas, n * cell, 0, cell, cell, left, top, cell / style.ratio, cell / style.ratio);
  }
}

const atlases = new Map<string, Atlas>();

/**
 * The arrows of a style, to be copied to positions (CSS pixels); `heading` in radians, NaN for
 * entities that stand still.
 */
export function arrows(style: ArrowStyle): Atlas {
  const key = `${style.colour} ${style.halo ?? ""} ${style.size} ${style.ratio}`;
  let found = atlases.get(key);
  if (found === undefined) {
    if (atlases.size >= MOST_STYLES) atlases.clear();
    found = new Atlas(style);
    atlases.set(key, found);
  }
  return found;
}
