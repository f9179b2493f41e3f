/** The data of one feed's live page: queries, regions, answers, and the feed's present. No DOM. */

import { t } from "../../lib/texts";
import {
  detectionDetail,
  queryRow,
  queryVersion,
  region as regionParser,
  SEVERITIES,
  type Alert,
  type Detection,
  type Feed,
  type QueryRow,
  type QueryVersion,
  type RegionRow,
} from "../../lib/shapes";
import type { EntityMark } from "../../data/entities_data";
import type { Interval } from "../../data/interval";
import { IntervalsData } from "../../data/intervals_data";
import type { LiveData } from "../../data/live_data";
import type { CatchingUp } from "../../live/frames";
import { regionsOf } from "../../data/query_shapes";
import type { ViewState } from "../../data/view_state";
import { Clock } from "../../clock/clock";
import { get, getAll, query as address } from "../../lib/api";
import { familyOf } from "../../lib/families";
import { queryColour, spreadColours } from "../../lib/colours";
import type { Geometry } from "../../lib/regions";
import { formatNumber, type Zone } from "../../lib/time";
import type { News } from "../../data/live_session";
import type { DrawnRegion } from "../region_layer";
import { AnswerLoading } from "./answer_loading";

/** For playback a feed of ticks is assumed to have this many per millisecond. */
const TICKS_PER_MS = 1 / 40;
/** How many queries are requested at once when their first answers arrive. */
const MOST_UNKNOWN = 20;
/**
 * A history whose newest row is older than this is a recording that has ended; and the
 * margin of the window around it.
 */
const ENDED_MS = 3_600_000;
const BESIDE_RECORDING = 1.06;
/** An address has room for some 1,300 queries. */
const MOST_IN_ADDRESS = 1_000;
const byName = new Intl.Collator("en", { numeric: true });

/** The order of queries: those that open alerts first, by severity. */
function rank(row: QueryRow): number {
  return row.alert_kinds.length === 0 ? -1 : SEVERITIES.indexOf(row.severity);
}

/** What is known of a query that is no longer listed, from its answers. */
export interface GoneQuery {
  name: string;
  sentence: string;
}

export interface Holding {
  marks: ReadonlyMap<string, EntityMark>;
  /** The number of open answers by query. */
  open: ReadonlyMap<string, number>;
}

export class LiveModel {
  queries: QueryRow[] = [];
  regions: RegionRow[] = [];
  regionsOfQuery = new Map<string, string[]>();
  readonly clock: Clock;
  readonly intervals = new IntervalsData(
    (query) => familyOf(this.query(query)?.family)?.isFluents === true,
    (query) => this.query(query)?.left_at ?? null,
  );
  /** Answers from before the snapshot, fetched when the timeline went there. */
  readonly history = new Map<string, Detection>();
  /** Retracted answers, also from before the page was opened. */
  private readonly retracted = new Map<string, Detection>();
  /** Changes that timeline, panel and list have not shown yet. */
  isDirty = false;
  isConnected = false;
  /** New queries that have not read the whole history yet. */
  catchingUp: CatchingUp | null = null;
  private queryById = new Map<string, QueryRow>();
  /** The requested specifications by query and version. */
  private readonly versions = new Map<string, QueryVersion | "coming" | null>();
  readonly loading: AnswerLoading;
  /** Queries to request: unknown ones with answers, and changed ones. */
  private readonly unknownIds = new Set<string>();
  /** Queries that the server does not show to this reader. */
  private readonly missingIds = new Set<string>();
  /** Of queries that are no longer listed, by query and version. */
  private readonly gone = new Map<string, GoneQuery | "coming" | null>();
  private readonly goneNames = new Map<string, string>();
  private atFrame = { t: 0, at: 0 };
  private chosen: ReadonlySet<string> | null = null;

  constructor(
    readonly feed: Feed,
    readonly zone: Zone,
    readonly state: ViewState,
    readonly data: LiveData,
    onFault: (error: unknown) => void = () => undefined,
  ) {
    this.clock = new Clock(
      { present: () => this.present(), wall: () => performance.now(), unitsPerMs: this.unitsPerMs, leastSpan: this.inUnit(200, 4) },
      state.span ?? this.inUnit(900_000, 4000),
      () => this.noteClock(),
    );
    this.loading = new AnswerLoading(feed.name, {
      present: () => this.present(),
      onAnswer: (row) => this.remember(row),
      onRetracted: (row) => this.rememberRetracted(row),
      onChange: () => (this.isDirty = true),
      onFault,
    });
    this.chooseEntities(state.entities);
  }

