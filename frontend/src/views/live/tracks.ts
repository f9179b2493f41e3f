/**
 * Tracks on the map: those of the answer in focus with its evidence, else those of the chosen
 * entities or the brushed range.
 */

import { closestNotes, orderedEvidence, participants, type EvidencePoint } from "../../data/evidence";
import type { Interval } from "../../data/interval";
import { kindOf } from "../../lib/families";
import type { Track } from "../../lib/shapes";
import { queryColour, token } from "../../lib/colours";
import { Latest } from "../../lib/latest";
import { formatClock } from "../../lib/time";
import { around } from "../../lib/regions";
import { fetchTracks } from "../answer_tracks";
import { CountOnMap, type CountedPeriod } from "../count_on_map";
import { boundsOf, type FeedMap } from "../map_view";
import { fail } from "../shell_view";
import type { DrawnTrack } from "../track_layer";
import type { LiveModel } from "./model";

/** How often an open answer is drawn again. */
const FOLLOW_MS = 5_000;

export interface Focus {
  interval: Interval;
  /** Selected, not only hovered: the map moves there if nothing of it is visible. */
  isChosen: boolean;
}

export class LiveTracks {
  private readonly question = new Latest((signal) => this.fetch(signal), fail);
  /** The selected answer to which the map has already moved. */
  private shownFor: string | null = null;
  private mustGo = false;
  private readonly counts: CountOnMap;
  /** The answer that is drawn, and since when by the wall clock. */
  private drawn: { key: string | null; at: number } = { key: null, at: 0 };

  constructor(
    private readonly model: LiveModel,
    private readonly feedMap: FeedMap,
    private readonly focus: () => Focus | null,
    private readonly entitiesWithin: (range: [number, number]) => string[],
  ) {
    this.counts = new CountOnMap(feedMap, model.feed, model.zone);
  }

  /** After `wait` milliseconds: hovering over many answers in passing fetches nothing. */
  draw(wait = 0): void {
    this.question.after(wait);
  }

  /** While the page is live an open answer grows: its count and tracks are updated. */
  follow(): void {
    const interval = this.focus()?.interval;
    if (interval?.end === null && interval.key === this.drawn.key && Date.now() - this.drawn.at >= FOLLOW_MS) this.draw();
  }

  /** The map does not move when this answer is drawn: the reader chose what it shows. */
  stayAt(interval: Interval): void {
    this.shownFor = interval.key;
  }

  close(): void {
    this.question.drop();
  }

  private async fetch(signal: AbortSignal): Promise<void> {
    const focus = this.focus();
    const isOther = focus?.interval.key !== this.drawn.key;
    this.drawn = { key: focus?.interval.key ?? null, at: Date.now() };
    if (isOther) this.counts.hide();
    if (focus !== null) await this.explain(focus, isOther, signal);
    else await this.showChosen(signal);
  }

  /** The answer's span in full colour, thin lines around it; all its events in order. */
  private async explain({ interval, isChosen }: Focus, isOther: boolean, signal: AbortSignal): Promise<void> {
    const rows = this.model.detections(interval);
    const evidence = orderedEvidence(rows);
    const notes = closestNotes(rows, this.model.feed.crs === "geographic");
    const entities = participants(interval.entities, evidence);
    const pad = this.model.inUnit(45_000, 250);
    const end = Math.round(interval.end ?? this.model.present());
    const from = interval.isMark ? interval.start - pad : interval.start;
    const isOne = entities.length < 2;
    const caption = (point: EvidencePoint): string => this.caption(point, isOne);
    // The events are known immediately; the tracks between them are requested.
    if (isOther) this.feedMap.tracks.explain([], evidence, caption, notes);
    const [made] = await Promise.all([
      this.tracks(entities, interval.start - pad, end + pad, signal),
      this.counts.show(this.counted(interval, end), signal),
    ]);
    if (signal.aborted) return;
    const drawn = made.map((track): DrawnTrack => ({
      track,
      colour: queryColour(interval.query),
      from,
      to: interval.isMark ? interval.start : end,
      label: track.entity,
    }));
    this.feedMap.tracks.explain(drawn, evidence, caption, notes);
    if (!isChosen) return;
    if (this.mustGo || this.shownFor !== interval.key) this.goTo(made, evidence, [interval.start - pad, end + pad]);
    this.shownFor = interval.key;
    this.mustGo = false;
  }

  private counted({ query, start }: Interval, end: number): CountedPeriod {
    return { query, specification: this.model.query(query)?.specification, geometries: this.model.geometriesOf(query), start, end };
  }

  private caption({ variable, entity, t }: EvidencePoint, isOne: boolean): string {
    const who = [variable, isOne ? "" : entity].filter((text) => text !== "").join(" ");
    return `${who === "" ? "" : `${who} · `}${formatClock(t, this.model.feed.time, this.model.zone)}`;
  }

  /**
   * The map does not move if all events are visible; it never zooms in further than the reader did.
   */
  private goTo(made: readonly Track[], evidence: readonly EvidencePoint[], [from, to]: [number, number]): void {
    const { map, near } = this.feedMap;
    const events = evidence.flatMap(({ x, y }): [number, number][] => (x === null || y === null ? [] : [[near(x), y]]));
    const ways = made.flatMap((track) =>
      track.points.filter(([t]) => t >= from && t <= to).map(([, x, y]): [number, number] => [near(x), y]),
    );
    const points = events.length > 0 ? events : ways;
    const box = around(points);
    if (box === null || (!this.mustGo && points.every(([x, y]) => this.feedMap.isInSight(x, y)))) return;
    if (this.mustGo) this.feedMap.fit(box);
    else this.feedMap.fit(box, map.getZoom());
  }

  /**
   * Fits the map to the query's regions, or else to the answer's events. An encounter is only a dot
   * in a region: there the events are used.
   */
  fitTo(interval: Interval): void {
    const isAtRegions = kindOf(interval.kind)?.isBetweenTwo !== true;
    const box = isAtRegions ? boundsOf(this.model.geometriesOf(interval.query), this.model.feed.crs === "geographic") : null;
    if (box !== null) {
      this.feedMap.fit(box);
    } else {
      this.mustGo = true;
      this.draw();
    }
  }

  private async showChosen(signal: AbortSignal): Promise<void> {
    this.shownFor = null;
    const { entities, range } = this.model.state;
    const wanted = entities.length > 0 ? entities : range === null ? [] : this.entitiesWithin(range);
    const now = Math.round(this.model.now());
    const made = await this.tracks(wanted, range?.[0] ?? now - this.model.inUnit(600_000, 10_000), range?.[1] ?? now, signal);
    if (signal.aborted) return;
    this.feedMap.tracks.set(
      made.map((track) => ({ track, colour: token("--accent"), from: null, to: null })),
      [],
    );
  }

  private tracks(entities: readonly string[], from: number, to: number, signal: AbortSignal): Promise<Track[]> {
    return fetchTracks(this.model.feed.name, entities, from, to, signal);
  }
}
