/**
 * The live page of one feed: map over timeline, panels at the side, all linked with each other. The
 * parts are in `live/`.
 */

import { t } from "../lib/texts";
import { query as address } from "../lib/api";
import { h } from "../lib/dom";
import { EntitiesData } from "../data/entities_data";
import type { Feed } from "../lib/shapes";
import type { ViewState } from "../data/view_state";
import { onThemeChange } from "../lib/colours";
import type { Zone } from "../lib/time";
import { LiveSession, type News } from "../data/live_session";
import type { ConnectionState } from "../live/socket";
import { DrawerView } from "./drawer_view";
import { EntityLayer } from "./entity_layer";
import { Answers } from "./live/answers";
import { ConnectionView } from "./live/connection";
import { isSideOpen, liveFrame, releaseMessages, skipLinks, toggleSide } from "./live/frame";
import { covered } from "./live/in_sight";
import { EntityCard } from "./live/entity_card";
import { Overlays } from "./live/overlays";
import { HalfDone } from "./live/half_done";
import { liveActions, pressed } from "./live/keyboard";
import { MapLooks } from "./live/map_looks";
import { LiveModel } from "./live/model";
import { showPlaceless } from "./live/placeless";
import { Places } from "./live/places";
import { Positions } from "./live/positions";
import { slowestOf } from "./live/standstill";
import { MapPointer } from "./live/pointer";
import { Selection } from "./live/selection";
import { TimeControl } from "./live/time_control";
import { LiveTracks } from "./live/tracks";
import { openMap, type FeedMap, shownBox } from "./map_view";
import { notifyAlert } from "./notifications";
import { QueryPanelView } from "./query_panel_view";
import { SearchView } from "./search_view";
import { fail, refreshAlertCount, toast } from "./shell_view";
import { TruthView } from "./truth_view";

const [BEAT_MS, REFRESH_MS] = [100, 250];
/** The list is updated more slowly than the window moves: jumping rows cannot be read. */
const LIST_MS = 2000;
export interface LiveHandlers {
  /** The choices changed: they are written into the address. */
  onState: () => void;
  onCopyLink: () => void;
}

export class LiveView {
  readonly element: HTMLElement;
  readonly bar: { clock: HTMLElement; state: HTMLElement };
  readonly search: SearchView;
  private readonly model: LiveModel;
  private readonly session: LiveSession;
  private readonly connection: ConnectionView;
  private readonly selection: Selection;
  private readonly pointer: MapPointer;
  private readonly places: Places;
  private readonly time: TimeControl;
  private readonly tracks: LiveTracks;
  private readonly looks: MapLooks;
  private readonly feedMap: FeedMap;
  private readonly positions: Positions;
  private readonly entityLayer: EntityLayer;
  private readonly answers: Answers;
  private readonly panel: QueryPanelView;
  private readonly truth: TruthView;
  private readonly halfDone: HalfDone;
  private readonly card: EntityCard;
  private readonly drawer: DrawerView;
  private readonly skip: HTMLElement;
  private isOpened = false;
  /** The note that rows have no places. */
  private placeless: HTMLElement | null = null;
  private readonly opensAnywhere: boolean;
  /** Whether the clock was live at the last update. */
  private wasPast = false;
  private readonly timers: ReturnType<typeof setInterval>[] = [];
  private readonly abort = new AbortController();

