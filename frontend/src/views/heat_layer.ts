/**
 * A grid of counts as a heat map below the entities: transparent for zero,
 * strongest for the greatest count.
 */

import { strength } from "../data/density_data";
import { CanvasLayer, type CanvasFrame, type Project } from "./canvas_layer";

export interface HeatGrid {
  counts: readonly number[];
  columns: number;
  rows: number;
  /** West, south, east, north in the feed's coordinates. */
  box: readonly [number, number, number, number];
}

/** Red, green, blue at the strengths 0, 1/3, 2/3, 1: readable on light and dark maps. */
const RAMP = [
  [60, 90, 200],
  [150, 60, 190],
  [235, 90, 60],
  [255, 205, 60],
] as const;
/** Opacity of the weakest and of the strongest cell. */
const [WEAKEST, STRONGEST] = [0.3, 0.85];

export class HeatLayer extends CanvasLayer {
  private image: HTMLCanvasElement | null = null;
  private box: HeatGrid["box"] = [0, 0, 0, 0];

  constructor(private readonly project: Project) {
    super("heat");
    this.canvas.setAttribute("aria-hidden", "true");
  }

  /** Null: nothing is drawn. `title` is the accessible name. */
  show(grid: HeatGrid | null, title = ""): void {
    this.image = grid === null ? null : painted(grid);
    if (grid !== null) this.box = grid.box;
    this.canvas.setAttribute("aria-hidden", String(grid === null));
    this.canvas.setAttribute("role", grid === null ? "none" : "img");
    this.canvas.setAttribute("aria-label", title);
    this.canvas.dataset["cells"] = String(grid?.counts.filter((count) => count > 0).length ?? 0);
    this.requestDraw();
  }

  protected override draw({ context, k, ox, oy }: CanvasFrame): void {
    if (this.image === null) return;
    const [west, south, east, north] = this.box;
    const [left, top] = this.project(west, north);
    const [right, bottom] = this.project(east, south);
    context.imageSmoothingEnabled = true;
    context.drawImage(this.image, left * k - ox, top * k - oy, (right - left) * k, (bottom - top) * k);
  }
}

function painted({ counts, columns, rows }: HeatGrid): HTMLCanvasElement | null {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d");
  if (context === null) return null;
  const image = context.createImageData(columns, rows);
  const most = counts.reduce((greatest, count) => Math.max(greatest, count), 0);
  counts.forEach((count, cell) => {
    if (count === 0) return;
    // Rows of counts begin in the south, rows of an image in the north.
    const at = 4 * ((rows - 1 - Math.floor(cell / columns)) * columns + (cell % columns));
    const power = strength(count, most);
    image.data.set([...heatColour(power), Math.round(255 * (WEAKEST + (STRONGEST - WEAKEST) * power))], at);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Red, green and blue of a strength of 0 to 1. */
function heatColour(power: number): [number, number, number] {
  const at = Math.min(RAMP.length - 1.000001, Math.max(0, power * (RAMP.length - 1)));
  const [low, high, share] = [RAMP[Math.floor(at)]!, RAMP[Math.floor(at) + 1]!, at % 1];
  const mixed = low.map((value, channel) => Math.round(value + (high[channel]! - value) * share));
  return [mixed[0]!, mixed[1]!, mixed[2]!];
}
