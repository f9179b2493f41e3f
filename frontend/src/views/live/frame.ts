/** The layout of the live page. */

import { t } from "../../lib/texts";
import { h, icon, iconButton } from "../../lib/dom";
import { splitter } from "../splitter_view";

/** Page widths (CSS pixels) at which the panel of queries is open from the start. */
const WIDE_PX = 1180;

export interface FrameParts {
  map: HTMLElement;
  tip: HTMLElement;
  boxButton: HTMLElement;
  /** The selected entity. */
  entity: HTMLElement[];
  panel: HTMLElement;
  drawer: HTMLElement;
  timeBar: HTMLElement;
  answers: HTMLElement;
  newQueryUrl: string;
  /** Open or close the panel of queries. */
  onSide: () => void;
  onFitAll: () => void;
}

export function liveFrame({
  map,
  tip,
  boxButton,
  entity,
  panel,
  drawer,
  timeBar,
  answers,
  newQueryUrl,
  onSide,
  onFitAll,
}: FrameParts): HTMLElement {
  const tools = h(
    "div",
    { class: "map-tools" },
    h(
      "div",
      { class: "button-group" },
      iconButton(t("Show or hide the queries"), "list-filter", { onClick: onSide }),
      boxButton,
      iconButton(t("Everything in view"), "maximize", { onClick: onFitAll }),
    ),
    h("a", { class: "button new-query", href: newQueryUrl }, icon("waypoints"), t("New query")),
  );
  const mapArea = h("div", { class: "live-map" }, map, tools, h("div", { class: "map-side" }, ...entity), tip);
  const centre = h("div", { class: "live-centre" }, mapArea);
  centre.append(splitter(centre), h("section", { class: "live-timeline", "aria-label": t("Answers over time") }, timeBar, answers));
  // Messages are shown over the map, where they cover neither rows nor the controls of a panel.
  const messages = document.getElementById("toasts");
  if (messages !== null) mapArea.append(messages);
  const body = h("div", { class: "live-body", "data-side": innerWidth > WIDE_PX ? "open" : "closed" }, panel, centre, drawer);
  return body;
}

/** Skip links, first on the page: past a hundred queries to the map, timeline and so on. */
export function skipLinks(body: HTMLElement): HTMLElement {
  const to = (text: string, selector: string): HTMLElement =>
    h("button", { type: "button", class: "skip", onClick: () => body.querySelector<HTMLElement>(selector)?.focus() }, text);
  return h("div", { class: "skip-links" }, to(t("Skip to the map"), ".map-canvas"), to(t("Skip to the timeline"), ".timeline-canvas"));
}

/** Moves messages back to their default place. */
export function releaseMessages(): void {
  const messages = document.getElementById("toasts");
  if (messages !== null) document.body.append(messages);
}

/** The panel of queries: next to the map on a wide page, over it on a narrow one. */
export function toggleSide(body: HTMLElement): void {
  body.dataset["side"] = isSideOpen(body) ? "closed" : "open";
}

export function isSideOpen(body: HTMLElement): boolean {
  return body.dataset["side"] === "open";
}
