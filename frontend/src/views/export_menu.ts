/** The formats in which tables of answers and alerts can be downloaded, as a menu of a button. */

import { h } from "../lib/dom";
import { t } from "../lib/texts";
import { attachMenu } from "./menu_view";

const FILES = [
  ["csv", "CSV"],
  ["geojson", "GeoJSON"],
  ["jsonl", t("JSON lines")],
] as const;

/** `onPick` is called with the name of the format, as in addresses. */
export function attachExport(opener: HTMLButtonElement, onPick: (format: string) => void): void {
  attachMenu(opener, () => FILES.map(([format, name]) => ({ content: [h("span", {}, name)], onPick: () => onPick(format) })));
}
