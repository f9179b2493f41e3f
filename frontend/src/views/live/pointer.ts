/** The pointer on the live map: what is under it, clicks, and the box that selects entities. */

import { t, tn } from "../../lib/texts";
import type * as L from "leaflet";
import { entityFacts, entityReports } from "../../data/entity_facts";
import { get, isShared, query as address } from "../../lib/api";
import { h, iconButton, replace } from "../../lib/dom";
import { Latest } from "../../lib/latest";
import { formatClock } from "../../lib/time";
import { kindName } from "../../lib/words";
import type { EntityLayer } from "../entity_layer";
import type { FeedMap } from "../map_view";
import { toast } from "../shell_view";
import type { LiveModel } from "./model";
import { openRegionCard } from "./region_card";

export interface PointerHandlers {
  onEntities: (entities: string[]) => void;
  /** The region under the pointer. */
  onRegion: (region: string | null) => void;
}

/** Hovering over many entities in passing requests nothing. */
const HOVERED_MS = 150;
const MOST_FACTS = 6;
/** The number of names in a cluster's tooltip. */
const MOST_NAMES = 6;

type Corners = [number, number, number, number];

export class MapPointer {
  readonly boxButton = iconButton(t("Select entities in a box (Shift and drag)"), "square-dashed-mouse-pointer", {
    onClick: () => this.setBoxMode(!this.isBoxMode),
  });
  readonly tip = h("div", { class: "timeline-tip map-tip", hidden: true });
  private isBoxMode = false;
  private feedMap: FeedMap | null = null;
  private entities: EntityLayer | null = null;
  /**
   * The last report of the entity under the pointer. Without a response the tooltip
   * shows what the page knows.
   */
  private readonly facts = new Latest<[entity: string]>(
    (signal, entity) => this.askFacts(signal, entity),
    () => undefined,
  );
  /** The pointer's position in pixels of the map. */
  private at: [x: number, y: number] = [0, 0];
  private known: { entity: string; lines: string[] } | null = null;

  constructor(
    private readonly model: LiveModel,
    private readonly handlers: PointerHandlers,
  ) {}

  attach(feedMap: FeedMap, entities: EntityLayer): void {
    [this.feedMap, this.entities] = [feedMap, entities];
    feedMap.map.on("mousemove", (event) => this.move(feedMap, entities, event));
    feedMap.map.on("mouseout", () => this.hideTip());
    feedMap.map.on("click", (event) => this.click(entities, event));
    feedMap.map.on("mousedown", (event) => this.startBox(feedMap.map, event));
  }

  private move(feedMap: FeedMap, layer: EntityLayer, event: L.LeafletMouseEvent): void {
    const { x, y } = event.containerPoint;
    this.at = [x, y];
    const entity = layer.entityAt(x, y);
    const cluster = entity === null ? layer.clusterAt(x, y) : null;
    const [px, py] = feedMap.project(event.latlng.lng, event.latlng.lat);
    const region = entity === null && cluster === null ? feedMap.regions.regionAt(px, py) : null;
    feedMap.map.getContainer().style.cursor = this.isBoxMode ? "crosshair" : entity !== null || cluster !== null ? "pointer" : "";
    if (layer.hovered !== entity) {
      layer.hovered = entity;
      layer.changed();
      this.known = null;
      if (entity === null) this.facts.drop();
      else this.facts.after(HOVERED_MS, entity);
    }
    if (entity !== null) this.showEntity(feedMap.map, layer, entity);
    else if (cluster !== null) this.showTip(feedMap.map, x, y, t("{count} entities", { count: cluster.ids.length }), clusterLines(cluster));
    else if (region !== null) this.showTip(feedMap.map, x, y, region.name, this.queriesOf(region.id));
    else this.hideTip();
    this.handlers.onRegion(region?.id ?? null);
  }

  private showEntity(map: L.Map, layer: EntityLayer, entity: string): void {
    const facts = this.known?.entity === entity ? this.known.lines : [];
    this.showTip(map, ...this.at, entity, [...this.silence(layer, entity), ...facts, ...this.currentAnswers(entity)]);
  }

  private async askFacts(signal: AbortSignal, entity: string): Promise<void> {
    const { feed, clock } = this.model;
    const t = clock.isLive ? null : Math.floor(this.model.now());
    const reports = await get(address(`feeds/${feed.name}/entity`, { id: entity, t }), entityReports, signal);
    const lines = entityFacts(reports, feed, this.model.now()).map(([name, text]) => `${name}: ${text}`);
    this.known = { entity, lines: lines.slice(0, MOST_FACTS) };
    if (this.entities?.hovered === entity && this.feedMap !== null) this.showEntity(this.feedMap.map, this.entities, entity);
  }

  private currentAnswers(entity: string): string[] {
    const lines: string[] = [];
    for (const row of this.model.queries) {
      const columns = this.model.intervals.of(row.id);
      if (columns.openCount === 0) continue;
      for (const one of columns.intervals)
        if (one.end === null && !one.isRetracted && one.entities.includes(entity)) lines.push(`${kindName(one.kind)} · ${row.name}`);
      if (lines.length >= 4) break;
    }
    return lines.length > 0 ? lines.slice(0, 4) : [t("Click to follow it")];
  }