  /** All queries and regions. */
  async load(): Promise<void> {
    const [queries, regions] = await Promise.all([
      getAll(address("queries/", { feed: this.feed.name, page_size: 1000 }), queryRow),
      this.fetchRegions(),
    ]);
    this.regions = regions;
    this.missingIds.clear();
    this.takeQueries(queries);
  }

  private fetchRegions(): Promise<RegionRow[]> {
    return getAll(address("regions/", { feed: this.feed.name, page_size: 1000 }), regionParser, 20_000);
  }

  /** Queries that open alerts first, then by name. */
  private takeQueries(queries: QueryRow[]): void {
    spreadColours(queries.map((row) => row.id));
    this.queries = queries.sort((a, b) => rank(b) - rank(a) || byName.compare(a.name, b.name));
    this.queryById = new Map(queries.map((row) => [row.id, row]));
    this.fillIntervals();
  }

  /**
   * Rebuilds from all answers: it may have become known only now which
   * queries' answers are fluents.
   */
  private fillIntervals(): void {
    this.intervals.clear();
    for (const rows of [this.history, this.data.detections]) for (const row of rows.values()) this.putAnswer(row);
    for (const row of this.retracted.values()) this.intervals.putRetracted(row);
    this.isDirty = true;
  }

  /**
   * For an edited query only answers of its newest version are shown: it has been
   * evaluated on the history too.
   */
  private putAnswer(row: Detection): void {
    const version = this.query(row.query)?.version;
    if (version === undefined || version === row.version) this.intervals.put(row);
    else if (row.version > version) this.unknownIds.add(row.query);
  }

  /**
   * Requests queries that were registered, changed or removed since the page was opened.
   * Returns whether there are any.
   */
  async fetchUnknown(): Promise<boolean> {
    const ids = [...this.unknownIds].slice(0, MOST_UNKNOWN);
    for (const id of ids) this.unknownIds.delete(id);
    if (ids.length === 0) return false;
    // Requested as a list: a query that was removed or is hidden from the reader is missing
    // in it, which is no error.
    const rows = await getAll(address("queries/", { id: ids.join(",") }), queryRow).catch(() => null);
    if (rows === null) {
      for (const id of ids) this.unknownIds.add(id);
      return false;
    }
    const renewed = new Set(rows.map((row) => row.id));
    const gone = new Set(ids.filter((id) => !renewed.has(id)));
    for (const id of gone) this.missingIds.add(id);
    if (rows.length === 0 && !this.queries.some((row) => gone.has(row.id))) return false;
    const known = new Set(this.regions.map((row) => row.id));
    if (rows.some((row) => row.regions.some((region) => !known.has(region.id)))) this.regions = await this.fetchRegions();
    this.takeQueries([...this.queries.filter((row) => !renewed.has(row.id) && !gone.has(row.id)), ...rows]);
    return true;
  }

  get hasUnknown(): boolean {
    return this.unknownIds.size > 0;
  }

  private noteUnknown(rows: readonly Detection[]): void {
    for (const { query } of rows) if (!this.queryById.has(query) && !this.missingIds.has(query)) this.unknownIds.add(query);
  }

  query(id: string): QueryRow | null {
    return this.queryById.get(id) ?? null;
  }

  queryName(id: string): string {
    return this.query(id)?.name ?? this.goneNames.get(id) ?? t("Query {id}", { id });
  }

  /**
   * Name and sentence of a query that is no longer listed, from its answer; unknown ones
   * are requested, and `onCome` called when they have arrived.
   */
  goneQuery(row: Detection, onCome: () => void): GoneQuery | "coming" | null {
    const key = `${row.query} ${row.version}`;
    const known = this.gone.get(key);
    if (known !== undefined) return known;
    this.gone.set(key, "coming");
    void get(address(`detections/${row.id}/`, { feed: this.feed.name }), detectionDetail)
      .catch(() => null)
      .then((found) => {
        this.gone.set(key, found === null ? null : { name: found.query_name, sentence: found.sentence });
        if (found !== null) this.goneNames.set(row.query, found.query_name);
        onCome();
      });
    return "coming";
  }

  /**
   * The specification of the query's `version`; an unknown one is requested, and `onCome`
   * called when it has arrived.
   */
  rulesOf(id: string, version: number, onCome: () => void): QueryVersion | "coming" | null {
    const row = this.query(id);
    // Versions of a query that was removed or is hidden from the reader cannot be requested.
    if (row === null) return null;
    if (row.version === version) return { version, specification: row.specification, sentence: row.sentence, unchanged: true };
    const key = `${id} ${version}`;
    const known = this.versions.get(key);
    if (known !== undefined) return known;
    this.versions.set(key, "coming");
    void get(`queries/${id}/versions/${version}`, queryVersion)
      .catch(() => null)
      .then((found) => {
        this.versions.set(key, found);
        onCome();
      });
    return "coming";
  }

