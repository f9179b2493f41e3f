/** The live page of one feed: map over timeline, panels beside, everything linked both ways. */

import * as L from "leaflet";
import { get, getAll, query as address } from "../lib/api";
import { button, h, icon, iconButton, isTyping, replace } from "../lib/dom";
import { EntitiesData } from "../data/entities_data";
import { IntervalsData, type Interval } from "../data/intervals_data";
import { spokenRegions } from "../data/query_shapes";
import { detectionDetail, queryRow, region as regionParser, SEVERITIES, tracks as tracksParser, type Detection, type Feed, type QueryRow, type RegionRow, type Track } from "../data/shapes";
import type { ViewState } from "../data/view_state";
import { onThemeChange, queryColour, token } from "../lib/colours";
import { formatClock, formatSpan, zoneName, type Zone } from "../lib/time";
import { kindName } from "../lib/words";
import { LiveSession, type News } from "../live/session";
import type { ConnectionState } from "../live/socket";
import { DrawerView, headline } from "./drawer_view";
import { EntityLayer } from "./entity_layer";
import { IntervalListView } from "./interval_list_view";
import { boundsOf, latLng, openMap, type FeedMap } from "./map_view";
import { notifyAlert } from "./notifications";
import { openDialog } from "./dialog_view";
import { QueryPanelView } from "./query_panel_view";
import type { DrawnRegion } from "./region_layer";
import { SearchView, type Found } from "./search_view";
import { fail, refreshAlertCount, toast } from "./shell_view";
import { splitter } from "./splitter_view";
import { TimelineView } from "./timeline_view";
import type { DrawnTrack } from "./track_layer";

/** Share of the window kept free right of the present. */
const AHEAD = 0.04;
const MOST_TRACKS = 30;

export interface LiveHandlers {
  /** The choices changed: write them into the address. */
  onState: () => void;
}

export class LiveView {
  readonly element: HTMLElement;
  readonly bar = { state: h("button", { type: "button", class: "state state-connecting", onClick: () => this.session.retryNow() }, "Connecting"), clock: h("div", { class: "clock" }) };
  readonly search: SearchView;
  private readonly session: LiveSession;
  private readonly feedMap: FeedMap;
  private readonly entities: EntitiesData;
  private readonly entityLayer: EntityLayer;
  private readonly intervals = new IntervalsData();
  private readonly timeline: TimelineView;
  private readonly list: IntervalListView;
  private readonly panel: QueryPanelView;
  private readonly drawer: DrawerView;
  private readonly body: HTMLElement;
  private readonly listButton = button("List", { icon: "table-2", kind: "button-sm toggle", "aria-pressed": "false", onClick: () => this.setMode(this.state.mode === "list" ? "timeline" : "list") });
  private readonly liveButton = button("Live", { icon: "skip-forward", kind: "button-sm", title: "Follow the present (L)", onClick: () => this.goLive() });
  private readonly pauseButton = iconButton("Pause (space)", "pause", { kind: "button-sm", onClick: () => this.togglePause() });
  private readonly rangeNote = h("span", { class: "chip", hidden: true });
  private readonly windowNote = h("span", { class: "small faint num wide" });
  private readonly boxButton = iconButton("Select entities in a box (Shift and drag)", "square-dashed-mouse-pointer", { onClick: () => this.setBoxMode(!this.isBoxMode) });
  private readonly tip = h("div", { class: "timeline-tip", hidden: true });
  private readonly nothing = h("div", { class: "timeline-empty", hidden: true });
  private queries: QueryRow[] = [];
  private queryById = new Map<string, QueryRow>();
  private regions: RegionRow[] = [];
  private regionsOfQuery = new Map<string, string[]>();
  private readonly history = new Map<string, Detection>();
  private hovered: Interval | null = null;
  private selected: Interval | null = null;
  private isDirty = false;
  private isBoxMode = false;
  private isPaused = false;
  private nowAtFrame = { t: 0, at: 0 };
  private lag: number | null = null;
  private connection: ConnectionState = "connecting";
  private trackRequest: AbortController | null = null;
  private trackTimer: ReturnType<typeof setTimeout> | null = null;
  private readonly timers: ReturnType<typeof setInterval>[] = [];
  private readonly abort = new AbortController();