  constructor(
    feed: Feed,
    zone: Zone,
    readonly state: ViewState,
    private readonly handlers: LiveHandlers,
  ) {
    this.opensAnywhere = state.map === null && feed.view === null && feed.plan_bounds === null;
    this.session = this.openSession(feed);
    this.model = new LiveModel(feed, zone, state, this.session.data, fail);
    this.connection = new ConnectionView(feed, zone, () => (this.model.clock.isLive ? this.session.retryNow() : this.time.goLive()));
    this.selection = new Selection(
      this.model,
      () => ({
        timeline: this.answers.timeline,
        drawer: this.drawer,
        regions: this.feedMap.regions,
        entities: this.entityLayer,
        tracks: this.tracks,
        time: this.time,
        panels: () => this.panels(),
        refresh: () => this.refresh(),
      }),
      () => this.chosen(),
    );
    this.pointer = new MapPointer(this.model, {
      onEntities: (entities) => this.setEntities(entities),
      onRegion: (region) => this.selection.pointAtRegion(region),
    });
    this.time = new TimeControl(this.model, () => this.answers.timeline, {
      onState: handlers.onState,
      onRange: () => this.rangeChanged(),
      onMode: () => this.answers.showMode(),
      onTime: () => this.timeChosen(),
    });
    this.drawer = new DrawerView(feed, zone, {
      onClose: () => this.selection.select(null),
      onZoom: (interval) => this.selection.show(interval),
      onEntity: (entity) => this.pickEntity(entity),
      onAlert: (alert) => this.model.data.alerts.set(alert.id, alert),
    });
    const newQueryUrl = address("/queries/new", { feed: feed.name });
    this.truth = new TruthView(feed.name);
    this.card = new EntityCard(this.model, { onClose: () => this.setEntities([]), onAnswer: (one) => this.selection.select(one) });
    this.halfDone = new HalfDone(this.model, (query) => this.places.goToQuery(query));
    this.panel = this.makePanel(newQueryUrl);
    this.answers = new Answers(this.model, {
      onHover: (one) => this.selection.hover(one),
      onSelect: (one) => this.selection.select(one),
      onRange: (range) => this.time.setRange(range),
      onPan: (dt) => this.time.pan(dt),
      onZoom: (factor, about) => this.time.zoom(factor, about),
      onInstant: (t) => this.time.seek(t),
      onGo: (one) => this.time.goTo(one),
      selectedKey: () => this.selection.selected?.key ?? null,
    });
    const mapElement = h("div", { class: "map-canvas" });
    this.element = liveFrame({
      map: mapElement,
      tip: this.pointer.tip,
      boxButton: this.pointer.boxButton,
      entity: [this.card.element, this.halfDone.element],
      panel: this.panel.element,
      drawer: this.drawer.element,
      timeBar: this.time.element,
      answers: this.answers.element,
      newQueryUrl,
      onSide: () => this.toggleSide(),
      onFitAll: () => this.places.fitAll(),
    });
    this.showTruth();
    document.getElementById("page")?.append(this.element);
    this.skip = skipLinks(this.element);
    document.getElementById("page")?.prepend(this.skip);
    this.feedMap = openMap(mapElement, feed, { at: state.map, covered: () => covered(mapElement.getBoundingClientRect(), this.panels()) });
    const entities = new EntitiesData(this.feedMap.project, slowestOf(feed));
    this.entityLayer = new EntityLayer(entities).addTo(this.feedMap.map);
    this.positions = new Positions(
      this.model,
      entities,
      this.entityLayer,
      () => this.time.beat(),
      // For measurements: the instant whose positions the map shows.
      (instant) => (this.element.dataset["shown"] = String(instant)),
    );
    this.looks = new MapLooks(this.model, this.feedMap, entities, this.entityLayer);
    const overlays = new Overlays(feed, this.feedMap, () => this.looks.items());
    this.pointer.boxButton.after(overlays.button);
    mapElement.after(this.looks.legend);
    this.tracks = new LiveTracks(
      this.model,
      this.feedMap,
      () => this.selection.focus,
      (range) => [...this.answers.entitiesWithin(range)],
    );
    this.places = new Places(this.model, this.feedMap, this.entityLayer, (entity) => this.pickEntity(entity));
    this.search = new SearchView({
      find: (text) => this.places.find(text),
      ask: (text, signal) => this.places.findRegistered(text, signal),
      onPick: (found) => this.places.goTo(found),
      onFault: fail,
    });
    this.bar = { clock: this.time.clock, state: this.connection.element };
    this.listen();
    void this.load();
  }

  private openSession(feed: Feed): LiveSession {
    return new LiveSession(feed.name, {
      onNews: (news) => this.news(news),
      onPositions: (rows, clock) => {
        this.positions.take(rows, clock);
        if (rows.length > 0) this.placeless?.remove();
        this.model.noteNow(this.model.data.now);
      },
      onStatus: (status) => {
        this.positions.take([], status.max_t);
        this.model.noteNow(status.max_t);
        this.connection.setStatus(status);
        this.model.catchingUp = status.catching_up;
        this.panel.setCatchingUp(status.catching_up);
        this.answers.showNothing();
      },
      onState: (connection: ConnectionState) => {
        this.model.isConnected = connection === "open";
        this.connection.setState(connection);
      },
      onError: (message) => toast(message, "critical"),
    });
  }

  private makePanel(newQueryUrl: string): QueryPanelView {
    return new QueryPanelView({
      onHidden: (hidden) => this.setHidden([...hidden]),
      onFocus: (row) => this.places.goToQuery(row),
      onHover: (row) => this.selection.highlight(row?.id),
      onClose: () => this.toggleSide(),
      newQueryUrl: () => newQueryUrl,
      below: this.truth.element,
    });
  }

