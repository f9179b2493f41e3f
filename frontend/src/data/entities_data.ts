/** Places of all entities in columns, with a short trail each: what the map's canvas reads at every frame. */

import type { Position } from "./shapes";

/** Samples kept of an entity's way. */
export const TRAIL = 16;

export class EntitiesData {
  ids: string[] = [];
  /** Base coordinates: pixels of the map at zoom 0. */
  px = new Float64Array(0);
  py = new Float64Array(0);
  t = new Float64Array(0);
  /** Heading in radians on the screen, 0 to the right; NaN before the first move. */
  heading = new Float32Array(0);
  /** Ring of the last places, [x, y] pairs in base coordinates, `TRAIL` for each entity. */
  trail = new Float64Array(0);
  /** How many places of the ring are taken, and where the next goes. */
  trailLength = new Uint8Array(0);
  private trailNext = new Uint8Array(0);
  private readonly index = new Map<string, number>();

  constructor(private readonly project: (x: number, y: number) => [number, number]) {}

  get count(): number {
    return this.ids.length;
  }

  indexOf(id: string): number | null {
    return this.index.get(id) ?? null;
  }

  clear(): void {
    this.ids = [];
    this.index.clear();
  }

  put([id, x, y, t]: Position): void {
    let i = this.index.get(id);
    if (i === undefined) i = this.append(id);
    else if (t < this.t[i]!) return;
    const [px, py] = this.project(x, y);
    const isMoved = this.trailLength[i] === 0 || px !== this.px[i] || py !== this.py[i];
    if (isMoved) {
      if (this.trailLength[i]! > 0) this.heading[i] = Math.atan2(py - this.py[i]!, px - this.px[i]!);
      const at = (i * TRAIL + this.trailNext[i]!) * 2;
      this.trail[at] = px;
      this.trail[at + 1] = py;
      this.trailNext[i] = (this.trailNext[i]! + 1) % TRAIL;
      this.trailLength[i] = Math.min(TRAIL, this.trailLength[i]! + 1);
    }
    this.px[i] = px;
    this.py[i] = py;
    this.t[i] = t;
  }

  /** Calls `point` for each place of the trail, oldest first. */
  eachTrailPoint(i: number, point: (x: number, y: number) => void): void {
    const length = this.trailLength[i]!;
    for (let n = length; n > 0; n--) {
      const at = (i * TRAIL + ((this.trailNext[i]! - n + TRAIL * 2) % TRAIL)) * 2;
      point(this.trail[at]!, this.trail[at + 1]!);
    }
  }

  private append(id: string): number {
    const i = this.ids.length;
    if (i >= this.px.length) this.grow(Math.max(256, this.px.length * 2));
    this.ids.push(id);
    this.index.set(id, i);
    this.heading[i] = NaN;
    this.trailLength[i] = 0;
    this.trailNext[i] = 0;
    this.t[i] = -Infinity;
    return i;
  }

  private grow(size: number): void {
    const bigger = <T extends Float64Array | Float32Array | Uint8Array>(made: T, from: T): T => {
      made.set(from);
      return made;
    };
    this.px = bigger(new Float64Array(size), this.px);
    this.py = bigger(new Float64Array(size), this.py);
    this.t = bigger(new Float64Array(size), this.t);
    this.heading = bigger(new Float32Array(size), this.heading);
    this.trail = bigger(new Float64Array(size * TRAIL * 2), this.trail);
    this.trailLength = bigger(new Uint8Array(size), this.trailLength);
    this.trailNext = bigger(new Uint8Array(size), this.trailNext);
  }
}

/** Points on a grid of square cells, for "what is here?": rebuilt whenever the points have moved. */
export class PointGrid {
  private readonly cells = new Map<number, number[]>();

  constructor(private readonly cell: number) {}

  clear(): void {
    this.cells.clear();
  }

  add(i: number, x: number, y: number): void {
    const key = this.key(Math.floor(x / this.cell), Math.floor(y / this.cell));
    const list = this.cells.get(key);
    if (list) list.push(i);
    else this.cells.set(key, [i]);
  }

  /** Candidates of the cells around a point, to be measured by the caller. */
  *near(x: number, y: number): Generator<number> {
    const [cx, cy] = [Math.floor(x / this.cell), Math.floor(y / this.cell)];
    for (let dx = -1; dx <= 1; dx++) {
      for (let dy = -1; dy <= 1; dy++) yield* this.cells.get(this.key(cx + dx, cy + dy)) ?? [];
    }
  }

  private key(cx: number, cy: number): number {
    return (cx + 0x8000) * 0x10000 + (cy + 0x8000);
  }
}
