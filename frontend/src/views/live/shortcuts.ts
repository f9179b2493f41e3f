/** The list of the live page's keyboard shortcuts. */

import { t } from "../../lib/texts";
import { h } from "../../lib/dom";
import { openDialog } from "../dialog_view";

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
