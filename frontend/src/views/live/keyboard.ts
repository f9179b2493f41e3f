/** Keyboard shortcuts of the live page; `shortcuts.ts` lists them for the reader. */

import { isTyping } from "../../lib/dom";
import type { SearchView } from "../search_view";
import type { TimelineView } from "../timeline_view";
import type { Selection } from "./selection";
import { showShortcuts } from "./shortcuts";
import type { TimeControl } from "./time_control";

export type Actions = Record<string, () => void>;

/**
 * Runs the action of a key unless the reader is typing, a dialog is open, or the
 * focused element uses the key.
 */
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