  /** The places of open panels, over the map or next to it. */
  private panels(): DOMRect[] {
    const side = isSideOpen(this.element) ? [this.panel.element] : [];
    return [...side, ...(this.drawer.isOpen ? [this.drawer.element] : [])].map((panel) => panel.getBoundingClientRect());
  }

  private toggleSide(): void {
    toggleSide(this.element);
    this.showTruth();
  }

  /** It is requested only while it is visible. */
  private showTruth(): void {
    if (isSideOpen(this.element)) this.truth.open();
    else this.truth.close();
  }

  // ---- Loading and live updates

  private async load(): Promise<void> {
    await this.loadQueries().catch(fail);
    this.session.open();
    const { detection, window } = this.state;
    if (detection !== null) void this.selection.open(detection, window !== null);
    this.time.setMode(this.state.mode);
    if (this.state.range !== null) this.time.setRange(this.state.range);
  }

  private async loadQueries(): Promise<void> {
    await this.model.load();
    this.panel.setQueries(this.model.queries, this.state.hidden);
    this.showEntities();
    this.feedMap.regions.set(this.model.drawnRegions());
  }

  private news(news: News): void {
    // Without updates in between, queries may have been registered, changed or removed.
    if (news.isSnapshot && this.isOpened) void this.loadQueries().catch(() => undefined);
    if (news.isSnapshot) this.positions.clearPresent();
    if (news.isSnapshot) this.connection.loaded();
    this.model.take(news);
    if (news.isSnapshot) this.opened();
    if (news.isSnapshot) this.model.loading.loadRetracted(this.model.window()[0]).catch(fail);
    if (this.model.hasUnknown) void this.fetchUnknown();
    if (news.alerts.length > 0) refreshAlertCount();
    for (const alert of news.alerts) {
      this.drawer.alertChanged(alert);
      if (!news.isSnapshot && alert.state === "new" && !alert.muted) notifyAlert(alert);
    }
  }

  /** Queries registered since the page was opened are loaded with their first answers. */
  private async fetchUnknown(): Promise<void> {
    if (!(await this.model.fetchUnknown())) return;
    this.panel.setQueries(this.model.queries, this.state.hidden);
    this.feedMap.regions.set(this.model.drawnRegions());
  }

  private refresh(): void {
    if (this.model.isDirty) {
      this.model.isDirty = false;
      this.answers.refresh();
      this.selection.keep();
      this.showWithin();
    }
    this.showHolding();
    this.places.keepInSight();
    this.card.show();
  }

  /**
   * The entities of answers that hold at the instant shown, for the map and the panel of queries.
   */
  private showHolding(): void {
    const now = this.model.now();
    const { marks, open } = this.model.holdingAt(now);
    this.entityLayer.marks = marks;
    this.entityLayer.changed();
    const totals = this.model.totalsWithin(this.model.window());
    this.answers.timeline.setCounts(this.model.loading.counts, this.model.loading.coverage, totals);
    this.panel.setCounts(
      new Map(this.model.queries.map(({ id }) => [id, { total: totals.get(id) ?? 0, open: open.get(id) ?? 0 }])),
      this.model.clock.isLive,
    );
  }

  // ---- Time

  /**
   * The first snapshot has arrived: shows the instant of the address, or the present with the
   * tracks of the last minute.
   */
  private opened(): void {
    if (this.isOpened) return;
    this.isOpened = true;
    this.time.open();
    if (!this.model.clock.isLive) return;
    void this.positions.showPresent().then(() => {
      this.frameUnknown();
      if (!Number.isFinite(this.model.clock.earliest)) return;
      this.showRecording(this.model.clock.earliest);
      if (this.positions.isEmpty && this.model.drawnRegions().length === 0) this.placeless = showPlaceless(this.element);
    });
  }

  /** A recording that has ended is shown as a whole: its last minutes show little. */
  private showRecording(begin: number): void {
    const factor = this.model.recordingFactor(begin, Date.now());
    if (factor > 1) this.time.zoom(factor, this.model.present());
  }

  /**
   * Without a view, a plan or a position in the address, the map is fitted to the feed's entities.
   */
  private frameUnknown(): void {
    if (this.opensAnywhere && this.model.data.positions.size > 0) this.places.fitAll();
  }

  /** The reader chose the instant or the window: its answers and positions have to be loaded. */
  private timeChosen(): void {
    const { clock } = this.model;
    this.connection.setClock(
      clock.isLive
        ? null
        : clock.isPlaying
          ? t("Playing {rate}×", { rate: `${clock.rate < 0 ? "−" : ""}${Math.abs(clock.rate)}` })
          : t("Paused"),
    );
    if (clock.isLive && this.wasPast) void this.positions.showPresent();
    this.wasPast = !clock.isLive;
    this.model.loadHistory(clock.window()).catch(fail);
    this.answers.showList();
    this.card.again();
    this.looks.moved();
    this.tracks.draw(150);
    this.positions.showPast();
  }

