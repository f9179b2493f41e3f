/**
 * All entities of a feed on one canvas: arrows along their heading, short
 * trails, selected ones in front.
 */

import * as L from "leaflet";
import { gathered, type Cluster, type Grouping } from "../data/clusters";
import { EntitiesData, PointGrid, type EntityMark, type Presence } from "../data/entities_data";
import { token } from "../lib/colours";
import { CanvasLayer, type CanvasFrame } from "./canvas_layer";
import { arrows } from "./arrow_sprites";
import { body, FONT, haloText } from "./canvas_marks";

/**
 * Above this many entities in the window trails would hide more than they show, and cost more than
 * everything else.
 */
const MOST_TRAILS = 2500;
const TRAILS_AT_ONCE = 20;
/** Above this many an entity is drawn as a dot instead of an arrow. */
const MOST_ARROWS = 6000;
const HIT_PX = 12;
/** Above this many marked entities their names would overlap. */
const MOST_NAMES = 60;

export class EntityLayer extends CanvasLayer {
  selected: ReadonlySet<string> = new Set();
  hovered: string | null = null;
  /** The entities of the focused answer; their tracks carry their names. */
  focused: ReadonlySet<string> = new Set();
  /** The entities of answers that hold at the instant shown. */
  marks: ReadonlyMap<string, EntityMark> = new Map();
  /** An answer is selected: all other entities are dimmed. */
  isAnswerChosen = false;
  /** The entities with an answer in the brushed range; all others are dimmed. Null: no range. */
  within: ReadonlySet<string> | null = null;
  /** For orientation only: small dots, no trails. */
  isQuiet = false;
  /** How overlapping entities are drawn. */
  grouping: Grouping = "auto";
  /** The colour of the entity at an index of the data; null: all have the same. */
  colourOf: ((i: number) => string) | null = null;
  private clusters: Cluster[] = [];
  /** Indices of entities that are drawn as part of a cluster. */
  private covered: ReadonlySet<number> = new Set();
  private colours = this.readColours();
  private readonly grid = new PointGrid(HIT_PX);
  private isGridStale = true;
  private gridOf: { k: number; ox: number; oy: number } | null = null;

  constructor(private readonly data: EntitiesData) {
    super("entities");
  }

  private readColours() {
    return {
      body: token("--entity"),
      trail: token("--entity-trail"),
      halo: token("--map-halo"),
      accent: token("--accent"),
      chosen: token("--rail-mark"),
      text: token("--text"),
      surface: token("--surface"),
    };
  }

  themeChanged(): void {
    this.colours = this.readColours();
    this.requestDraw();
  }

  changed(): void {
    this.requestDraw();
  }

  protected override draw(frame: CanvasFrame): void {
    this.isGridStale = true;
    const visible = this.visible(frame);
    if (this.isQuiet) {
      this.dots(frame, visible);
      return;
    }
    const isDim = this.selected.size > 0 || this.within !== null || this.isAnswerChosen;
    frame.context.lineJoin = "round";
    const heard = visible.filter((i) => this.data.presence(i) === "here");
    const { single, clusters } = gathered(heard, this.data, frame.k, this.grouping);
    this.clusters = clusters;
    this.covered = new Set(clusters.flatMap((one) => one.members).filter((i) => !this.isInFront(this.data.ids[i]!)));
    if (single.length <= MOST_TRAILS) this.trails(frame, single, isDim ? 0.16 : 0.42);
    if (heard.length < visible.length)
      this.silent(
        frame,
        visible.filter((i) => this.data.presence(i) === "silent"),
      );
    frame.context.globalAlpha = isDim ? 0.45 : 1;
    this.painted(frame, single);
    for (const one of clusters) this.cluster(frame, one);
    frame.context.globalAlpha = 1;
    const { within } = this;
    if (within !== null)
      this.bodies(
        frame,
        heard.filter((i) => within.has(this.data.ids[i]!)),
        this.colours.accent,
      );
    this.marked(frame, isDim);
    for (const id of new Set([...this.selected, ...this.focused, ...(this.hovered === null ? [] : [this.hovered])])) this.chosen(frame, id);
  }

  /** Drawn separately, even within a cluster. */
  private isInFront(id: string): boolean {
    return this.marks.has(id) || this.selected.has(id) || this.focused.has(id) || this.hovered === id;
  }

  private painted(frame: CanvasFrame, visible: Int32Array): void {
    const { colourOf } = this;
    if (colourOf === null) {
      this.bodies(frame, visible, this.colours.body);
      return;
    }
    const byColour = new Map<string, number[]>();
    for (const i of visible) {
      const colour = colourOf(i);
      const list = byColour.get(colour);
      if (list === undefined) byColour.set(colour, [i]);
      else list.push(i);
    }
    for (const [colour, list] of byColour) this.bodies(frame, Int32Array.from(list), colour, visible.length);
  }

