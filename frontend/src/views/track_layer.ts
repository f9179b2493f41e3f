/** Ways that entities took, and the events that explain an answer. */

import type { EvidenceItem, Track } from "../data/shapes";
import { token } from "../lib/colours";
import { CanvasLayer, type CanvasFrame, type Project } from "./canvas_layer";

export interface DrawnTrack {
  track: Track;
  colour: string;
  /** The part of event time to bring out, both ends included; null for all of it. */
  from: number | null;
  to: number | null;
}

export class TrackLayer extends CanvasLayer {
  private tracks: DrawnTrack[] = [];
  private evidence: EvidenceItem[] = [];
  private halo = token("--map-halo");
  private accent = token("--accent");

  constructor(private readonly project: Project) {
    super("tracks");
  }

  themeChanged(): void {
    this.halo = token("--map-halo");
    this.accent = token("--accent");
    this.requestDraw();
  }

  set(tracks: DrawnTrack[], evidence: EvidenceItem[]): void {
    this.tracks = tracks;
    this.evidence = evidence;
    this.requestDraw();
  }

  protected override draw(frame: CanvasFrame): void {
    for (const drawn of this.tracks) {
      this.line(frame, drawn, -Infinity, Infinity, 2, 0.45);
      if (drawn.from !== null || drawn.to !== null) this.line(frame, drawn, drawn.from ?? -Infinity, drawn.to ?? Infinity, 4, 1);
    }
    for (const item of this.evidence) this.dot(frame, item);
  }

  private line({ context, k, ox, oy }: CanvasFrame, { track, colour }: DrawnTrack, from: number, to: number, width: number, alpha: number): void {
    context.beginPath();
    let last: [number, number] | null = null;
    for (const [t, x, y] of track.points) {
      if (t < from || t > to) continue;
      const [px, py] = this.project(x, y);
      const at: [number, number] = [px * k - ox, py * k - oy];
      if (last === null) context.moveTo(...at);
      else context.lineTo(...at);
      last = at;
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

  private dot({ context, k, ox, oy }: CanvasFrame, { x, y }: EvidenceItem): void {
    if (x === null || y === null) return;
    const [px, py] = this.project(x, y);
    context.beginPath();
    context.arc(px * k - ox, py * k - oy, 6, 0, 2 * Math.PI);
    context.fillStyle = this.halo;
    context.fill();
    context.strokeStyle = this.accent;
    context.lineWidth = 2.5;
    context.stroke();
  }
}
