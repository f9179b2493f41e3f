/** The meaning of the marks of timeline and map, each drawn by the code that draws it there. */

import { t } from "../../lib/texts";
import { token } from "../../lib/colours";
import { h } from "../../lib/dom";
import { body, closedBar, cutBar, diamond, openBar, playhead, retracted, revised } from "../canvas_marks";
import { openDialog } from "../dialog_view";

type Draw = (
  context: CanvasRenderingContext2D,
  ink: { colour: string; text: string; entity: string; accent: string; critical: string; halo: string },
) => void;

const [WIDE, TALL] = [72, 22];

const ring = (context: CanvasRenderingContext2D, colour: string, radius: number, width: number): void => {
  context.beginPath();
  context.arc(36, 11, radius, 0, 2 * Math.PI);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.stroke();
};

const filled = (context: CanvasRenderingContext2D, colour: string, heading: number, size = 5.6): void => {
  context.beginPath();
  body(context, 36, 11, heading, size);
  context.fillStyle = colour;
  context.fill();
};

const TIMELINE: [string, Draw][] = [
  [t("An answer that has ended"), (c, { colour }) => closedBar(c, 4, 4, 64, 14, colour, 0.9)],
  [t("An answer that still holds: hatched, up to the present"), (c, { colour }) => openBar(c, 4, 4, 64, 14, colour)],
  [t("An answer of one instant"), (c, { colour }) => diamond(c, 36, 11, 6, 7, colour)],
  [t("Several answers, too close together to be drawn separately"), (c, { colour }) => closedBar(c, 4, 4, 64, 14, colour, 0.5)],
  [t("Reported once, then withdrawn by later events: not an answer"), (c, { colour }) => retracted(c, 4, 4, 64, 14, colour)],
  [
    t("Its end was moved by later events: dashes show where it was"),
    (c, { colour, text }) => {
      closedBar(c, 4, 4, 40, 14, colour, 0.9);
      revised(c, text, 66, 44, 4, 14, colour);
    },
  ],
  [t("It was open when its query was edited or switched off, and ends there"), (c, { colour }) => cutBar(c, 4, 4, 64, 14, colour)],
  [
    t("Too many answers to fetch one by one: this shows how many begin. Zoom in for single answers"),
    (c, { colour }) => {
      c.fillStyle = colour;
      [4, 9, 14, 7, 11].forEach((tall, n) => c.fillRect(6 + n * 12, 20 - tall, 11, tall));
    },
  ],
  [
    t("The present"),
    (c, { critical }) => {
      c.fillStyle = critical;
      c.fillRect(35, 2, 2, 20);
    },
  ],
  [
    t("The instant that the page shows while it is not live"),
    (c, { accent }) => {
      c.fillStyle = accent;
      c.fillRect(35, 6, 2, 16);
      playhead(c, 36, 8);
    },
  ],
];
const MAP: [string, Draw][] = [
  [t("Moving entity"), (c, { entity }) => filled(c, entity, 0)],
  [t("Standing still, or reported only once"), (c, { entity }) => filled(c, entity, NaN)],
  [t("Silent: where it was last"), (c, { entity }) => ring(c, entity, 3, 1.25)],
  [
    t("In an answer that holds, in the colour of its query"),
    (c, { colour }) => {
      ring(c, colour, 8, 2);
      filled(c, colour, 0);
    },
  ],
  [
    t("The same, with high or critical severity: its name is shown too"),
    (c, { colour }) => {
      ring(c, colour, 9, 3);
      filled(c, colour, 0);
    },
  ],
];

export function showLegend(): void {
  const ink = {
    colour: token("--accent"),
    text: token("--text"),
    entity: token("--entity"),
    accent: token("--accent"),
    critical: token("--critical"),
    halo: token("--map-halo"),
  };
  const rows = (list: [string, Draw][]): Node[] =>
    list.flatMap(([text, draw]) => [sample((context) => draw(context, ink)), h("span", {}, text)]);
  openDialog(
    t("What the marks mean"),
    h("div", { class: "legend" }, h("h3", {}, t("On the timeline")), ...rows(TIMELINE), h("h3", {}, t("On the map")), ...rows(MAP)),
  ).foot.remove();
}

function sample(draw: (context: CanvasRenderingContext2D) => void): HTMLCanvasElement {
  const canvas = h("canvas", { width: WIDE * 2, height: TALL * 2, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  if (context !== null) {
    context.scale(2, 2);
    draw(context);
  }
  return canvas;
}
