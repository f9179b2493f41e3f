/** Links of a region on the live map: its page, and the queries that use it. */

import L from "leaflet";
import { h } from "../../lib/dom";
import { t } from "../../lib/texts";
import type { DrawnRegion } from "../region_layer";
import type { LiveModel } from "./model";

/** The number of queries that are named; the region's page has all. */
const MOST_QUERIES = 6;

export function openRegionCard(map: L.Map, at: L.LatLng, region: DrawnRegion, model: LiveModel): void {
  const isStored = model.regions.some((row) => row.id === region.id);
  const using = model.queries.filter((row) => model.regionsOfQuery.get(row.id)?.includes(region.id)).slice(0, MOST_QUERIES);
  const page = h("a", { href: `/regions/${region.id}` }, t("Who is inside"));
  const card = h(
    "div",
    { class: "region-links" },
    h("strong", {}, region.name),
    isStored ? h("div", {}, page) : null,
    ...using.map((row) => h("div", {}, h("a", { href: `/queries/${row.id}` }, row.name))),
  );
  const popup = L.popup({ className: "region-popup", autoPanPadding: [16, 16] })
    .setLatLng(at)
    .setContent(card)
    .openOn(map);
  popup.getElement()?.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") popup.close();
  });
  if (isStored) page.focus({ preventScroll: true });
}