  take(news: News): void {
    this.noteNow(this.data.now);
    this.isDirty = true;
    this.noteUnknown(news.changed);
    for (const id of news.queries) {
      this.missingIds.delete(id);
      this.unknownIds.add(id);
    }
    if (news.isSnapshot) {
      this.fillIntervals();
      this.loading.snapshotCame(this.data.since);
      return;
    }
    for (const id of news.removed) {
      this.history.delete(id);
      const row = this.intervals.retract(id, this.present());
      if (row !== null) this.retracted.set(id, row);
    }
    for (const row of news.changed) {
      this.retracted.delete(row.id);
      this.putAnswer(row);
    }
  }

  // ---- Choices

  get entities(): ReadonlySet<string> | null {
    return this.chosen;
  }

  /** The same Set object for the same choice, so that its cached layout stays valid. */
  chooseEntities(entities: readonly string[]): void {
    this.state.entities = entities.slice(0, 200);
    this.chosen = entities.length > 0 ? new Set(this.state.entities) : null;
    this.isDirty = true;
  }

  // ---- Answers

  detections(interval: Interval): Detection[] {
    return interval.detections.flatMap((id) => this.data.detections.get(id) ?? this.history.get(id) ?? this.retracted.get(id) ?? []);
  }

  alertOf(interval: Interval): Alert | null {
    return [...this.data.alerts.values()].find((row) => row.detection !== null && interval.detections.includes(row.detection)) ?? null;
  }

  remember(row: Detection): void {
    if (row.weight <= 0) {
      this.rememberRetracted(row);
      return;
    }
    this.history.set(row.id, row);
    if (!this.data.detections.has(row.id)) this.putAnswer(row);
    this.isDirty = true;
  }

  /** An open answer ends where it was retracted, as far as that is known. */
  private rememberRetracted(row: Detection): void {
    const at = this.feed.wall_clock && this.feed.time === "ms" && typeof row.detected_at === "number" ? row.detected_at : row.start;
    const ended = { ...row, end: row.end ?? Math.max(row.start, at) };
    this.retracted.set(row.id, ended);
    this.intervals.putRetracted(ended);
    this.isDirty = true;
  }

  /** Loads the answers of the window, and in the past those that hold at the instant shown. */
  loadHistory(window: readonly [number, number]): Promise<void> {
    return this.loading.loadWindow(window, this.clock.isLive ? null : this.now());
  }

  /** Fetches the answers that begin next after `t`, or last before it, among those shown. */
  loadBeside(t: number, direction: 1 | -1): Promise<void> {
    return this.loading.loadBeside(t, direction, this.state.entities, this.shownQueries());
  }

  /** Empty: all. */
  private shownQueries(): string[] {
    const hidden = new Set(this.state.hidden);
    return hidden.size === 0 ? [] : this.queries.filter((row) => !hidden.has(row.id)).map((row) => row.id);
  }

  /**
   * A file with the answers of the shown queries about the chosen entities that overlap [t0, t1].
   * Its address names the queries that are shown, or those that are hidden if they are fewer.
   * Raises an error if no query is shown, or if too many would have to be named.
   */
  answersFile(format: string, [t0, t1]: readonly [number, number]): string {
    const shown = this.shownQueries();
    const present = new Set(this.queries.map(({ id }) => id));
    const hidden = this.state.hidden.filter((id) => present.has(id));
    if (shown.length === 0 && this.state.hidden.length > 0) throw new Error(t("All queries are hidden."));
    const [key, named] = shown.length <= hidden.length ? ["query", shown] : ["without", hidden];
    if (named.length > MOST_IN_ADDRESS)
      throw new Error(
        t("A file can name at most {most} queries, shown or hidden ones: show fewer, or hide fewer.", {
          most: formatNumber(MOST_IN_ADDRESS),
        }),
      );
    const search = new URLSearchParams({
      feed: this.feed.name,
      format,
      from: String(Math.floor(t0)),
      to: String(Math.ceil(t1) + 1),
    });
    for (const id of named) search.append(key, id);
    for (const entity of this.state.entities) search.append("entity", entity);
    return `/api/v1/detections/export?${search.toString()}`;
  }

  /**
   * The number of answers of each query in the window: loaded ones that overlap it, else
   * counted ones that begin in it.
   */
  totalsWithin([t0, t1]: readonly [number, number]): Map<string, number> {
    const counted = this.loading.counted(t0, t1);
    return new Map(
      this.queries.map(({ id }) => {
        const columns = this.intervals.of(id);
        let total = counted.of(id);
        columns.intervals.forEach((one, i) => {
          if (!one.isRetracted && !counted.has(one.start) && one.start < t1 && columns.end[i]! >= t0) total += 1;
        });
        return [id, total];
      }),
    );
  }