  constructor(
    private readonly feed: Feed,
    private readonly zone: Zone,
    readonly state: ViewState,
    private readonly handlers: LiveHandlers,
  ) {
    const newQuery = (): string => address("/queries/new", { feed: feed.name });
    this.panel = new QueryPanelView({
      onHidden: (hidden) => this.setHidden([...hidden]),
      onFocus: (row) => this.focusQuery(row),
      onHover: (row) => this.feedMap.regions.highlight(new Set(row === null ? this.highlightIds() : this.regionsOfQuery.get(row.id))),
      onClose: () => this.toggleSide(),
      newQueryUrl: newQuery,
    });
    this.drawer = new DrawerView(feed.time, zone, {
      onClose: () => this.select(null),
      onZoom: (interval) => this.showInterval(interval),
      onEntity: (entity) => this.pickEntity(entity),
      onAlert: (alert) => this.session.data.alerts.set(alert.id, alert),
    });
    const mapElement = h("div", { class: "map-canvas" });
    const mapBox = h("div", { class: "live-map" }, mapElement, this.mapTools(newQuery()), this.tip);
    const wrap = h("div", { class: "timeline-canvas-wrap" });
    this.list = new IntervalListView(feed.time, zone, { onHover: (one) => this.hover(one), onSelect: (one) => this.select(one), queryName: (id) => this.queryName(id) });
    const listWrap = h("div", { class: "timeline-canvas-wrap" }, wrap, this.list.element, this.nothing);
    wrap.style.height = "100%";
    const centre = h("div", { class: "live-centre" }, mapBox);
    centre.append(splitter(centre), h("section", { class: "live-timeline", "aria-label": "Answers over time" }, this.timelineBar(), listWrap));
    this.body = h("div", { class: "live-body", "data-side": innerWidth > 1180 ? "open" : "closed" }, this.panel.element, centre, this.drawer.element);
    this.element = this.body;
    this.timeline = new TimelineView(wrap, feed.time, zone, {
      onHover: (one) => this.hover(one),
      onSelect: (one) => this.select(one),
      onRange: (range) => this.setRange(range),
      onWindow: (window) => this.setWindow(window),
      describe: (one) => `${this.queryName(one.query)} · ${headline(one)}`,
    });
    document.getElementById("page")?.append(this.element);
    this.feedMap = openMap(mapElement, feed, { at: state.map });
    this.entities = new EntitiesData(this.feedMap.project);
    this.entityLayer = new EntityLayer(this.entities).addTo(this.feedMap.map);
    this.search = new SearchView((text) => this.find(text), (found) => this.goTo(found));
    this.session = new LiveSession(feed.name, {
      onNews: (news) => this.news(news),
      onPositions: (rows) => this.positions(rows),
      onStatus: (status) => {
        this.lag = status.max_t === null || !this.feed.wall_clock || this.feed.time !== "ms" ? null : Date.now() - status.max_t;
        this.noteNow(status.max_t);
        this.showConnection();
      },
      onState: (connection) => {
        this.connection = connection;
        this.showConnection();
      },
      onError: (message) => toast(message, "critical"),
    });
    this.listen();
    void this.load();
  }

  private timelineBar(): HTMLElement {
    const zoomIn = iconButton("Zoom in (W)", "plus", { kind: "button-sm", onClick: () => this.timeline.zoom(0.6) });
    const zoomOut = iconButton("Zoom out (S)", "minus", { kind: "button-sm", onClick: () => this.timeline.zoom(1.6) });
    return h(
      "div",
      { class: "timeline-bar" },
      h("div", { class: "button-group" }, this.pauseButton, this.liveButton),
      h("div", { class: "button-group" }, zoomOut, zoomIn),
      this.windowNote,
      this.rangeNote,
      h("span", { class: "grow" }),
      iconButton("Keyboard shortcuts (?)", "keyboard", { kind: "button-quiet button-sm", onClick: () => showShortcuts() }),
      this.listButton,
    );
  }

  private mapTools(newQuery: string): HTMLElement {
    return h(
      "div",
      { class: "map-tools" },
      h("div", { class: "button-group" }, iconButton("Queries", "layers", { onClick: () => this.toggleSide() }), this.boxButton, iconButton("Everything in view", "maximize", { onClick: () => this.fitAll() })),
      h("a", { class: "button button-icon", href: newQuery, "aria-label": "New query", title: "New query" }, icon("plus")),
    );
  }

  // ---- Loading and live news

