/** The regions, tracks and events of an alert on a small map. */

import { closestNotes, type EvidencePoint } from "../data/evidence";
import { queryColour } from "../lib/colours";
import { around, asGeometry, bounds, type Box } from "../lib/regions";
import type { Alert, AlertDetail, Feed } from "../lib/shapes";
import { formatClock, type Zone } from "../lib/time";
import { CountOnMap } from "./count_on_map";
import { openMap } from "./map_view";

export interface ShownAnswer {
  feed: Feed;
  alert: Alert;
  detail: AlertDetail;
  events: EvidencePoint[];
  specification: Record<string, unknown> | undefined;
}

/** Draws the map into `place`; the returned function removes it. */
export function openAlertMap(place: HTMLElement, { feed, alert, detail, events, specification }: ShownAnswer, zone: Zone): () => void {
  const feedMap = openMap(place, feed, { isSmall: true });
  const colour = queryColour(alert.query);
  const geometries = detail.shapes.flatMap((value) => asGeometry(value) ?? []);
  feedMap.regions.set(geometries.map((geometry, i) => ({ id: String(i), name: "", geometry, colour })));
  const isOne = alert.entities.length < 2;
  feedMap.tracks.explain(
    detail.evidence.tracks.map((track) => ({
      track,
      colour,
      from: alert.start,
      to: alert.end,
      ...(isOne ? {} : { label: track.entity }),
    })),
    events,
    ({ variable, t }) => [variable, formatClock(t, feed.time, zone)].filter((text) => text !== "").join(" · "),
    closestNotes(
      [detail.evidence.detection].filter((row) => row !== null),
      feed.crs === "geographic",
    ),
  );
  const counted = new AbortController();
  void new CountOnMap(feedMap, feed, zone).show(
    { query: alert.query, specification, geometries, start: alert.start, end: alert.end ?? (feed.wall_clock ? Date.now() : alert.start) },
    counted.signal,
  );
  const { near } = feedMap;
  const within = detail.evidence.tracks.flatMap((track) =>
    track.points.filter(([t]) => t >= alert.start && t <= (alert.end ?? Infinity)).map(([, x, y]): [number, number] => [near(x), y]),
  );
  const box = around([...events.flatMap(({ x, y }): [number, number][] => (x === null || y === null ? [] : [[near(x), y]])), ...within]);
  if (box !== null) {
    // The alert's region shows where it happened.
    const regions = geometries
      .map((geometry) => bounds(geometry, feed.crs === "geographic"))
      .filter((region) => region !== null && touch(region, box)) as Box[];
    feedMap.fit(
      around(
        [box, ...regions].flatMap(([w, s, e, n]): [number, number][] => [
          [near(w), s],
          [near(e), n],
        ]),
      ) ?? box,
    );
  }
  return () => {
    counted.abort();
    feedMap.remove();
  };
}

function touch(a: Box, b: Box): boolean {
  return a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3];
}
