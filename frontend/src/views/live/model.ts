/** What the live page of one feed knows: queries, regions, answers, and the feed's present. No DOM. */

import { detectionDetail, queryRow, region as regionParser, SEVERITIES, type Alert, type Detection, type Feed, type QueryRow, type RegionRow } from "../../data/shapes";
import type { Interval } from "../../data/interval";
import { IntervalsData } from "../../data/intervals_data";
import type { LiveData } from "../../data/live_data";
import { spokenRegions } from "../../data/query_shapes";
import type { ViewState } from "../../data/view_state";
import { getAll, query as address } from "../../lib/api";
import { queryColour } from "../../lib/colours";
import type { Geometry } from "../../lib/regions";
import type { Zone } from "../../lib/time";
import type { News } from "../../live/session";
import type { DrawnRegion } from "../region_layer";

const byName = new Intl.Collator("en", { numeric: true });

/** Queries that open alerts above those that do not, by severity. */
function rank(row: QueryRow): number {
  return row.alert_kinds.length === 0 ? -1 : SEVERITIES.indexOf(row.severity);
}

export class LiveModel {
  queries: QueryRow[] = [];
  regions: RegionRow[] = [];
  regionsOfQuery = new Map<string, string[]>();
  readonly intervals = new IntervalsData((query) => this.queryById.get(query)?.family === "calculus");
  /** Answers from before the snapshot, fetched when the timeline went there. */
  readonly history = new Map<string, Detection>();
  /** Something changed that the timeline, the panel and the list have not shown yet. */
  isDirty = false;
  isConnected = false;
  private queryById = new Map<string, QueryRow>();
  private historyFrom = Infinity;
  private atFrame = { t: 0, at: 0 };
  private chosen: ReadonlySet<string> | null = null;

  constructor(
    readonly feed: Feed,
    readonly zone: Zone,
    readonly state: ViewState,
    readonly data: LiveData,
  ) {
    this.chooseEntities(state.entities);
  }

  async load(): Promise<void> {
    const [queries, regions] = await Promise.all([
      getAll(address("queries/", { feed: this.feed.name, page_size: 1000 }), queryRow),
      getAll(address("regions/", { feed: this.feed.name, page_size: 1000 }), regionParser, 20_000),
    ]);
    // What may call somebody stands first, then by name.
    this.queries = queries.sort((a, b) => rank(b) - rank(a) || byName.compare(a.name, b.name));
    this.queryById = new Map(queries.map((row) => [row.id, row]));
    this.regions = regions;
    this.fillIntervals();
  }

  /** From all answers known: which queries' answers are fluents may have become known only now. */
  private fillIntervals(): void {
    this.intervals.clear();
    for (const rows of [this.history, this.data.detections]) for (const row of rows.values()) this.intervals.put(row);
    this.isDirty = true;
  }

  query(id: string): QueryRow | null {
    return this.queryById.get(id) ?? null;
  }

  queryName(id: string): string {
    return this.query(id)?.name ?? `Query ${id}`;
  }

  take(news: News): void {
    if (news.isSnapshot) {
      this.intervals.clear();
      for (const row of this.history.values()) this.intervals.put(row);
    }
    for (const id of news.removed) this.intervals.withdraw(id);
    for (const row of news.changed) this.intervals.put(row);
    this.noteNow(this.data.now);
    this.isDirty = true;
  }

  // ---- Choices

  get entities(): ReadonlySet<string> | null {
    return this.chosen;
  }

  /** The same set for the same choice: what was arranged for it holds. */
  chooseEntities(entities: readonly string[]): void {
    this.state.entities = entities.slice(0, 200);
    this.chosen = entities.length > 0 ? new Set(this.state.entities) : null;
    this.isDirty = true;
  }

  // ---- Answers

  detections(interval: Interval): Detection[] {
    return interval.detections.flatMap((id) => this.data.detections.get(id) ?? this.history.get(id) ?? []);
  }

  alertOf(interval: Interval): Alert | null {
    return [...this.data.alerts.values()].find((row) => row.detection !== null && interval.detections.includes(row.detection)) ?? null;
  }

  remember(row: Detection): void {
    this.history.set(row.id, row);
    if (!this.data.detections.has(row.id)) this.intervals.put(row);
    this.isDirty = true;
  }

  /** Fetches what lies between `t0` and the oldest answer known, once. */
  async loadHistory(t0: number): Promise<void> {
    const to = Math.min(this.earliest(), this.historyFrom);
    if (t0 >= to) return;
    this.historyFrom = t0;
    const path = address("detections/", { feed: this.feed.name, from: Math.floor(t0), to: Math.ceil(to), page_size: 1000 });
    for (const row of await getAll(path, detectionDetail, 10_000)) if (row.weight > 0) this.remember(row);
  }

  private earliest(): number {
    let least = Infinity;
    for (const row of this.data.detections.values()) if (row.start < least) least = row.start;
    return least;
  }

  // ---- Regions

  /** All regions as the map draws them, in the colours of the queries on show; also finds which query speaks of which. */
  drawnRegions(): DrawnRegion[] {
    const named = new Map(this.regions.map((row) => [row.name, row]));
    const colourOf = new Map<string, string>();
    const drawn: DrawnRegion[] = [];
    const hidden = new Set(this.state.hidden);
    this.regionsOfQuery = new Map();
    for (const row of this.queries) {
      const spoken = spokenRegions(row.specification);
      const ids = spoken.names.flatMap((name) => named.get(name)?.id ?? []);
      const isShown = row.enabled && !hidden.has(row.id);
      for (const id of ids) if (isShown && !colourOf.has(id)) colourOf.set(id, queryColour(row.id));
      spoken.geometries.forEach((geometry, n) => {
        const id = `query ${row.id} ${n}`;
        ids.push(id);
        if (isShown) drawn.push({ id, name: row.name, geometry, colour: queryColour(row.id) });
      });
      this.regionsOfQuery.set(row.id, ids);
    }
    for (const row of this.regions) drawn.push({ id: row.id, name: row.name, geometry: row.geometry, colour: colourOf.get(row.id) ?? null });
    return drawn;
  }

  geometriesOf(query: string): Geometry[] {
    const ids = new Set(this.regionsOfQuery.get(query));
    return [...this.regions.filter((row) => ids.has(row.id)).map((row) => row.geometry), ...spokenRegions(this.query(query)?.specification).geometries];
  }

  // ---- Time

  noteNow(t: number | null): void {
    if (t !== null && t > this.atFrame.t) this.atFrame = { t, at: performance.now() };
  }

  /** The feed's present: the greatest event time seen, moved on by the wall clock for a while between frames; 0 before any. */
  now(): number {
    if (this.feed.time !== "ms" || !this.isConnected || this.atFrame.at === 0) return this.atFrame.t;
    return this.atFrame.t + Math.min(1500, performance.now() - this.atFrame.at);
  }

  /** Milliseconds on a feed of milliseconds, else ticks. */
  inUnit(ms: number, ticks: number): number {
    return this.feed.time === "ms" ? ms : ticks;
  }
}