  /**
   * The entities of answers that hold at the instant `t`, in the colour of the most severe of their
   * queries; and the number of open answers by query.
   */
  holdingAt(t: number): Holding {
    const marks = new Map<string, EntityMark>();
    const open = new Map<string, number>();
    const hidden = new Set(this.state.hidden);
    // The most severe queries come first.
    for (const row of this.queries) {
      const columns = this.intervals.of(row.id);
      let count = 0;
      for (let i = 0; i < columns.intervals.length && columns.start[i]! <= t; i++) {
        const one = columns.intervals[i]!;
        if (columns.end[i]! <= t || one.isRetracted) continue;
        count += 1;
        if (hidden.has(row.id)) continue;
        for (const entity of one.entities) {
          const known = marks.get(entity);
          if (known === undefined)
            marks.set(entity, { colour: queryColour(row.id), isUrgent: row.severity === "high" || row.severity === "critical", count: 1 });
          else known.count += 1;
        }
      }
      if (count > 0) open.set(row.id, count);
    }
    return { marks, open };
  }

  // ---- Regions

  /**
   * All regions as the map draws them, in the colours of the visible queries; also records
   * which query uses which region.
   */
  drawnRegions(): DrawnRegion[] {
    const named = new Map(this.regions.map((row) => [row.name, row]));
    const colourOf = new Map<string, string>();
    const drawn: DrawnRegion[] = [];
    const hidden = new Set(this.state.hidden);
    this.regionsOfQuery = new Map();
    for (const row of this.queries) {
      const own = regionsOf(row.specification);
      const ids = own.names.flatMap((name) => named.get(name)?.id ?? []);
      const isShown = row.enabled && !hidden.has(row.id);
      for (const id of ids) if (isShown && !colourOf.has(id)) colourOf.set(id, queryColour(row.id));
      own.geometries.forEach((geometry, n) => {
        const id = `${row.id}/${n}`;
        ids.push(id);
        if (isShown) drawn.push({ id, name: row.name, geometry, colour: queryColour(row.id) });
      });
      this.regionsOfQuery.set(row.id, ids);
    }
    for (const row of this.regions)
      drawn.push({ id: row.id, name: row.name, geometry: row.geometry, colour: colourOf.get(row.id) ?? null });
    return drawn;
  }

  geometriesOf(query: string): Geometry[] {
    const ids = new Set(this.regionsOfQuery.get(query));
    return [
      ...this.regions.filter((row) => ids.has(row.id)).map((row) => row.geometry),
      ...regionsOf(this.query(query)?.specification).geometries,
    ];
  }

  // ---- Time

  noteNow(t: number | null): void {
    if (t !== null && t > this.atFrame.t) this.atFrame = { t, at: performance.now() };
  }

  /** The instant that the page shows: the present, or one of the past. */
  now(): number {
    return this.clock.now();
  }

  /** Puts the clock's choices into the address. */
  private noteClock(): void {
    const { clock, state } = this;
    state.span = clock.span;
    state.window = clock.isLive ? null : clock.window();
    state.instant = clock.isLive ? null : clock.now();
  }

  /** Applies the window and the instant of the address, once the present is known. */
  openClock(): void {
    const { window, instant } = this.state;
    if (window !== null) this.clock.show(window, instant ?? Math.min(window[1], this.present()));
    else if (instant !== null) this.clock.seek(instant);
  }

  /**
   * The factor by which the window must grow to show all of an ended recording; 1 if it continues,
   * or the reader chose a window.
   */
  recordingFactor(begin: number, wall: number): number {
    const { clock, feed, state } = this;
    const isRecording = feed.time === "ms" && !feed.wall_clock && wall - this.present() > ENDED_MS;
    if (!isRecording || !clock.isLive || state.span !== null) return 1;
    return Math.max(1, ((this.present() - begin) * BESIDE_RECORDING) / clock.span);
  }

  /**
   * The feed's present: the greatest event time seen, advanced by the wall clock for a while
   * between frames; 0 before any.
   */
  present(): number {
    if (this.feed.time !== "ms" || !this.isConnected || this.atFrame.at === 0) return this.atFrame.t;
    return this.atFrame.t + Math.min(1500, performance.now() - this.atFrame.at);
  }

  /** What the timeline shows. */
  window(): [number, number] {
    return this.clock.window();
  }

  /** Units of the feed's time per millisecond of real time. */
  get unitsPerMs(): number {
    return this.inUnit(1, TICKS_PER_MS);
  }

  /** Milliseconds on a feed of milliseconds, else ticks. */
  inUnit(ms: number, ticks: number): number {
    return this.feed.time === "ms" ? ms : ticks;
  }
}