  /** A disc with the number of its members; a stack at one point is a square. */
  private cluster({ context, k, ox, oy }: CanvasFrame, { px, py, members, isStack }: Cluster): void {
    const [x, y] = [px * k - ox, py * k - oy];
    const text = members.length > 9999 ? `${Math.round(members.length / 1000)}k` : String(members.length);
    const radius = clusterRadius(members.length);
    context.beginPath();
    if (isStack) context.roundRect(x - radius, y - radius, 2 * radius, 2 * radius, 4);
    else context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fillStyle = this.colours.surface;
    context.fill();
    context.strokeStyle = this.colours.body;
    context.lineWidth = 2;
    context.stroke();
    context.font = `600 11px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = this.colours.text;
    context.fillText(text, x, y + 0.5);
    context.textAlign = "start";
    context.textBaseline = "alphabetic";
  }

  private visible({ k, ox, oy, width, height }: CanvasFrame): Int32Array {
    const { px, py, count } = this.data;
    const result = new Int32Array(count);
    let n = 0;
    for (let i = 0; i < count; i++) {
      const x = px[i]! * k - ox;
      const y = py[i]! * k - oy;
      if (x > -20 && y > -20 && x < width + 20 && y < height + 20 && this.data.presence(i) !== "gone") result[n++] = i;
    }
    return result.subarray(0, n);
  }

  private dots({ context, k, ox, oy }: CanvasFrame, visible: Int32Array): void {
    context.fillStyle = this.colours.body;
    context.globalAlpha = 0.5;
    for (const i of visible) context.fillRect(this.data.px[i]! * k - ox - 1.25, this.data.py[i]! * k - oy - 1.25, 2.5, 2.5);
    context.globalAlpha = 1;
  }

  private trails({ context, k, ox, oy }: CanvasFrame, visible: Int32Array, alpha: number): void {
    context.globalAlpha = alpha;
    context.strokeStyle = this.colours.trail;
    // 2,000 trails without a graphics card: in chunks and one pixel wide 4 ms; wider 33
    // ms; all in one path 60 ms.
    context.lineWidth = 1;
    for (let from = 0; from < visible.length; from += TRAILS_AT_ONCE) {
      context.beginPath();
      for (const i of visible.subarray(from, from + TRAILS_AT_ONCE)) {
        let isFirst = true;
        this.data.eachTrailPoint(i, (x, y) => {
          if (isFirst) context.moveTo(x * k - ox, y * k - oy);
          else context.lineTo(x * k - ox, y * k - oy);
          isFirst = false;
        });
      }
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** `among`: the number of entities drawn, which decides their size. */
  private bodies({ context, k, ox, oy }: CanvasFrame, visible: Int32Array, colour: string, among = visible.length): void {
    const { px, py, heading } = this.data;
    const size = among > 3000 ? 3.4 : among > 900 ? 4.2 : 5.4;
    context.fillStyle = colour;
    if (among > MOST_ARROWS) {
      for (const i of visible) context.fillRect(px[i]! * k - ox - 1.5, py[i]! * k - oy - 1.5, 3, 3);
      return;
    }
    const ratio = context.getTransform().a;
    // With thousands of entities halos would cover most of the map.
    const drawn = arrows({ colour, halo: among <= MOST_TRAILS ? this.colours.halo : null, size, ratio });
    for (const i of visible) drawn.stamp(context, px[i]! * k - ox, py[i]! * k - oy, this.data.isMoving(i) ? heading[i]! : NaN);
  }

  /** In the colour of their answer: a ring, and the name if it is severe. */
  private marked(frame: CanvasFrame, isDim: boolean): void {
    const { context, k, ox, oy, width, height } = frame;
    let names = 0;
    this.canvas.dataset["marked"] = [...this.marks.keys()].slice(0, MOST_NAMES).sort().join(" ");
    for (const [id, { colour, isUrgent, count }] of this.marks) {
      const i = this.data.indexOf(id);
      if (i === null || this.data.presence(i) === "gone" || this.selected.has(id) || this.focused.has(id)) continue;
      const [x, y] = [this.data.px[i]! * k - ox, this.data.py[i]! * k - oy];
      if (x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
      context.globalAlpha = isDim ? 0.55 : 1;
      context.beginPath();
      context.arc(x, y, isUrgent ? 10 : 8, 0, 2 * Math.PI);
      context.strokeStyle = this.colours.halo;
      context.lineWidth = isUrgent ? 5 : 4;
      context.stroke();
      context.strokeStyle = colour;
      context.lineWidth = isUrgent ? 3 : 2;
      context.stroke();
      context.beginPath();
      body(context, x, y, this.data.isMoving(i) ? this.data.heading[i]! : NaN, 5.6);
      context.fillStyle = colour;
      context.fill();
      if (isUrgent && names++ < MOST_NAMES) this.label(context, count > 1 ? `${id} · ${count}` : id, x, y);
      context.globalAlpha = 1;
    }
  }

  /** Hollow at their last position, as they may be elsewhere by now. */
  private silent({ context, k, ox, oy }: CanvasFrame, visible: Int32Array): void {
    context.beginPath();
    for (const i of visible) {
      const [x, y] = [this.data.px[i]! * k - ox, this.data.py[i]! * k - oy];
      context.moveTo(x + 3, y);
      context.arc(x, y, 3, 0, 2 * Math.PI);
    }
    context.globalAlpha = 0.5;
    context.strokeStyle = this.colours.body;
    context.lineWidth = 1.25;
    context.stroke();
    context.globalAlpha = 1;
  }

  private chosen({ context, k, ox, oy }: CanvasFrame, id: string): void {
    const i = this.data.indexOf(id);
    if (i === null) return;
    const isHere = this.data.presence(i) === "here";
    // Entities of an answer that left are shown by their tracks; selected ones
    // stay at their last position.
    if (!isHere && !this.selected.has(id)) return;
    const x = this.data.px[i]! * k - ox;
    const y = this.data.py[i]! * k - oy;
    if (isHere) {
      context.beginPath();
      this.data.eachTrailPoint(i, (px, py) => context.lineTo(px * k - ox, py * k - oy));
      context.strokeStyle = this.colours.accent;
      context.lineWidth = 2.5;
      context.stroke();
    }
    context.beginPath();
    context.arc(x, y, 11, 0, 2 * Math.PI);
    context.fillStyle = this.colours.halo;
    context.globalAlpha = 0.75;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = this.colours.accent;
    context.lineWidth = 2;
    context.setLineDash(isHere ? [] : [3, 3]);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    body(context, x, y, this.data.isMoving(i) ? this.data.heading[i]! : NaN, 6.4);
    context.fillStyle = this.colours.accent;
    context.fill();
    if (!this.focused.has(id)) this.label(context, id, x, y);
  }

  private label(context: CanvasRenderingContext2D, id: string, x: number, y: number): void {
    context.font = `600 11px ${FONT}`;
    haloText(context, id, x + 15, y + 4, this.colours);
  }

  /** The cluster under a point of the map's window (CSS pixels), as drawn last. */
  clusterAt(x: number, y: number): { ids: string[]; px: number; py: number; isStack: boolean } | null {
    const { k, ox, oy } = this.frame();
    const found = this.clusters.find(
      ({ px, py, members }) => Math.hypot(px * k - ox - x, py * k - oy - y) <= clusterRadius(members.length) + 2,
    );
    return found === undefined ? null : { ...found, ids: found.members.map((i) => this.data.ids[i]!) };
  }

  /**
   * The entity nearest to a point of the map's window (CSS pixels), at most 12 away;
   * without those drawn as clusters.
   */
  entityAt(x: number, y: number): string | null {
    const frame = this.frame();
    this.refreshGrid(frame);
    let [best, bestDistance] = [-1, HIT_PX * HIT_PX];
    for (const i of this.grid.near(x, y)) {
      const distance = (this.data.px[i]! * frame.k - frame.ox - x) ** 2 + (this.data.py[i]! * frame.k - frame.oy - y) ** 2;
      if (distance < bestDistance) [best, bestDistance] = [i, distance];
    }
    return best < 0 ? null : this.data.ids[best]!;
  }

  /** Its position at the instant shown, in the map's coordinates; null if it is not there. */
  placeOf(id: string): L.LatLng | null {
    const i = this.data.indexOf(id);
    return i === null || this.data.presence(i) === "gone" ? null : this._map.unproject(L.point(this.data.px[i]!, this.data.py[i]!), 0);
  }

  presence(id: string): Presence {
    const i = this.data.indexOf(id);
    return i === null ? "gone" : this.data.presence(i);
  }

  entitiesWithin(left: number, top: number, right: number, bottom: number): string[] {
    const { k, ox, oy } = this.frame();
    return this.data.ids.filter((_, i) => {
      if (this.data.presence(i) === "gone") return false;
      const x = this.data.px[i]! * k - ox;
      const y = this.data.py[i]! * k - oy;
      return x >= left && x <= right && y >= top && y <= bottom;
    });
  }

  private refreshGrid(frame: { k: number; ox: number; oy: number }): void {
    const isSame = this.gridOf?.k === frame.k && this.gridOf.ox === frame.ox && this.gridOf.oy === frame.oy;
    if (!this.isGridStale && isSame) return;
    this.grid.clear();
    const size = this._map.getSize();
    for (let i = 0; i < this.data.count; i++) {
      if (this.data.presence(i) === "gone" || this.covered.has(i)) continue;
      const x = this.data.px[i]! * frame.k - frame.ox;
      const y = this.data.py[i]! * frame.k - frame.oy;
      if (x > -HIT_PX && y > -HIT_PX && x < size.x + HIT_PX && y < size.y + HIT_PX) this.grid.add(i, x, y);
    }
    this.isGridStale = false;
    this.gridOf = frame;
  }
}

/** CSS pixels. */
function clusterRadius(members: number): number {
  return 9 + Math.min(11, 3 * Math.log10(members) + (members > 99 ? 2 : 0));
}
