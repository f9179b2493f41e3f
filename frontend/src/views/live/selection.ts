/**
 * The hovered and the selected answer: the same one on the timeline, in the list, on
 * the map and in the drawer.
 */

import { orderedEvidence, participants, reach } from "../../data/evidence";
import type { Interval } from "../../data/interval";
import { detectionDetail } from "../../lib/shapes";
import { get, query as address } from "../../lib/api";
import type { DrawerView } from "../drawer_view";
import type { EntityLayer } from "../entity_layer";
import type { RegionLayer } from "../region_layer";
import { fail } from "../shell_view";
import type { TimelineView } from "../timeline_view";
import { covered, windowInSight } from "./in_sight";
import type { LiveModel } from "./model";
import type { TimeControl } from "./time_control";
import type { Focus, LiveTracks } from "./tracks";

export interface Linked {
  timeline: TimelineView;
  drawer: DrawerView;
  regions: RegionLayer;
  entities: EntityLayer;
  tracks: LiveTracks;
  time: TimeControl;
  /** The places where panels may cover other parts. */
  panels: () => DOMRect[];
  /** Shows changes of the model immediately. */
  refresh: () => void;
}

export class Selection {
  hovered: Interval | null = null;
  selected: Interval | null = null;
  private regionUnderPointer: string | null = null;
  private isStepping = false;

  constructor(
    private readonly model: LiveModel,
    private readonly linked: () => Linked,
    private readonly onChange: () => void,
  ) {}

  get focus(): Focus | null {
    const interval = this.hovered ?? this.selected;
    return interval === null ? null : { interval, isChosen: this.hovered === null };
  }

  hover(interval: Interval | null): void {
    if (interval?.key === this.hovered?.key) return;
    this.hovered = interval;
    this.linked().timeline.setHovered(interval?.key ?? null);
    this.showFocus();
    this.linked().tracks.draw(90);
  }

  select(interval: Interval | null, reveal = false): void {
    const { timeline, drawer, tracks } = this.linked();
    this.selected = interval;
    this.model.state.detection = interval?.key ?? null;
    timeline.setSelected(interval, reveal, interval === null ? [] : orderedEvidence(this.model.detections(interval)));
    this.showFocus();
    if (interval === null) drawer.close();
    else this.openDrawer(interval);
    this.onChange();
    tracks.draw();
  }

  /** Highlights the regions of its query and its entities on the map. */
  private showFocus(): void {
    const { entities } = this.linked();
    const interval = this.focus?.interval ?? null;
    entities.focused = new Set(
      interval === null
        ? []
        : participants(
            interval.entities,
            this.model.detections(interval).flatMap((row) => row.evidence),
          ),
    );
    entities.isAnswerChosen = this.selected !== null;
    entities.changed();
    this.highlight();
  }

  pointAtRegion(region: string | null): void {
    this.regionUnderPointer = region;
    this.highlight();
  }

  highlight(query: string | null = this.focus?.interval.query ?? null): void {
    const ids = query === null ? [] : (this.model.regionsOfQuery.get(query) ?? []);
    this.linked().regions.highlight(new Set(this.regionUnderPointer === null ? ids : [...ids, this.regionUnderPointer]));
  }

  private openDrawer(interval: Interval): void {
    const { model } = this;
    const detections = model.detections(interval);
    const last = detections[detections.length - 1];
    const version = last?.version;
    const again = (): void => {
      if (this.selected?.query === interval.query) this.openDrawer(this.selected);
    };
    const rules = version === undefined ? null : model.rulesOf(interval.query, version, again);
    const query = model.query(interval.query);
    const gone = query !== null || last === undefined ? null : model.goneQuery(last, again);
    this.linked().drawer.open({ interval, detections, query, gone, rules, alert: model.alertOf(interval) });
  }

  /** The selected stay may have ended, grown, been revised or removed meanwhile. */
  keep(): void {
    if (this.selected === null) return;
    const found = this.model.intervals.find(this.selected.key);
    const { end, detections, isRetracted } = this.selected;
    if (
      found === null ||
      found === this.selected ||
      (found.end === end && found.isRetracted === isRetracted && found.detections.length === detections.length)
    )
      return;
    this.selected = found;
    this.linked().timeline.setSelected(found, false, orderedEvidence(this.model.detections(found)));
    this.openDrawer(found);
    this.linked().tracks.draw();
  }

  /**
   * A link from an alert may name an answer older than the snapshot: it is fetched and added.
   * Timeline and map move to it, unless `isPlaced`: the link sets the window that they show.
   */
  async open(id: string, isPlaced: boolean): Promise<void> {
    for (let tries = 0; tries < 100 && this.model.data.seq === null; tries++) await new Promise((resolve) => setTimeout(resolve, 150));
    try {
      if (this.model.intervals.find(id) === null)
        this.model.remember(await get(address(`detections/${id}/`, { feed: this.model.feed.name }), detectionDetail));
    } catch (error) {
      fail(error);
      return;
    }
    const interval = this.model.intervals.find(id);
    if (interval === null) return;
    this.linked().refresh();
    if (isPlaced) this.linked().tracks.stayAt(interval);
    this.select(interval, true);
    if (!isPlaced) this.show(interval);
  }

  /** Moves timeline and map to the answer. */
  show(interval: Interval): void {
    const { time, tracks, timeline, panels } = this.linked();
    const [from, to] = reach(interval.start, interval.end ?? this.model.present(), this.model.detections(interval));
    const pad = Math.max((to - from) * 0.6, this.model.inUnit(60_000, 250));
    time.show(windowInSight([from - pad, to + pad], timeline.plot, covered(timeline.plot, panels())), interval.start);
    tracks.fitTo(interval);
  }

  /**
   * Selects the next or previous answer. Without a selection: the one in the middle of the window,
   * or nearest to the instant if only counts of the window's answers are loaded.
   */
  async step(direction: 1 | -1): Promise<void> {
    if (this.isStepping) return;
    this.isStepping = true;
    try {
      const next = await this.neighbour(direction);
      if (next === null) return;
      this.select(next, true);
      const { timeline, time } = this.linked();
      if (!this.model.clock.isLive || next.start < timeline.t0 || next.start > timeline.t1) time.seek(next.start);
    } catch (error) {
      fail(error);
    } finally {
      this.isStepping = false;
    }
  }

  /** If only counts are loaded, the answers are fetched first. */
  private async neighbour(direction: 1 | -1): Promise<Interval | null> {
    const { model, selected } = this;
    const { timeline, refresh } = this.linked();
    const isSingle = model.clock.isLive || model.loading.knows(...model.clock.window());
    const at = selected?.start ?? (isSingle ? null : model.now());
    const known = timeline.neighbour(direction, at);
    if (at === null) return known;
    if (!model.loading.knows(at, known?.start ?? (direction === 1 ? model.present() : -Infinity))) {
      await model.loadBeside(at, direction);
      refresh();
    }
    const next = timeline.neighbour(direction, at);
    if (next === null) return null;
    await model.loading.loadEnd(next);
    refresh();
    return model.intervals.find(next.key);
  }
}
