/**
 * The drawn graph: nodes are moved by dragging or arrow keys; implied edges are dotted, a cycle
 * that cannot be satisfied is red.
 */

import { circlePlaces, type GraphEdge } from "../../../data/constraint_graph";
import { h, svg } from "../../../lib/dom";
import { t } from "../../../lib/texts";

/** The drawing's frame, which is scaled to the available space; CSS pixels at full size. */
const WIDTH = 760;
const HEIGHT = 440;
const NODE_WIDTH = 150;
const LINE = 15;
/** The gap between the head of an arrow and its box. */
const ARROW_GAP = 2;
/** The distance that one press of an arrow key moves a node. */
const STEP = 12;
const STEPS: Record<string, [number, number]> = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };

export interface GraphNode {
  name: string;
  lines: string[];
}

export interface GraphHandlers {
  onNode: (name: string) => void;
  onEdge: (edge: GraphEdge) => void;
}

export class GraphView {
  readonly element: HTMLElement;
  private readonly svg = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "group",
    "aria-label": t("Graph of the query"),
    class: "graph",
  });
  private readonly places = new Map<string, [number, number]>();
  private nodes: readonly GraphNode[] = [];
  private edges: readonly GraphEdge[] = [];
  private chosen: string | null = null;

  constructor(private readonly handlers: GraphHandlers) {
    this.element = h("div", { class: "graph-surface" }, this.svg);
  }

  /** `chosen`: the name of a node or the key of an edge. */
  show(nodes: readonly GraphNode[], edges: readonly GraphEdge[], chosen: string | null): void {
    const names = nodes.map(({ name }) => name);
    const isKnown = names.every((name) => this.places.has(name));
    if (!isKnown) this.arrange(names);
    for (const name of this.places.keys()) if (!names.includes(name)) this.places.delete(name);
    [this.nodes, this.edges, this.chosen] = [nodes, edges, chosen];
    this.draw();
  }

  /** Puts all nodes on a circle again. */
  arrange(names: readonly string[] = this.nodes.map(({ name }) => name)): void {
    for (const [name, place] of circlePlaces(names, WIDTH, HEIGHT)) this.places.set(name, place);
    this.draw();
  }

  rename(from: string, to: string): void {
    const place = this.places.get(from);
    if (place !== undefined) this.places.set(to, place);
  }

  private draw(): void {
    const focused =
      document.activeElement instanceof SVGElement && this.svg.contains(document.activeElement)
        ? document.activeElement.dataset["key"]
        : undefined;
    const lines = this.edges.map((edge) => this.edge(edge));
    this.svg.replaceChildren(
      arrowHeads(),
      ...lines.map(([line]) => line),
      ...this.nodes.map((node) => this.node(node)),
      ...lines.map(([, label]) => label),
    );
    if (focused !== undefined) this.svg.querySelector<SVGElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  private edge(edge: GraphEdge): [SVGElement, SVGElement] {
    const [x1, y1] = this.places.get(edge.from) ?? [0, 0];
    const [x2, y2] = this.places.get(edge.to) ?? [0, 0];
    const isInferred = edge.constraints.length === 0;
    const isChosen = edge.key === this.chosen;
    const state = `${isInferred ? " inferred" : ""}${edge.isInConflict ? " conflict" : ""}${isChosen ? " chosen" : ""}`;
    const open = (): void => this.handlers.onEdge(edge);
    const line = svg(
      "g",
      { class: `graph-edge${state}` },
      svg("line", { x1, y1, x2, y2, class: "graph-hit" }),
      svg("line", {
        x1,
        y1,
        ...towards(x1, y1, x2, y2, this.heightOf(edge.to) / 2, edge.isOrdered ? ARROW_GAP : 0),
        ...(edge.isOrdered ? { "marker-end": `url(#graph-arrow${edge.isInConflict ? "-conflict" : ""})` } : {}),
        class: "graph-line",
      }),
    );
    line.addEventListener("click", open);
    // Away from the middle, so that labels of crossing lines do not overlap.
    const [x, y] = [x1 + (x2 - x1) * 0.42, y1 + (y2 - y1) * 0.42];
    const width = Math.max(...edge.lines.map((text) => text.length), 1) * 6.3 + 14;
    const height = edge.lines.length * LINE + 6;
    const remarks = `${isInferred ? t(" (follows from the others)") : ""}${edge.isInConflict ? t(" (cannot be satisfied)") : ""}`;
    const name = t("{from} and {to}: {lines}", { from: edge.from, to: edge.to, lines: edge.lines.join(", ") + remarks });
    const label = svg(
      "g",
      {
        class: `graph-label${state}`,
        tabindex: isInferred ? -1 : 0,
        role: "button",
        "aria-label": name,
        "data-key": edge.key,
      },
      svg("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 6 }),
      // The spaces between the lines keep their words apart for assistive technology.
      ...edge.lines.flatMap((text, i) => [" ", svg("text", { x, y: y - height / 2 + 3 + LINE * (i + 0.75) }, text)]),
    );
    label.addEventListener("click", open);
    pressed(label, open);
    return [line, edge.lines.length === 0 || edge.isRepeated ? svg("g", {}) : label];
  }

  private node({ name, lines }: GraphNode): SVGElement {
    const place = this.places.get(name) ?? [WIDTH / 2, HEIGHT / 2];
    const shown = shownLines(lines);
    const height = nodeHeight(lines);
    const open = (): void => this.handlers.onNode(name);
    const node = svg(
      "g",
      {
        class: `graph-node${name === this.chosen ? " chosen" : ""}`,
        transform: `translate(${place[0]} ${place[1]})`,
        tabindex: 0,
        role: "button",
        "aria-description": t("{lines}. Arrow keys move it.", { lines: lines.join(", ") }),
        "data-key": name,
      },
      svg("rect", { x: -NODE_WIDTH / 2, y: -height / 2, width: NODE_WIDTH, height, rx: 10 }),
      svg("text", { class: "graph-name", y: -height / 2 + 19 }, name),
      ...shown.map((text, i) => svg("text", { y: -height / 2 + 20 + LINE * (i + 1) }, text.length > 22 ? `${text.slice(0, 21)}…` : text)),
    );
    pressed(node, open);
    node.addEventListener("keydown", (event) => this.nudged(event, name));
    this.dragging(node, name, open);
    return node;
  }

  private heightOf(name: string): number {
    return nodeHeight(this.nodes.find((node) => node.name === name)?.lines ?? []);
  }

  // ---- Moving

  private put(name: string, x: number, y: number): void {
    const half = NODE_WIDTH / 2;
    this.places.set(name, [Math.max(half, Math.min(WIDTH - half, x)), Math.max(30, Math.min(HEIGHT - 30, y))]);
    this.draw();
  }

  private nudged(event: KeyboardEvent, name: string): void {
    const [dx, dy] = STEPS[event.key] ?? [0, 0];
    const place = this.places.get(name);
    if ((dx === 0 && dy === 0) || place === undefined) return;
    event.preventDefault();
    this.put(name, place[0] + dx, place[1] + dy);
  }

  private dragging(node: SVGElement, name: string, open: () => void): void {
    node.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      event.preventDefault();
      node.focus();
      const start = this.place(event);
      const from = this.places.get(name) ?? [0, 0];
      let isMoved = false;
      // The node is redrawn while it moves, so the surface listens.
      const move = (next: PointerEvent): void => {
        const [x, y] = this.place(next);
        isMoved ||= Math.hypot(x - start[0], y - start[1]) > 4;
        if (isMoved) this.put(name, from[0] + x - start[0], from[1] + y - start[1]);
      };
      const end = (): void => {
        window.removeEventListener("pointermove", move);
        window.removeEventListener("pointerup", end);
        window.removeEventListener("pointercancel", end);
        if (!isMoved) open();
      };
      window.addEventListener("pointermove", move);
      window.addEventListener("pointerup", end);
      window.addEventListener("pointercancel", end);
    });
  }

  /** The pointer's position in the frame of the drawing. */
  private place(event: PointerEvent): [number, number] {
    const matrix = this.svg.getScreenCTM();
    const point =
      matrix === null
        ? new DOMPoint(event.clientX, event.clientY)
        : new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    return [point.x, point.y];
  }
}

function shownLines(lines: readonly string[]): readonly string[] {
  return lines.length > 3
    ? [...lines.slice(0, 2), t("and {count} more", { count: lines.length - 2 })]
    : lines.length === 0
      ? [t("any event")]
      : lines;
}

function nodeHeight(lines: readonly string[]): number {
  return 30 + shownLines(lines).length * LINE;
}

/**
 * The end of the line at the border of the node's box, `half` of its height,
 * less a gap for the arrow.
 */
function towards(x1: number, y1: number, x2: number, y2: number, half: number, gap: number): { x2: number; y2: number } {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const cut = Math.min((NODE_WIDTH / 2 + gap) / Math.max(1, Math.abs(dx)), (half + gap) / Math.max(1, Math.abs(dy)), 0.45);
  return { x2: x2 - dx * cut, y2: y2 - dy * cut };
}

function arrowHeads(): SVGElement {
  const head = (id: string): SVGElement =>
    svg(
      "marker",
      { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
      svg("path", { d: "M0 0L8 4L0 8z" }),
    );
  return svg("defs", {}, head("graph-arrow"), head("graph-arrow-conflict"));
}

function pressed(element: SVGElement, open: () => void): void {
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open();
  });
}
