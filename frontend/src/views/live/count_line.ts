/** Of the answer in focus, how many were there around it: a stepped line over its query's region. */

import * as L from "leaflet";
import type { Interval } from "../../data/interval";
import { countedAnswer, fromDocument } from "../../data/occupancy_data";
import { get, query as address } from "../../lib/api";
import { countLine } from "../count_line_view";
import { boundsOf, latLng, type FeedMap } from "../map_view";
import type { LiveModel } from "./model";

/** How much is shown before and after the answer. */
const MARGIN = { ms: 120_000, ticks: 3_000 };

export class LiveCountLine {
  private readonly tooltip = L.tooltip({ permanent: true, direction: "top", className: "count-label", interactive: false });

  constructor(
    private readonly model: LiveModel,
    private readonly feedMap: FeedMap,
  ) {}

  hide(): void {
    this.tooltip.remove();
  }

  /** Nothing for answers of other families. */
  async show(interval: Interval, end: number, signal: AbortSignal): Promise<void> {
    const { model } = this;
    const specification = model.query(interval.query)?.specification;
    if (specification?.["family"] !== "occupancy") return;
    const box = boundsOf(model.geometriesOf(interval.query), model.feed.crs === "geographic");
    const margin = MARGIN[model.feed.time];
    const stretch = { from: Math.round(interval.start - margin), to: Math.round(end + margin) };
    // It is an extra: the answer is shown without it, too.
    const counted = await get(address(`queries/${interval.query}/occupancy`, stretch), countedAnswer, signal).catch(() => null);
    if (box === null || counted === null || signal.aborted) return;
    const picture = countLine(counted, { feed: model.feed, zone: model.zone, asked: fromDocument(specification, model.feed) });
    if (picture === null) return;
    const [w, , e, n] = box;
    this.tooltip.setLatLng(latLng(this.feedMap.near((w + e) / 2), n)).setContent(picture);
    this.feedMap.map.addLayer(this.tooltip);
  }
}
