/**
 * The events of an answer, over everything else on the map: numbered, labelled, joined in order.
 */

import { freeSide, marksOf, numbersText, type Box, type EvidencePoint, type Mark, type Note } from "../data/evidence";
import { token } from "../lib/colours";
import { CanvasLayer, type CanvasFrame, type Project } from "./canvas_layer";
import { FONT, haloText } from "./canvas_marks";

/** CSS pixels: events closer than this share one mark. */
const REACH_PX = 16;
const MARK_PX = 9;

export class EvidenceLayer extends CanvasLayer {
  private chain: EvidencePoint[] = [];
  private names: Note[] = [];
  private describe: (point: EvidencePoint) => string = () => "";
  private ink = readInk();

  constructor(private readonly project: Project) {
    super("evidence");
  }

  themeChanged(): void {
    this.ink = readInk();
    this.requestDraw();
  }

  set(chain: EvidencePoint[], names: Note[], describe: (point: EvidencePoint) => string): void {
    this.chain = chain;
    this.names = names;
    this.describe = describe;
    this.requestDraw();
  }

  protected override draw(frame: CanvasFrame): void {
    const taken: Box[] = [];
    this.explained(frame, taken);
    for (const { text, x, y } of this.names) {
      const at = this.at(frame, x, y)!;
      this.write(frame, text, around(at[0], at[1], MARK_PX * 2), at[1], taken);
    }
  }

  private at({ k, ox, oy }: CanvasFrame, x: number | null, y: number | null): [number, number] | null {
    if (x === null || y === null) return null;
    const [px, py] = this.project(x, y);
    return [px * k - ox, py * k - oy];
  }

  private explained(frame: CanvasFrame, taken: Box[]): void {
    const marks = marksOf(this.chain, (point) => this.at(frame, point.x, point.y), REACH_PX);
    this.canvas.dataset["evidence"] = marks.map((mark) => numbersText(mark.points)).join(" ");
    if (marks.length === 0) return;
    this.joined(frame, marks);
    for (const mark of marks) taken.push(this.mark(frame, mark));
    marks.forEach((mark, i) => this.caption(frame, mark, taken[i]!, taken));
  }

  private joined({ context }: CanvasFrame, marks: readonly Mark[]): void {
    const steps = marks.flatMap((mark) => mark.points.map((point) => ({ number: point.number, mark }))).sort((a, b) => a.number - b.number);
    context.beginPath();
    steps.forEach(({ mark }, i) => (i === 0 ? context.moveTo(mark.x, mark.y) : context.lineTo(mark.x, mark.y)));
    context.setLineDash([2, 5]);
    context.lineCap = "round";
    context.strokeStyle = this.ink.text;
    context.lineWidth = 1.75;
    context.stroke();
    context.setLineDash([]);
  }

  private mark({ context }: CanvasFrame, { x, y, points }: Mark): Box {
    const text = numbersText(points);
    context.font = `650 10.5px ${FONT}`;
    const w = Math.max(MARK_PX * 2, context.measureText(text).width + 10);
    context.beginPath();
    context.roundRect(x - w / 2, y - MARK_PX, w, MARK_PX * 2, MARK_PX);
    context.fillStyle = this.ink.accent;
    context.fill();
    context.strokeStyle = this.ink.halo;
    context.lineWidth = 2;
    context.stroke();
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = this.ink.onAccent;
    context.fillText(text, x, y + 0.5);
    context.textAlign = "start";
    return around(x, y, w);
  }

  /** Next to its mark, on the first side that is free and visible; left out if there is none. */
  private caption(frame: CanvasFrame, mark: Mark, own: Box, taken: Box[]): void {
    const [first, last] = [mark.points[0]!, mark.points[mark.points.length - 1]!];
    const text = first === last ? this.describe(first) : `${this.describe(first)} … ${this.describe(last)}`;
    this.write(frame, text, own, mark.y, taken);
  }

  private write({ context, width, height }: CanvasFrame, text: string, own: Box, y: number, taken: Box[]): void {
    context.font = `600 11px ${FONT}`;
    const w = context.measureText(text).width + 4;
    const size = this._map.getSize();
    const window = { x: (width - size.x) / 2, y: (height - size.y) / 2, w: size.x, h: size.y };
    // Above and below it may be shifted, so that a long name near the edge is complete.
    const middle = Math.max(window.x, Math.min(own.x + own.w / 2 - w / 2, window.x + window.w - w));
    const sides = [
      [own.x + own.w + 3, y - 8],
      [own.x - w - 3, y - 8],
      [middle, own.y - 17],
      [middle, own.y + own.h + 1],
    ] as const;
    const box = freeSide(
      sides.map(([x, top]) => ({ x, y: top, w, h: 16 })),
      taken.filter((other) => other !== own),
      window,
    );
    if (box === null) return;
    taken.push(box);
    context.textBaseline = "middle";
    haloText(context, text, box.x + 2, box.y + 8, this.ink);
  }
}

/**
 * The box of a mark `w` wide with its halo. A name at the same point keeps this distance, so that
 * the other sides stay free.
 */
function around(x: number, y: number, w: number): Box {
  return { x: x - w / 2 - 2, y: y - MARK_PX - 2, w: w + 4, h: MARK_PX * 2 + 4 };
}

function readInk() {
  return { halo: token("--map-halo"), accent: token("--accent"), onAccent: token("--on-accent"), text: token("--text") };
}
