/** The count around the time of an answer: a stepped line over its query's region. */

import * as L from "leaflet";
import { countedAnswer, fromDocument } from "../data/occupancy_data";
import { familyOf } from "../lib/families";
import type { Feed } from "../lib/shapes";
import { get, query as address } from "../lib/api";
import type { Geometry } from "../lib/regions";
import type { Zone } from "../lib/time";
import { countLine } from "./count_line_view";
import { boundsOf, latLng, type FeedMap } from "./map_view";

/** How much is shown before and after the answer. */
const MARGIN = { ms: 120_000, ticks: 3_000 };
/** CSS pixels: the label of the region is just above it. */
const ABOVE_NAME = L.point(0, -16);

/** An answer of `query` with its `specification`. */
export interface CountedPeriod {
  query: string;
  specification: Record<string, unknown> | undefined;
  geometries: readonly Geometry[];
  start: number;
  end: number;
}

export class CountOnMap {
  private readonly tooltip = L.tooltip({
    permanent: true,
    direction: "top",
    offset: ABOVE_NAME,
    className: "count-label",
    interactive: false,
  });

  constructor(
    private readonly feedMap: FeedMap,
    private readonly feed: Feed,
    private readonly zone: Zone,
  ) {}

  hide(): void {
    this.tooltip.remove();
  }

  /**
   * Removes the line for answers of other families. The old line stays until the new one is loaded.
   */
  async show({ query, specification, geometries, start, end }: CountedPeriod, signal: AbortSignal): Promise<void> {
    const { feed, zone, feedMap } = this;
    if (specification === undefined || familyOf(specification["family"])?.detail !== "count") return;
    const box = boundsOf(geometries, feed.crs === "geographic");
    const margin = MARGIN[feed.time];
    const period = { from: Math.round(start - margin), to: Math.round(end + margin) };
    // This is optional: the answer is shown without it, too.
    const counted = await get(address(`queries/${query}/occupancy`, period), countedAnswer, signal).catch(() => null);
    if (box === null || counted === null || signal.aborted) return;
    const picture = countLine(counted, { feed, zone, asked: fromDocument(specification, feed) });
    if (picture === null) return;
    const [w, , e, n] = box;
    this.tooltip.setLatLng(latLng(feedMap.near((w + e) / 2), n)).setContent(picture);
    feedMap.map.addLayer(this.tooltip);
  }
}
