/** Tracks of entities, and the events of an answer over them. */

import type { EvidencePoint, Note } from "../data/evidence";
import type { EvidenceItem, Track, TrackPoint } from "../lib/shapes";
import { unbroken } from "../data/silence";
import { token } from "../lib/colours";
import { FrontedLayer, type CanvasFrame, type Project } from "./canvas_layer";
import { EvidenceLayer } from "./evidence_layer";

export interface DrawnTrack {
  track: Track;
  colour: string;
  /** The part of event time to highlight, both ends included; null for all of it. */
  from: number | null;
  to: number | null;
  /** The label at the end of the part. */
  label?: string;
}

interface PartedTrack extends DrawnTrack {
  /** Parts between silences: the way during a silence is unknown. */
  parts: readonly (readonly TrackPoint[])[];
}

export class TrackLayer extends FrontedLayer {
  private tracks: PartedTrack[] = [];
  private dots: EvidenceItem[] = [];
  protected override readonly front: EvidenceLayer;
  private halo = token("--map-halo");
  private accent = token("--accent");

  constructor(private readonly project: Project) {
    super("tracks");
    this.front = new EvidenceLayer(project);
  }

  themeChanged(): void {
    this.halo = token("--map-halo");
    this.accent = token("--accent");
    this.requestDraw();
    this.front.themeChanged();
  }

  /** Shows tracks, and events as plain dots. */
  set(tracks: DrawnTrack[], dots: EvidenceItem[]): void {
    this.show(tracks, dots);
    this.front.set([], [], () => "");
  }

  /**
   * Shows tracks, and the events of one answer: numbered, labelled by `describe`, joined by lines
   * in order; `notes` are further labels.
   */
  explain(tracks: DrawnTrack[], chain: EvidencePoint[], describe: (point: EvidencePoint) => string, notes: readonly Note[] = []): void {
    this.show(tracks, []);
    this.front.set(chain, [...notes, ...tracks.flatMap(nameOf)], describe);
  }

  private show(tracks: DrawnTrack[], dots: EvidenceItem[]): void {
    this.tracks = tracks.map((drawn) => ({ ...drawn, parts: unbroken(drawn.track.points) }));
    this.dots = dots;
    this.requestDraw();
  }

  protected override draw(frame: CanvasFrame): void {
    for (const drawn of this.tracks) {
      this.line(frame, drawn, -Infinity, Infinity, 2, 0.45);
      if (drawn.from !== null || drawn.to !== null) this.line(frame, drawn, drawn.from ?? -Infinity, drawn.to ?? Infinity, 4, 1);
    }
    for (const item of this.dots) this.dot(frame, item);
  }

  private at({ k, ox, oy }: CanvasFrame, x: number | null, y: number | null): [number, number] | null {
    if (x === null || y === null) return null;
    const [px, py] = this.project(x, y);
    return [px * k - ox, py * k - oy];
  }

  private line(frame: CanvasFrame, { parts, colour }: PartedTrack, from: number, to: number, width: number, alpha: number): void {
    const { context } = frame;
    context.beginPath();
    for (const part of parts) {
      let isFirst = true;
      for (const [t, x, y] of part) {
        if (t < from || t > to) continue;
        const at = this.at(frame, x, y)!;
        if (isFirst) context.moveTo(...at);
        else context.lineTo(...at);
        isFirst = false;
      }
    }
    context.lineJoin = "round";
    context.lineCap = "round";
    if (width > 2) {
      context.strokeStyle = this.halo;
      context.lineWidth = width + 3;
      context.globalAlpha = 0.8;
      context.stroke();
    }
    context.globalAlpha = alpha;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
    context.globalAlpha = 1;
  }

  private dot(frame: CanvasFrame, item: EvidenceItem): void {
    const at = this.at(frame, item.x, item.y);
    if (at === null) return;
    const { context } = frame;
    context.beginPath();
    context.arc(...at, 6, 0, 2 * Math.PI);
    context.fillStyle = this.halo;
    context.fill();
    context.strokeStyle = this.accent;
    context.lineWidth = 2.5;
    context.stroke();
  }
}

/** The entity's name is at the end of the highlighted part of its track. */
function nameOf({ track, to, label }: DrawnTrack): Note[] {
  const last = track.points.findLast(([t]) => to === null || t <= to) ?? track.points[0];
  return last === undefined || label === undefined ? [] : [{ text: label, x: last[1], y: last[2] }];
}
