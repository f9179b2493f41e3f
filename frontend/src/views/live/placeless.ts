/** The live page of a feed whose rows have no places. */

import { h } from "../../lib/dom";
import { t } from "../../lib/texts";
import { proposeShare } from "../splitter_view";

const TIMELINE_SHARE = 0.7;

/** Explains the empty map and gives its room to the timeline. Returns the note. */
export function showPlaceless(frame: HTMLElement): HTMLElement {
  const note = h("p", { class: "map-note", role: "status" }, t("The rows of this feed have no places."));
  frame.querySelector(".live-map")?.append(note);
  const centre = frame.querySelector<HTMLElement>(".live-centre");
  if (centre !== null) proposeShare(centre, TIMELINE_SHARE);
  return note;
}
