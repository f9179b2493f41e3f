/** The events of an answer as a list. */

import type { EvidencePoint } from "../data/evidence";
import type { EvidenceItem } from "../lib/shapes";
import { h } from "../lib/dom";
import { formatMoment, type TimeUnit, type Zone } from "../lib/time";

/** The events in order; the numbers are those on the map. */
export function evidenceList(points: readonly EvidencePoint[], unit: TimeUnit, zone: Zone): HTMLElement {
  return h(
    "ol",
    { class: "evidence" },
    ...points.map((point) => h("li", {}, h("span", { class: "evidence-number num" }, point.number), evidenceText(point, unit, zone))),
  );
}

function evidenceText(item: EvidenceItem, unit: TimeUnit, zone: Zone): HTMLElement {
  const place = item.x === null || item.y === null ? "" : `${Number(item.x.toFixed(5))}, ${Number(item.y.toFixed(5))}`;
  return h(
    "div",
    {},
    h("div", { class: "num" }, formatMoment(item.t, unit, zone)),
    h("div", { class: "small faint num" }, [item.variable, item.entity, place].filter((text) => text !== "").join(" · ")),
  );
}
