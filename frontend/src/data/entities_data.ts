/**
 * Positions of all entities in columns, each with a short trail: read by the
 * map's canvas for every frame.
 */

import type { Position } from "../lib/shapes";
import { GONE_PERIODS, median, SILENT_PERIODS } from "./silence";

/** The number of samples in a trail. */
export const TRAIL = 16;
/** How many intervals between reports are kept, for each entity and for the feed. */
const OWN_GAPS = 5;
const FEED_GAPS = 64;
/**
 * The minimum number of intervals for a typical one: of an entity, and of the feed before
 * any entity counts as silent.
 */
const LEAST_OWN_GAPS = 3;
const LEAST_GAPS = 20;

/** `silent`: its report is long overdue; `gone`: it is unlikely to report again. */
export type Presence = "here" | "silent" | "gone";

/** How the map marks an entity with an open answer. */
export interface EntityMark {
  colour: string;
  /** The query has high or critical severity. */
  isUrgent: boolean;
  /** The number of open answers. */
  count: number;
}

export class EntitiesData {
  ids: string[] = [];
  /** Base coordinates: pixels of the map at zoom 0. */
  px = new Float64Array(0);
  py = new Float64Array(0);
  t = new Float64Array(0);
  /** Heading in radians on the screen, 0 to the right; NaN before the first move. */
  heading = new Float32Array(0);
  /**
   * Ring buffer of the last positions, [x, y] pairs in base coordinates, `TRAIL` for each entity.
   */
  trail = new Float64Array(0);
  /** The number of positions in the ring buffer, and the index of the next one. */
  trailLength = new Uint8Array(0);
  private trailNext = new Uint8Array(0);
  /**
   * The feed's clock at its last report: not the report's own time, as an
   * entity may always be late.
   */
  private heard = new Float64Array(0);
  /**
   * Its last intervals between reports, a ring buffer of `OWN_GAPS` for each entity; their number;
   * their median, NaN of too few.
   */
  private ownGaps = new Float64Array(0);
  private gapCount = new Uint32Array(0);
  private period = new Float64Array(0);
  /** The same for all entities together: used for those with few reports. */
  private readonly gaps: number[] = [];
  private gapsSeen = 0;
  private usualPeriod = NaN;
  private clock = -Infinity;
  private readonly index = new Map<string, number>();

  /**
   * Average of its last speeds, in pixels at zoom 0 per unit of time; NaN before the second report.
   */
  private speed = new Float64Array(0);

  /**
   * `slowest`: below this speed at the base coordinate y an entity is at rest, without a heading.
   */
  constructor(
    private readonly project: (x: number, y: number) => [number, number],
    private readonly slowest: (py: number) => number = () => 0,
  ) {}

  get count(): number {
    return this.ids.length;
  }

  indexOf(id: string): number | null {
    return this.index.get(id) ?? null;
  }

  clear(): void {
    this.ids = [];
    this.index.clear();
    this.clock = -Infinity;
  }

  /** Advances the feed's clock to `t`. */
  tick(t: number): void {
    if (t > this.clock) this.clock = t;
  }

  /**
   * The clock goes back; the next tick sets it. Reports of the entities `later` are forgotten: the
   * caller puts their last ones again.
   */
  turnBack(later: Iterable<string>): void {
    this.clock = -Infinity;
    for (const id of later) {
      const i = this.index.get(id);
      if (i !== undefined) this.forget(i);
    }
  }

  presence(i: number): Presence {
    const age = (this.clock - this.heard[i]!) / this.periodOf(i);
    return age > GONE_PERIODS ? "gone" : age > SILENT_PERIODS ? "silent" : "here";
  }

  /** NaN while too little is known of the feed. */
  private periodOf(i: number): number {
    return Number.isNaN(this.period[i]) ? this.usualPeriod : this.period[i]!;
  }

  /** In base coordinates per unit of time; NaN before the second report. */
  speedOf(i: number): number {
    return this.speed[i]!;
  }

  /** Whether it moves, so that an arrow is drawn instead of a dot. */
  isMoving(i: number): boolean {
    return this.speed[i]! > this.slowest(this.py[i]!);
  }

  put([id, x, y, t]: Position): void {
    const i = this.index.get(id) ?? this.append(id);
    const [px, py] = this.project(x, y);
    if (this.t[i] === -Infinity) {
      this.heard[i] = t;
    } else if (t < this.t[i]!) {
      return;
    } else if (t > this.t[i]!) {
      this.measure(i, px, py, t - this.t[i]!);
      this.heardAgain(i, t);
    }
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

  private measure(i: number, px: number, py: number, passed: number): void {
    const speed = Math.hypot(px - this.px[i]!, py - this.py[i]!) / passed;
    this.speed[i] = Number.isNaN(this.speed[i]) ? speed : (speed + this.speed[i]!) / 2;
  }

  /** Its way during the silence is unknown: its trail starts again. */
  private heardAgain(i: number, t: number): void {
    const gap = t - this.t[i]!;
    if (gap > SILENT_PERIODS * this.periodOf(i)) {
      this.trailLength[i] = 0;
      this.heading[i] = NaN;
      this.speed[i] = NaN;
    }
    this.learn(i, gap);
    this.heard[i] = Math.max(t, this.clock);
  }

  private learn(i: number, gap: number): void {
    const own = i * OWN_GAPS;
    this.ownGaps[own + (this.gapCount[i]! % OWN_GAPS)] = gap;
    const count = ++this.gapCount[i]!;
    if (count >= LEAST_OWN_GAPS) this.period[i] = median(this.ownGaps.subarray(own, own + Math.min(count, OWN_GAPS)));
    this.gaps[this.gapsSeen++ % FEED_GAPS] = gap;
    if (this.gapsSeen >= LEAST_GAPS && this.gapsSeen % LEAST_GAPS === 0) this.usualPeriod = median(this.gaps);
  }

  /** Calls `point` for each position of the trail, oldest first. */
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
    this.forget(i);
    return i;
  }

  private forget(i: number): void {
    this.heading[i] = NaN;
    this.trailLength[i] = 0;
    this.trailNext[i] = 0;
    this.t[i] = -Infinity;
    this.gapCount[i] = 0;
    this.period[i] = NaN;
    this.speed[i] = NaN;
  }

  private grow(size: number): void {
    const bigger = <T extends Float64Array | Float32Array | Uint32Array | Uint8Array>(made: T, from: T): T => {
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
    this.heard = bigger(new Float64Array(size), this.heard);
    this.ownGaps = bigger(new Float64Array(size * OWN_GAPS), this.ownGaps);
    this.gapCount = bigger(new Uint32Array(size), this.gapCount);
    this.period = bigger(new Float64Array(size), this.period);
    this.speed = bigger(new Float64Array(size), this.speed);
  }
}

/**
 * A grid of square cells to find the points near a position: rebuilt
 * whenever the points have moved.
 */
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

  /** Candidates from the cells around a point, whose distances the caller computes. */
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
