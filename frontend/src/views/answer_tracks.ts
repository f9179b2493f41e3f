/** The tracks of an answer's entities around its time, on any map of the feed. */

import { closestNotes, orderedEvidence, participants, reach } from "../data/evidence";
import { tracks as tracksParser, type Detection, type Feed, type Track } from "../lib/shapes";
import { get } from "../lib/api";
import { around } from "../lib/regions";
import { formatClock, type Zone } from "../lib/time";
import type { FeedMap } from "./map_view";

/** The server's maximum of entities per request. */
const MOST_TRACKS = 30;
/** How much of a track is shown before and after the answer. */
const MARGIN = { ms: 45_000, ticks: 1_000 };

export async function fetchTracks(
  feed: string,
  entities: readonly string[],
  from: number,
  to: number,
  signal: AbortSignal,
): Promise<Track[]> {
  if (entities.length === 0) return [];
  const search = new URLSearchParams({ from: String(Math.round(from)), to: String(Math.round(to)) });
  for (const entity of entities.slice(0, MOST_TRACKS)) search.append("entity", entity);
  const answer = await get(`feeds/${feed}/tracks?${search.toString()}`, tracksParser, signal);
  return answer.tracks;
}

/**
 * Shows one answer: its events numbered in order, the tracks of its entities, and the
 * distance of an encounter.
 */
export async function explainAnswer(
  { tracks }: FeedMap,
  rows: readonly Detection[],
  { feed, zone, now, colour }: { feed: Feed; zone: Zone; now: number; colour: string },
  signal: AbortSignal,
): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const evidence = orderedEvidence(rows);
  const notes = closestNotes(rows, feed.crs === "geographic");
  const [start, end] = [Math.min(...rows.map((row) => row.start)), Math.max(...rows.map((row) => row.end ?? now))];
  const caption = ({ variable, entity, t }: { variable: string; entity: string; t: number }): string =>
    `${[variable, entity].filter((text) => text !== "").join(" ")} · ${formatClock(t, feed.time, zone)}`;
  tracks.explain([], evidence, caption, notes);
  const [from, to] = reach(start, end, rows);
  const made = await fetchTracks(
    feed.name,
    participants(first.entities, evidence),
    from - MARGIN[feed.time],
    to + MARGIN[feed.time],
    signal,
  );
  if (!signal.aborted)
    tracks.explain(
      made.map((track) => ({ track, colour, from: start, to: end, label: track.entity })),
      evidence,
      caption,
      notes,
    );
}

/** Makes the events of a selected answer visible: an encounter is a dot on a map of everything. */
export function goTo(feedMap: FeedMap, rows: readonly Detection[]): void {
  const box = around(
    rows.flatMap((row) => row.evidence.flatMap(({ x, y }): [number, number][] => (x === null || y === null ? [] : [[feedMap.near(x), y]]))),
  );
  if (box !== null) feedMap.fit(box);
}