  /** The time of its last report, if its next one is overdue. */
  private silence(layer: EntityLayer, entity: string): string[] {
    const { feed, zone, data } = this.model;
    const last = data.positions.get(entity);
    return last === undefined || layer.presence(entity) === "here"
      ? []
      : [t("Silent since {formatClock}", { formatClock: formatClock(last[3], feed.time, zone) })];
  }

  private queriesOf(region: string): string[] {
    const names = this.model.queries.filter((row) => this.model.regionsOfQuery.get(row.id)?.includes(region)).map((row) => row.name);
    return names.length > 0 ? names.slice(0, 4) : [t("No query uses this region")];
  }

  private showTip(map: L.Map, x: number, y: number, title: string, lines: string[]): void {
    this.tip.hidden = false;
    replace(this.tip, h("strong", {}, title), ...lines.map((line) => h("div", { class: "muted" }, line)));
    const size = map.getSize();
    const left = Math.min(x + 16, size.x - this.tip.offsetWidth - 8);
    const top = Math.min(Math.max(8, y - 12), size.y - this.tip.offsetHeight - 8);
    this.tip.style.transform = `translate(${Math.max(8, left)}px, ${top}px)`;
    this.tip.style.zIndex = "900";
  }

  hideTip(): void {
    this.facts.drop();
    this.tip.hidden = true;
  }

  private click(layer: EntityLayer, event: L.LeafletMouseEvent): void {
    const entity = layer.entityAt(event.containerPoint.x, event.containerPoint.y);
    const { entities } = this.model.state;
    const cluster = entity === null ? layer.clusterAt(event.containerPoint.x, event.containerPoint.y) : null;
    if (cluster !== null) {
      this.openCluster(cluster, event.latlng);
      return;
    }
    if (entity === null) {
      if (entities.length > 0) this.handlers.onEntities([]);
      else this.openRegion(event.latlng);
      return;
    }
    const isAdding = event.originalEvent.ctrlKey || event.originalEvent.metaKey;
    if (isAdding) this.handlers.onEntities(entities.includes(entity) ? entities.filter((one) => one !== entity) : [...entities, entity]);
    else this.handlers.onEntities(entities.length === 1 && entities[0] === entity ? [] : [entity]);
  }

  /** Pages of regions and queries need a log-in. */
  private openRegion(at: L.LatLng): void {
    if (this.feedMap === null || isShared()) return;
    const region = this.feedMap.regions.regionAt(...this.feedMap.project(at.lng, at.lat));
    if (region === null) return;
    this.hideTip();
    openRegionCard(this.feedMap.map, at, region, this.model);
  }

  /**
   * Zooms in until the members can be distinguished; members at one point are selected together.
   */
  private openCluster({ ids, isStack }: { ids: string[]; isStack: boolean }, at: L.LatLng): void {
    const map = this.feedMap?.map;
    if (map === undefined) return;
    if (isStack || map.getZoom() >= map.getMaxZoom()) this.handlers.onEntities(ids);
    else map.setView(at, Math.min(map.getMaxZoom(), map.getZoom() + 2));
  }

  private setBoxMode(isOn: boolean): void {
    this.isBoxMode = isOn;
    this.boxButton.setAttribute("aria-pressed", String(isOn));
    if (this.feedMap !== null) this.feedMap.map.getContainer().style.cursor = isOn ? "crosshair" : "";
  }

  private startBox(map: L.Map, event: L.LeafletMouseEvent): void {
    if (!this.isBoxMode && !event.originalEvent.shiftKey) return;
    map.dragging.disable();
    const start = event.containerPoint;
    const frame = h("div", { class: "selection-box" });
    map.getContainer().append(frame);
    let corners: Corners = [start.x, start.y, start.x, start.y];
    const move = (moved: L.LeafletMouseEvent): void => {
      const { x, y } = moved.containerPoint;
      corners = [Math.min(x, start.x), Math.min(y, start.y), Math.max(x, start.x), Math.max(y, start.y)];
      Object.assign(frame.style, {
        left: `${corners[0]}px`,
        top: `${corners[1]}px`,
        width: `${corners[2] - corners[0]}px`,
        height: `${corners[3] - corners[1]}px`,
      });
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

  private takeBox(corners: Corners): void {
    const found = this.entities?.entitiesWithin(...corners) ?? [];
    // The click that ends the drag comes after this and would clear the selection again.
    setTimeout(() => this.handlers.onEntities(found), 0);
    toast(
      found.length === 0
        ? t("No entity is in that box.")
        : found.length > 200
          ? t("The first 200 of {count} entities selected; the timeline shows only theirs.", { count: found.length })
          : tn(
              "One entity selected; the timeline shows only its answers.",
              "{count} entities selected; the timeline shows only theirs.",
              found.length,
            ),
    );
  }
}

function clusterLines({ ids, isStack }: { ids: string[]; isStack: boolean }): string[] {
  const names = ids.slice(0, MOST_NAMES).join(", ");
  return [
    ids.length > MOST_NAMES ? t("{names} and {value} more", { names, value: ids.length - MOST_NAMES }) : names,
    isStack ? t("Click to choose them") : t("Click to zoom in"),
  ];
}
