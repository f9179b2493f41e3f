/** Where the parts of the live page stand. */

import { h, icon, iconButton } from "../../lib/dom";
import { splitter } from "../splitter_view";

/** Page widths (CSS pixels) at which the panel of queries is open from the start. */
const WIDE_PX = 1180;

export interface FrameParts {
  map: HTMLElement;
  tip: HTMLElement;
  boxButton: HTMLElement;
  halfDone: HTMLElement;
  panel: HTMLElement;
  drawer: HTMLElement;
  timeBar: HTMLElement;
  answers: HTMLElement;
  newQueryUrl: string;
  /** Open or close the panel of queries. */
  onSide: () => void;
  onFitAll: () => void;
}

export function liveFrame({ map, tip, boxButton, halfDone, panel, drawer, timeBar, answers, newQueryUrl, onSide, onFitAll }: FrameParts): HTMLElement {
  const tools = h(
    "div",
    { class: "map-tools" },
    h("div", { class: "button-group" }, iconButton("Queries", "layers", { onClick: onSide }), boxButton, iconButton("Everything in view", "maximize", { onClick: onFitAll })),
    h("a", { class: "button button-icon", href: newQueryUrl, "aria-label": "New query", title: "New query" }, icon("plus")),
  );
  const centre = h("div", { class: "live-centre" }, h("div", { class: "live-map" }, map, tools, halfDone, tip));
  centre.append(splitter(centre), h("section", { class: "live-timeline", "aria-label": "Answers over time" }, timeBar, answers));
  const body = h("div", { class: "live-body", "data-side": innerWidth > WIDE_PX ? "open" : "closed" }, panel, centre, drawer);
  return body;
}

/** The panel of queries: beside the map on a wide page, over it on a narrow one. */
export function toggleSide(body: HTMLElement): void {
  body.dataset["side"] = isSideOpen(body) ? "closed" : "open";
}

export function isSideOpen(body: HTMLElement): boolean {
  return body.dataset["side"] === "open";
}
