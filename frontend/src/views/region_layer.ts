/**
 * Regions on one canvas: thousands stay smooth because each is converted to base coordinates once.
 */

import { rings, type Geometry } from "../lib/regions";
import { token } from "../lib/colours";
import { CanvasLayer, FrontedLayer, type CanvasFrame, type Project } from "./canvas_layer";
import { FONT, haloText } from "./canvas_marks";

export interface DrawnRegion {
  id: string;
  name: string;
  geometry: Geometry;
  /** Null: the neutral region colour. */
  colour: string | null;
}

interface Prepared {
  region: DrawnRegion;
  /** One array per ring: x, y, x, y, ... in base coordinates. */
  rings: Float64Array[];
  box: [number, number, number, number];
}

/**
 * Above this many regions in the window small ones are drawn as plain spots: their outlines
 * would take most of the time.
 */
const MOST_OUTLINES = 1000;
/** CSS pixels: the maximum size of a small region. */
const SMALL_PX = 24;

/**
 * The hovered regions and those of the selected answer, on a separate canvas:
 * hovering redraws only that one.
 */
class HighlightLayer extends CanvasLayer {
  items: Prepared[] = [];

  constructor(private readonly colourOf: (region: DrawnRegion) => string) {
    super("regions");
    this.canvas.dataset["layer"] = "highlight";
  }

  protected override draw(frame: CanvasFrame): void {
    for (const item of this.items) if (isVisible(item.box, frame)) paintOne(frame, item, this.colourOf(item.region), 0.26, 2.5);
  }
}

export class RegionLayer extends FrontedLayer {
  private items: Prepared[] = [];
  private byId = new Map<string, Prepared>();
  private highlighted: ReadonlySet<string> = new Set();
  protected override readonly front = new HighlightLayer((region) => region.colour ?? this.neutral);
  private neutral = token("--region");
  private ink = readInk();

  constructor(
    private readonly project: Project,
    private readonly isGeographic: boolean,
  ) {
    super("regions", 0.25);
  }

  themeChanged(): void {
    this.neutral = token("--region");
    this.ink = readInk();
    this.requestDraw();
  }

  set(regions: readonly DrawnRegion[]): void {
    this.items = regions.map((region) => this.prepare(region));
    this.byId = new Map(this.items.map((item) => [item.region.id, item]));
    this.requestDraw();
    this.bringOut();
  }

  highlight(ids: ReadonlySet<string>): void {
    const isSame = ids.size === this.highlighted.size && [...ids].every((id) => this.highlighted.has(id));
    if (isSame) return;
    this.highlighted = ids;
    this.bringOut();
  }

  private bringOut(): void {
    this.front.items = [...this.highlighted].flatMap((id) => this.byId.get(id) ?? []);
    this.front.requestDraw();
  }

  private prepare(region: DrawnRegion): Prepared {
    const box: Prepared["box"] = [Infinity, Infinity, -Infinity, -Infinity];
    const made = rings(region.geometry, this.isGeographic, 40).map((ring) => {
      const flat = new Float64Array(ring.length * 2);
      ring.forEach(([x, y], i) => {
        const [px, py] = this.project(x, y);
        flat[i * 2] = px;
        flat[i * 2 + 1] = py;
        box[0] = Math.min(box[0], px);
        box[1] = Math.min(box[1], py);
        box[2] = Math.max(box[2], px);
        box[3] = Math.max(box[3], py);
      });
      return flat;
    });
    return { region, rings: made, box };
  }

  protected override draw(frame: CanvasFrame): void {
    const visible = this.items.filter((item) => isVisible(item.box, frame));
    const isCrowded = visible.length > MOST_OUTLINES;
    const named: Prepared[] = [];
    for (const item of visible) {
      const colour = item.region.colour ?? this.neutral;
      const size = sizePx(item, frame);
      if (size < 3) spot(frame, item, colour);
      else if (isCrowded && size < SMALL_PX) paintOne(frame, item, colour, 0.4, 0);
      else paintOne(frame, item, colour, item.region.colour === null ? 0.07 : 0.12, 1.25);
      if (size > 54) named.push(item);
    }
    if (named.length < 150) for (const item of named) this.label(frame, item);
  }

  private label({ context, k, ox, oy }: CanvasFrame, { region, box }: Prepared): void {
    const x = ((box[0] + box[2]) / 2) * k - ox;
    const y = box[1] * k - oy - 6;
    context.font = `550 11px ${FONT}`;
    context.textAlign = "center";
    haloText(context, region.name, x, y, this.ink);
    context.textAlign = "start";
  }

  /** The smallest region that contains the point (base coordinates). */
  regionAt(px: number, py: number): DrawnRegion | null {
    let [best, bestArea]: [DrawnRegion | null, number] = [null, Infinity];
    for (const { region, rings: list, box } of this.items) {
      if (px < box[0] || px > box[2] || py < box[1] || py > box[3]) continue;
      const area = (box[2] - box[0]) * (box[3] - box[1]);
      if (area < bestArea && isInside(list, px, py)) [best, bestArea] = [region, area];
    }
    return best;
  }
}

function readInk() {
  return { halo: token("--map-halo"), text: token("--text-2") };
}

/** The longer side of its bounding box, in CSS pixels. */
function sizePx({ box }: Prepared, { k }: CanvasFrame): number {
  return Math.max(box[2] - box[0], box[3] - box[1]) * k;
}

function spot({ context, k, ox, oy }: CanvasFrame, { box }: Prepared, colour: string): void {
  context.globalAlpha = 0.8;
  context.fillStyle = colour;
  context.fillRect(((box[0] + box[2]) / 2) * k - ox - 1, ((box[1] + box[3]) / 2) * k - oy - 1, 2, 2);
  context.globalAlpha = 1;
}

/**
 * Each region is a separate path: one path with thousands of rings costs seconds, as every ring is
 * tested against all others.
 */
function paintOne(frame: CanvasFrame, item: Prepared, colour: string, fill: number, line: number): void {
  const { context, k, ox, oy } = frame;
  // Vertices closer than about three pixels cannot be distinguished.
  const most = Math.max(8, sizePx(item, frame));
  context.beginPath();
  for (const ring of item.rings) {
    const step = 2 * Math.max(1, Math.floor(ring.length / 2 / most));
    context.moveTo(ring[0]! * k - ox, ring[1]! * k - oy);
    for (let i = step; i < ring.length; i += step) context.lineTo(ring[i]! * k - ox, ring[i + 1]! * k - oy);
    context.closePath();
  }
  context.fillStyle = colour;
  context.globalAlpha = fill;
  context.fill("evenodd");
  if (line > 0) {
    context.globalAlpha = 0.9;
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.stroke();
  }
  context.globalAlpha = 1;
}

function isVisible(box: Prepared["box"], { k, ox, oy, width, height }: CanvasFrame): boolean {
  return box[2] * k - ox >= 0 && box[0] * k - ox <= width && box[3] * k - oy >= 0 && box[1] * k - oy <= height;
}

/**
 * Even-odd over all rings, so that holes are outside. Good enough for the pointer;
 * the engine decides exactly.
 */
function isInside(list: Float64Array[], px: number, py: number): boolean {
  let inside = false;
  for (const ring of list) {
    for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2) {
      const [xi, yi, xj, yj] = [ring[i]!, ring[i + 1]!, ring[j]!, ring[j + 1]!];
      if (yi > py !== yj > py && px < ((xj - xi) * (py - yi)) / (yj - yi) + xi) inside = !inside;
    }
  }
  return inside;
}
