/** Keyboard shortcuts of the live page, and the list of them. */

import { t } from "../../lib/texts";
import { h, isTyping } from "../../lib/dom";
import { openDialog } from "../dialog_view";
import type { SearchView } from "../search_view";
import type { TimelineView } from "../timeline_view";
import type { Selection } from "./selection";
import type { TimeControl } from "./time_control";

export type Actions = Record<string, () => void>;

/** Runs the action of a key unless the reader is typing, a dialog is open, or the focused element uses the key. */
export function pressed(event: KeyboardEvent, actions: Actions): void {
  if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const { target } = event;
  const isOnControl = target instanceof HTMLElement && target.closest("button, a, [role=separator], [role=menu]") !== null;
  // The arrow keys move the map and the splitter when these have the focus.
  const isMoved = target instanceof HTMLElement && target.closest(".leaflet-container, [role=separator], [role=menu], input") !== null;
  if ((key === " " && isOnControl) || (key.startsWith("Arrow") && isMoved)) return;
  const action = actions[key];
  if (action === undefined) return;
  event.preventDefault();
  action();
}

export interface Driven {
  timeline: TimelineView;
  selection: Selection;
  time: TimeControl;
  search: SearchView;
  escape: () => void;
  copyLink: () => void;
}

export function liveActions({ timeline, selection, time, search, escape, copyLink }: Driven): Actions {
  return {
    w: () => timeline.zoom(0.7),
    s: () => timeline.zoom(1.43),
    a: () => timeline.pan(-0.15),
    d: () => timeline.pan(0.15),
    j: () => void selection.step(1),
    k: () => void selection.step(-1),
    l: () => time.goLive(),
    b: () => time.playBackwards(),
    "<": () => time.changeRate(-1),
    ">": () => time.changeRate(1),
    " ": () => time.togglePlay(),
    ArrowLeft: () => time.step(-1),
    ArrowRight: () => time.step(1),
    c: copyLink,
    "/": () => search.focus(),
    "?": () => showShortcuts(),
    Escape: escape,
  };
}

export function showShortcuts(): void {
  const rows: [string, string][] = [
    [t("Space"), t("Pause, then continue from there")],
    ["B", t("Play backwards")],
    ["<  >", t("Slower, faster")],
    ["←  →", t("A step back or forward in time")],
    ["L", t("Back to live")],
    ["J  K", t("Next and previous answer")],
    ["W  S", t("Zoom the timeline in and out")],
    ["A  D", t("Move back and forward in time")],
    ["/", t("Find an entity, a query or a region")],
    ["C", t("Copy a link to this view")],
    [t("Esc"), t("Close details, clear the range, clear the selection")],
    [t("Shift + drag"), t("On the map: select entities; on the timeline: mark a time range")],
  ];
  openDialog(
    t("Keyboard"),
    h(
      "div",
      { class: "shortcut-list" },
      ...rows.flatMap(([keys, text]) => [
        h("span", {}, ...keys.split("  ").map((key) => h("kbd", {}, key))),
        h("span", { class: "muted" }, text),
      ]),
    ),
  ).foot.remove();
}