  // ---- Choices

  /**
   * The window has moved with the clock: the list is updated, and while it plays the
   * next answers are fetched.
   */
  private followed(): void {
    this.answers.showList();
    if (this.model.clock.isLive) this.tracks.follow();
    if (this.model.clock.isPlaying) this.model.loadHistory(this.model.window()).catch(fail);
  }

  private chosen(): void {
    this.handlers.onState();
    this.answers.showList();
  }

  private setHidden(hidden: string[]): void {
    this.state.hidden = hidden;
    this.model.isDirty = true;
    this.feedMap.regions.set(this.model.drawnRegions());
    this.looks.moved();
    this.handlers.onState();
  }

  private setEntities(entities: string[]): void {
    this.model.chooseEntities(entities);
    this.showEntities();
    this.handlers.onState();
    this.tracks.draw();
  }

  private showEntities(): void {
    this.entityLayer.selected = new Set(this.state.entities);
    this.entityLayer.changed();
    const entity = this.state.entities.length === 1 ? this.state.entities[0]! : null;
    this.places.followed = entity;
    this.card.open(entity);
    this.halfDone.open(entity);
    this.panel.setEntities(
      this.state.entities,
      (entity) => this.setEntities(this.state.entities.filter((one) => one !== entity)),
      () => this.setEntities([]),
    );
  }

  private pickEntity(entity: string): void {
    this.setEntities([entity]);
    this.places.follow(entity);
  }

  private rangeChanged(): void {
    this.showWithin();
    this.answers.showList();
    this.tracks.draw();
  }

  private showWithin(): void {
    const { range } = this.state;
    if (range === null && this.entityLayer.within === null) return;
    this.entityLayer.within = range === null ? null : this.answers.entitiesWithin(range);
    this.entityLayer.changed();
  }

  // ---- Events

  private listen(): void {
    this.pointer.attach(this.feedMap, this.entityLayer);
    this.feedMap.map.on("moveend", () => this.viewMoved());
    const actions = liveActions({
      timeline: this.answers.timeline,
      selection: this.selection,
      time: this.time,
      search: this.search,
      escape: () => this.escape(),
      copyLink: this.handlers.onCopyLink,
    });
    document.addEventListener("keydown", (event) => pressed(event, actions), { signal: this.abort.signal });
    this.timers.push(
      setInterval(() => this.time.beat(), BEAT_MS),
      setInterval(() => this.refresh(), REFRESH_MS),
      setInterval(() => (this.model.clock.isLive || this.model.clock.isPlaying) && this.followed(), LIST_MS),
    );
    onThemeChange(() => {
      this.entityLayer.themeChanged();
      this.looks.themeChanged();
      this.panel.themeChanged();
      this.feedMap.regions.set(this.model.drawnRegions());
    });
    this.viewMoved();
  }

  private viewMoved(): void {
    const { map } = this.feedMap;
    const centre = map.getCenter();
    this.state.map = { x: Number(centre.lng.toFixed(5)), y: Number(centre.lat.toFixed(5)), zoom: Number(map.getZoom().toFixed(2)) };
    this.session.setView(shownBox(map.getBounds().pad(0.15), this.model.feed.crs === "geographic"));
    this.handlers.onState();
  }

  /** The instant that the page shows now, also while it plays. */
  stateNow(): ViewState {
    const { clock } = this.model;
    return clock.isLive ? this.state : { ...this.state, window: clock.window(), instant: clock.now() };
  }

  /** The ids of queries that the reader has not hidden; null: none is hidden. */
  get shownQueries(): string[] | null {
    return this.state.hidden.length === 0 ? null : this.model.queries.map((row) => row.id).filter((id) => !this.state.hidden.includes(id));
  }

  private escape(): void {
    if (this.drawer.isOpen) this.selection.select(null);
    else if (this.state.range !== null) this.time.setRange(null);
    else if (this.state.entities.length > 0) this.setEntities([]);
  }

  close(): void {
    this.abort.abort();
    for (const timer of this.timers) clearInterval(timer);
    this.model.loading.close();
    this.positions.close();
    this.truth.close();
    this.card.close();
    this.halfDone.close();
    this.tracks.close();
    this.looks.close();
    this.session.close();
    this.feedMap.remove();
    this.skip.remove();
    releaseMessages();
    this.element.remove();
  }
}