  private async load(): Promise<void> {
    try {
      const [queries, regions] = await Promise.all([
        getAll(address("queries/", { feed: this.feed.name, page_size: 1000 }), queryRow),
        getAll(address("regions/", { feed: this.feed.name, page_size: 1000 }), regionParser, 20_000),
      ]);
      // What may call somebody stands first, then by name.
      this.queries = queries.sort((a, b) => rank(b) - rank(a) || byName.compare(a.name, b.name));
      this.queryById = new Map(queries.map((row) => [row.id, row]));
      this.regions = regions;
      this.panel.setQueries(queries, this.state.hidden);
      this.showEntities();
      this.showRegions();
      this.isDirty = true;
    } catch (error) {
      fail(error);
    }
    this.session.open();
    if (this.state.detection !== null) void this.openDetection(this.state.detection);
    this.setMode(this.state.mode);
    this.setRange(this.state.range, true);
  }

  private showRegions(): void {
    const byName = new Map(this.regions.map((row) => [row.name, row]));
    const colourOf = new Map<string, string>();
    const drawn: DrawnRegion[] = [];
    const hidden = new Set(this.state.hidden);
    this.regionsOfQuery = new Map();
    for (const row of this.queries) {
      const spoken = spokenRegions(row.specification);
      const ids = spoken.names.flatMap((name) => byName.get(name)?.id ?? []);
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
    this.feedMap.regions.set(drawn);
  }

  private news(news: News): void {
    if (news.isSnapshot) {
      this.intervals.clear();
      this.entities.clear();
      for (const row of this.history.values()) this.intervals.put(row);
    }
    for (const id of news.removed) this.intervals.remove(id);
    for (const row of news.changed) this.intervals.put(row);
    this.noteNow(this.session.data.now);
    this.isDirty = true;
    if (news.alerts.length > 0) void refreshAlertCount();
    for (const alert of news.alerts) {
      this.drawer.alertChanged(alert);
      if (!news.isSnapshot && alert.state === "new") notifyAlert(alert, this.queryName(alert.query));
    }
  }

  private positions(rows: Parameters<EntitiesData["put"]>[0][]): void {
    for (const row of rows) this.entities.put(row);
    this.noteNow(this.session.data.now);
    this.entityLayer.changed();
  }

  private noteNow(t: number | null): void {
    if (t !== null && t > this.nowAtFrame.t) this.nowAtFrame = { t, at: performance.now() };
  }

  /** The feed's present: the greatest event time seen, moved on by the wall clock for a while between frames. */
  private now(): number {
    if (this.feed.time !== "ms" || this.connection !== "open") return this.nowAtFrame.t;
    return this.nowAtFrame.t + Math.min(1500, performance.now() - this.nowAtFrame.at);
  }

  // ---- The beat: ten times a second, and only what changed

  private beat(): void {
    const now = this.now();
    if (this.state.window === null && !this.isPaused && now > 0) {
      const span = this.span();
      this.timeline.setWindow(now - span * (1 - AHEAD), now + span * AHEAD, now);
    } else if (now > 0) {
      const [t0, t1] = this.state.window ?? [this.timeline.t0, this.timeline.t1];
      this.timeline.setWindow(t0, t1, now);
    }
    replace(this.bar.clock, h("strong", {}, now > 0 ? formatClock(Math.floor(now), this.feed.time, this.zone) : "–"), this.feed.time === "ms" ? h("span", { class: "faint unit" }, zoneName(this.zone)) : null);
    this.windowNote.textContent = now > 0 ? `${formatSpan(Math.round(this.timeline.t1 - this.timeline.t0), this.feed.time)} shown` : "";
  }

  private refresh(): void {
    if (!this.isDirty) return;
    this.isDirty = false;
    const hidden = new Set(this.state.hidden);
    const shown = this.queries.filter((row) => !hidden.has(row.id)).map((row) => this.intervals.of(row.id));
    const entities = this.state.entities.length > 0 ? new Set(this.state.entities) : null;
    this.timeline.setRows(shown.filter((columns) => columns.intervals.length > 0 || this.queries.length <= 12), (id) => this.queryName(id), entities);
    this.panel.setCounts(new Map(this.queries.map((row) => {
      const columns = this.intervals.of(row.id);
      return [row.id, { total: columns.intervals.length, open: columns.openCount }];
    })));
    this.showNothing(shown.some((columns) => columns.intervals.length > 0));
    if (this.selected !== null) this.keepSelected();
    if (this.state.mode === "list") this.showList();
  }

  private showNothing(isSomething: boolean): void {
    this.nothing.hidden = isSomething || this.session.data.seq === null;
    if (this.nothing.hidden || this.nothing.childElementCount > 0) return;
    const text = this.queries.length === 0 ? "Register a query and its answers appear here as they are found." : "No answers yet. They appear here as they are found.";
    replace(this.nothing, icon("history"), h("span", {}, text));
  }

  /** The selected stay may have ended, grown or gone meanwhile. */
  private keepSelected(): void {
    const found = this.selected === null ? null : this.intervals.find(this.selected.key);
    if (found === null || found === this.selected || (found.end === this.selected?.end && found.detections.length === this.selected.detections.length)) return;
    this.selected = found;
    this.openDrawer(found);
  }

  private showList(): void {
    this.list.show(this.timeline.shown(), this.timeline.t0, this.timeline.t1, this.selected?.key ?? null);
  }

  private span(): number {
    return this.state.span ?? (this.feed.time === "ms" ? 900_000 : 4000);
  }

  // ---- Choices

  private setHidden(hidden: string[]): void {
    this.state.hidden = hidden;
    this.isDirty = true;
    this.showRegions();
    this.handlers.onState();
  }

  private setWindow(window: [number, number]): void {
    this.state.window = window;
    this.state.span = window[1] - window[0];
    this.liveButton.removeAttribute("aria-pressed");
    this.showPause();
    this.loadHistory(window[0]);
    this.handlers.onState();
    if (this.state.mode === "list") this.showList();
  }

  private goLive(): void {
    this.isPaused = false;
    this.state.window = null;
    this.liveButton.setAttribute("aria-pressed", "true");
    this.showPause();
    this.handlers.onState();
  }

  private togglePause(): void {
    if (this.state.window !== null) {
      this.goLive();
      return;
    }
    this.setWindow([this.timeline.t0, this.timeline.t1]);
  }

  private showPause(): void {
    const isFollowing = this.state.window === null;
    replace(this.pauseButton, icon(isFollowing ? "pause" : "play"));
    this.pauseButton.setAttribute("aria-label", isFollowing ? "Pause (space)" : "Follow the present (space)");
    this.liveButton.setAttribute("aria-pressed", String(isFollowing));
  }

  private setRange(range: [number, number] | null, isQuiet = false): void {
    this.state.range = range;
    this.timeline.setRange(range);
    this.rangeNote.hidden = range === null;
    if (range !== null) {
      const text = `${formatClock(range[0], this.feed.time, this.zone)} – ${formatClock(range[1], this.feed.time, this.zone)}`;
      replace(this.rangeNote, h("span", { class: "num" }, text), h("button", { type: "button", "aria-label": "Clear the time range", onClick: () => this.setRange(null) }, icon("x")));
    }
    if (!isQuiet) this.handlers.onState();
    this.drawTracks();
  }

  private setEntities(entities: string[]): void {
    this.state.entities = entities.slice(0, 200);
    this.isDirty = true;
    this.showEntities();
    this.handlers.onState();
    this.drawTracks();
  }

  private showEntities(): void {
    const { entities } = this.state;
    this.entityLayer.selected = new Set(entities);
    this.entityLayer.changed();
    this.panel.setEntities(entities, (entity) => this.setEntities(entities.filter((one) => one !== entity)), () => this.setEntities([]));
  }

  private pickEntity(entity: string): void {
    this.setEntities([entity]);
    this.panTo(entity);
  }

  private panTo(entity: string): void {
    const at = this.session.data.positions.get(entity);
    if (at !== undefined) this.feedMap.map.panTo(latLng(at[1], at[2]));
  }

  private setMode(mode: ViewState["mode"]): void {
    this.state.mode = mode;
    const isList = mode === "list";
    this.list.element.hidden = !isList;
    (this.timeline.canvas.parentElement as HTMLElement).hidden = isList;
    this.listButton.setAttribute("aria-pressed", String(isList));
    if (isList) this.showList();
    else this.timeline.requestDraw();
    this.handlers.onState();
  }

  // ---- Linking: hover and selection of intervals

  private hover(interval: Interval | null): void {
    if (interval?.key === this.hovered?.key) return;
    this.hovered = interval;
    this.timeline.setHovered(interval?.key ?? null);
    this.feedMap.regions.highlight(new Set(this.highlightIds()));
    this.entityLayer.hovered = interval?.entities[0] ?? null;
    this.entityLayer.changed();
    this.drawTracks(90);
  }

  private highlightIds(): string[] {
    const one = this.hovered ?? this.selected;
    return one === null ? [] : (this.regionsOfQuery.get(one.query) ?? []);
  }

  private select(interval: Interval | null, reveal = false): void {
    this.selected = interval;
    this.state.detection = interval?.key ?? null;
    this.timeline.setSelected(interval?.key ?? null, reveal);
    this.feedMap.regions.highlight(new Set(this.highlightIds()));
    if (interval === null) this.drawer.close();
    else this.openDrawer(interval);
    this.handlers.onState();
    if (this.state.mode === "list") this.showList();
    this.drawTracks();
  }

  private openDrawer(interval: Interval): void {
    const detections = interval.detections.flatMap((id) => this.session.data.detections.get(id) ?? this.history.get(id) ?? []);
    const alert = [...this.session.data.alerts.values()].find((row) => row.detection !== null && interval.detections.includes(row.detection)) ?? null;
    this.drawer.open({ interval, detections, query: this.queryById.get(interval.query) ?? null, alert });
  }

  /** A link from an alert may name an answer older than the snapshot: it is fetched and put among the others. */
  private async openDetection(id: string): Promise<void> {
    for (let tries = 0; tries < 20 && this.session.data.seq === null; tries++) await new Promise((resolve) => setTimeout(resolve, 150));
    if (this.intervals.find(id) === null) {
      try {
        const row = await get(address(`detections/${id}/`, { feed: this.feed.name }), detectionDetail);
        this.history.set(row.id, row);
        this.intervals.put(row);
        this.isDirty = true;
      } catch (error) {
        fail(error);
        return;
      }
    }
    const interval = this.intervals.find(id);
    if (interval === null) return;
    this.refresh();
    this.select(interval, true);
    this.showInterval(interval);
  }

  private showInterval(interval: Interval): void {
    const end = interval.end ?? this.now();
    const pad = Math.max((end - interval.start) * 0.6, this.feed.time === "ms" ? 60_000 : 250);
    this.setWindow([interval.start - pad, end + pad]);
    this.timeline.setWindow(interval.start - pad, end + pad, this.now());
    const ids = new Set(this.regionsOfQuery.get(interval.query));
    const geometries = this.regions.filter((row) => ids.has(row.id)).map((row) => row.geometry);
    geometries.push(...spokenRegions(this.queryById.get(interval.query)?.specification).geometries);
    const box = boundsOf(geometries, this.feed.crs === "geographic");
    if (box !== null) this.feedMap.fit(box);
    else if (interval.entities[0] !== undefined) this.panTo(interval.entities[0]);
  }

  private focusQuery(row: QueryRow): void {
    const ids = new Set(this.regionsOfQuery.get(row.id));
    const geometries = [...this.regions.filter((one) => ids.has(one.id)).map((one) => one.geometry), ...spokenRegions(row.specification).geometries];
    const box = boundsOf(geometries, this.feed.crs === "geographic");
    if (box !== null) this.feedMap.fit(box);
    this.feedMap.regions.highlight(ids);
  }

  // ---- Tracks: exactly the interval's span in full colour, thin around it

  private drawTracks(wait = 0): void {
    if (this.trackTimer !== null) clearTimeout(this.trackTimer);
    this.trackTimer = setTimeout(() => void this.fetchTracks(), wait);
  }

  private async fetchTracks(): Promise<void> {
    this.trackRequest?.abort();
    const request = new AbortController();
    this.trackRequest = request;
    try {
      const drawn = await this.wantedTracks(request.signal);
      if (request.signal.aborted) return;
      const focus = this.hovered ?? this.selected;
      const rows = focus === null ? [] : focus.detections.flatMap((id) => this.session.data.detections.get(id) ?? this.history.get(id) ?? []);
      this.feedMap.tracks.set(drawn, rows.flatMap((row) => row.evidence));
    } catch (error) {
      if (!request.signal.aborted) fail(error);
    }
  }

  private async wantedTracks(signal: AbortSignal): Promise<DrawnTrack[]> {
    const focus = this.hovered ?? this.selected;
    const pad = this.feed.time === "ms" ? 45_000 : 250;
    if (focus !== null) {
      const end = Math.round(focus.end ?? this.now());
      const from = focus.isMark ? focus.start - pad : focus.start;
      const made = await this.tracks(focus.entities, focus.start - pad, end + pad, signal);
      return made.map((track) => ({ track, colour: queryColour(focus.query), from, to: focus.isMark ? focus.start : end }));
    }
    const range = this.state.range;
    const wanted = this.state.entities.length > 0 ? this.state.entities : range === null ? [] : this.entitiesWithin(range);
    if (wanted.length === 0) return [];
    const now = Math.round(this.now());
    const made = await this.tracks(wanted.slice(0, MOST_TRACKS), range?.[0] ?? now - (this.feed.time === "ms" ? 600_000 : 10_000), range?.[1] ?? now, signal);
    return made.map((track) => ({ track, colour: token("--accent"), from: null, to: null }));
  }

  private entitiesWithin([from, to]: [number, number]): string[] {
    const found = new Set<string>();
    for (const one of this.timeline.shown()) if (one.start <= to && (one.end ?? Infinity) >= from) for (const entity of one.entities) found.add(entity);
    return [...found];
  }

  private async tracks(entities: readonly string[], from: number, to: number, signal: AbortSignal): Promise<Track[]> {
    if (entities.length === 0) return [];
    const search = new URLSearchParams({ from: String(Math.round(from)), to: String(Math.round(to)) });
    for (const entity of entities) search.append("entity", entity);
    const answer = await get(`feeds/${this.feed.name}/tracks?${search.toString()}`, tracksParser, signal);
    return answer.tracks;
  }

  // ---- History before the snapshot

  private historyFrom = Infinity;

  private loadHistory(t0: number): void {
    const known = this.earliest();
    if (t0 >= known || t0 >= this.historyFrom) return;
    const to = Math.min(known, this.historyFrom);
    this.historyFrom = t0;
    const path = address("detections/", { feed: this.feed.name, from: Math.floor(t0), to: Math.ceil(to), page_size: 1000 });
    getAll(path, detectionDetail, 10_000).then(
      (rows) => {
        for (const row of rows) {
          if (row.weight <= 0) continue;
          this.history.set(row.id, row);
          if (!this.session.data.detections.has(row.id)) this.intervals.put(row);
        }
        this.isDirty = true;
      },
      (error: unknown) => fail(error),
    );
  }

  private earliest(): number {
    let least = Infinity;
    for (const row of this.session.data.detections.values()) if (row.start < least) least = row.start;
    return least;
  }

  // ---- The map: pointer, box, search

  private listen(): void {
    const { map } = this.feedMap;
    map.on("moveend", () => this.viewMoved());
    map.on("mousemove", (event) => this.pointer(event));
    map.on("mouseout", () => this.hideTip());
    map.on("click", (event) => this.click(event));
    map.on("mousedown", (event) => this.startBox(event));
    document.addEventListener("keydown", (event) => this.key(event), { signal: this.abort.signal });
    this.timers.push(setInterval(() => this.beat(), 100), setInterval(() => this.refresh(), 250), setInterval(() => this.state.mode === "list" && this.state.window === null && this.showList(), 2000));
    onThemeChange(() => {
      this.entityLayer.themeChanged();
      this.panel.themeChanged();
      this.showRegions();
    });
    this.viewMoved();
    this.showPause();
  }

  private viewMoved(): void {
    const { map } = this.feedMap;
    const centre = map.getCenter();
    this.state.map = { x: Number(centre.lng.toFixed(5)), y: Number(centre.lat.toFixed(5)), zoom: Number(map.getZoom().toFixed(2)) };
    const box = map.getBounds().pad(0.15);
    this.session.setView([box.getWest(), box.getSouth(), box.getEast(), box.getNorth()]);
    this.handlers.onState();
  }

  private pointer(event: L.LeafletMouseEvent): void {
    const { x, y } = event.containerPoint;
    const entity = this.entityLayer.entityAt(x, y);
    const [px, py] = this.feedMap.project(event.latlng.lng, event.latlng.lat);
    const region = entity === null ? this.feedMap.regions.regionAt(px, py) : null;
    this.feedMap.map.getContainer().style.cursor = this.isBoxMode ? "crosshair" : entity !== null ? "pointer" : "";
    if (this.entityLayer.hovered !== entity) {
      this.entityLayer.hovered = entity;
      this.entityLayer.changed();
    }
    if (entity !== null) this.showTip(x, y, entity, this.currentAnswers(entity));
    else if (region !== null) this.showTip(x, y, region.name, this.queriesOf(region.id));
    else this.hideTip();
    this.feedMap.regions.highlight(new Set([...this.highlightIds(), ...(region === null ? [] : [region.id])]));
  }

  private currentAnswers(entity: string): string[] {
    const lines: string[] = [];
    for (const row of this.queries) {
      const columns = this.intervals.of(row.id);
      if (columns.openCount === 0) continue;
      for (const one of columns.intervals) if (one.end === null && one.entities.includes(entity)) lines.push(`${kindName(one.kind)} · ${row.name}`);
      if (lines.length >= 4) break;
    }
    return lines.length > 0 ? lines : ["Click to follow it"];
  }

  private queriesOf(region: string): string[] {
    const names = this.queries.filter((row) => this.regionsOfQuery.get(row.id)?.includes(region)).map((row) => row.name);
    return names.length > 0 ? names.slice(0, 4) : ["No query uses this region"];
  }

  private showTip(x: number, y: number, title: string, lines: string[]): void {
    this.tip.hidden = false;
    replace(this.tip, h("strong", {}, title), ...lines.map((line) => h("div", { class: "muted" }, line)));
    const width = this.feedMap.map.getSize().x;
    this.tip.style.transform = `translate(${Math.min(x + 16, width - this.tip.offsetWidth - 8)}px, ${Math.max(8, y - 12)}px)`;
    this.tip.style.zIndex = "900";
  }

  private hideTip(): void {
    this.tip.hidden = true;
  }

  private click(event: L.LeafletMouseEvent): void {
    const entity = this.entityLayer.entityAt(event.containerPoint.x, event.containerPoint.y);
    if (entity === null) {
      if (this.state.entities.length > 0) this.setEntities([]);
      return;
    }
    const isAdding = event.originalEvent.ctrlKey || event.originalEvent.metaKey;
    const { entities } = this.state;
    if (isAdding) this.setEntities(entities.includes(entity) ? entities.filter((one) => one !== entity) : [...entities, entity]);
    else this.setEntities(entities.length === 1 && entities[0] === entity ? [] : [entity]);
  }

  private setBoxMode(isOn: boolean): void {
    this.isBoxMode = isOn;
    this.boxButton.setAttribute("aria-pressed", String(isOn));
    this.feedMap.map.getContainer().style.cursor = isOn ? "crosshair" : "";
  }

  private startBox(event: L.LeafletMouseEvent): void {
    if (!this.isBoxMode && !event.originalEvent.shiftKey) return;
    const { map } = this.feedMap;
    map.dragging.disable();
    const start = event.containerPoint;
    const frame = h("div", { class: "selection-box" });
    map.getContainer().append(frame);
    let corners = [start.x, start.y, start.x, start.y] as [number, number, number, number];
    const move = (moved: L.LeafletMouseEvent): void => {
      const { x, y } = moved.containerPoint;
      corners = [Math.min(x, start.x), Math.min(y, start.y), Math.max(x, start.x), Math.max(y, start.y)];
      Object.assign(frame.style, { left: `${corners[0]}px`, top: `${corners[1]}px`, width: `${corners[2] - corners[0]}px`, height: `${corners[3] - corners[1]}px` });
    };
    const end = (): void => {
      map.off("mousemove", move);
      document.removeEventListener("pointerup", end);
      frame.remove();
      map.dragging.enable();
      this.setBoxMode(false);
      if (corners[2] - corners[0] > 4) this.takeBox(corners);
    };
    map.on("mousemove", move);
    document.addEventListener("pointerup", end);
  }

  private takeBox(corners: [number, number, number, number]): void {
    const found = this.entityLayer.entitiesWithin(...corners);
    // The click that ends the drag comes after this and would clear the selection again.
    setTimeout(() => this.setEntities(found), 0);
    toast(found.length === 0 ? "No entity is in that box." : `${found.length > 200 ? "The first 200 of " : ""}${found.length} entities selected; the timeline shows only theirs.`);
  }

  private find(text: string): Found[] {
    const wanted = text.toLowerCase();
    const entities = [...this.session.data.positions.keys()].filter((id) => id.toLowerCase().includes(wanted)).sort((a, b) => a.length - b.length || a.localeCompare(b)).slice(0, 6);
    const match = (name: string): boolean => name.toLowerCase().includes(wanted);
    return [
      ...entities.map((id): Found => ({ kind: "entity", id, name: id })),
      ...this.queries.filter((row) => match(row.name)).slice(0, 5).map((row): Found => ({ kind: "query", id: row.id, name: row.name })),
      ...this.regions.filter((row) => match(row.name)).slice(0, 5).map((row): Found => ({ kind: "region", id: row.id, name: row.name })),
    ];
  }

  private goTo(found: Found): void {
    if (found.kind === "entity") this.pickEntity(found.id);
    const query = found.kind === "query" ? this.queryById.get(found.id) : undefined;
    if (query !== undefined) this.focusQuery(query);
    const region = found.kind === "region" ? this.regions.find((row) => row.id === found.id) : undefined;
    const box = region === undefined ? null : boundsOf([region.geometry], this.feed.crs === "geographic");
    if (box !== null && region !== undefined) {
      this.feedMap.fit(box);
      this.feedMap.regions.highlight(new Set([region.id]));
    }
  }

  private fitAll(): void {
    const rows = [...this.session.data.positions.values()];
    const box = rows.length > 0 ? rows.reduce<[number, number, number, number]>(([w, s, e, n], [, x, y]) => [Math.min(w, x), Math.min(s, y), Math.max(e, x), Math.max(n, y)], [Infinity, Infinity, -Infinity, -Infinity]) : boundsOf(this.regions.map((row) => row.geometry), this.feed.crs === "geographic");
    if (box !== null) this.feedMap.fit(box);
    else toast("There is nothing on this feed yet.");
  }

  // ---- Keyboard, connection

  private key(event: KeyboardEvent): void {
    if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const isOnControl = event.target instanceof HTMLElement && event.target.closest("button, a, [role=separator], [role=menu]") !== null;
    const actions: Record<string, () => void> = {
      w: () => this.timeline.zoom(0.7),
      s: () => this.timeline.zoom(1.43),
      a: () => this.timeline.pan(-0.15),
      d: () => this.timeline.pan(0.15),
      j: () => this.stepTo(1),
      k: () => this.stepTo(-1),
      l: () => this.goLive(),
      "/": () => this.search.focus(),
      "?": () => showShortcuts(),
      Escape: () => this.escape(),
    };
    if (!isOnControl) actions[" "] = () => this.togglePause();
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  }

  private stepTo(direction: 1 | -1): void {
    const next = this.timeline.neighbour(direction);
    if (next === null) return;
    this.select(next, true);
    const { t0, t1 } = this.timeline;
    if (next.start < t0 || next.start > t1) this.setWindow([next.start - (t1 - t0) / 2, next.start + (t1 - t0) / 2]);
  }

  private escape(): void {
    if (this.drawer.isOpen) this.select(null);
    else if (this.state.range !== null) this.setRange(null);
    else if (this.state.entities.length > 0) this.setEntities([]);
  }

  private toggleSide(): void {
    this.body.dataset["side"] = this.body.dataset["side"] === "open" ? "closed" : "open";
  }

  private showConnection(): void {
    const { state } = this.bar;
    const isBehind = this.connection === "open" && this.lag !== null && this.lag > this.feed.lateness + 15_000;
    const kind = isBehind ? "behind" : this.connection === "open" ? "live" : this.connection;
    const texts = { live: "Live", behind: `Behind ${formatSpan(Math.round((this.lag ?? 0) / 1000) * 1000, "ms")}`, connecting: "Connecting", reconnecting: "Reconnecting", refused: "Logged out", forbidden: "Not shared" };
    const titles = { live: "Connected: answers appear as they are found", behind: "Events arrive later than they happened: see Feeds", connecting: "Opening the live connection", reconnecting: "The connection was lost; press to try now. Nothing is lost: what was missed is fetched.", refused: "Log in again to go on", forbidden: "This feed is not shared with you any more" };
    state.className = `state state-${kind}`;
    state.textContent = texts[kind];
    state.title = titles[kind];
    if (kind === "refused") location.assign(`/login/?next=${encodeURIComponent(location.pathname + location.search)}`);
  }

  private queryName(id: string): string {
    return this.queryById.get(id)?.name ?? `Query ${id}`;
  }

  close(): void {
    this.abort.abort();
    for (const timer of this.timers) clearInterval(timer);
    this.session.close();
    this.feedMap.remove();
    this.element.remove();
  }
}

const byName = new Intl.Collator("en", { numeric: true });

/** Queries that open alerts above those that do not, by severity. */
function rank(row: QueryRow): number {
  return row.alert_kinds.length === 0 ? -1 : SEVERITIES.indexOf(row.severity);
}

function showShortcuts(): void {
  const rows: [string, string][] = [
    ["W  S", "Zoom the timeline in and out"],
    ["A  D", "Move back and forward in time"],
    ["J  K", "Next and previous answer"],
    ["L", "Follow the present"],
    ["Space", "Pause and go on"],
    ["/", "Find an entity, a query or a region"],
    ["Esc", "Close details, clear the range, clear the selection"],
    ["Shift + drag", "On the map: select entities; on the timeline: mark a time range"],
  ];
  openDialog("Keyboard", h("div", { class: "shortcut-list" }, ...rows.flatMap(([keys, text]) => [h("span", {}, ...keys.split("  ").map((key) => h("kbd", {}, key))), h("span", { class: "muted" }, text)]))).foot.remove();
}
