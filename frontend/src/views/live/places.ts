/** Search on the live page, and moving map and timeline to a result. */

import { t } from "../../lib/texts";
import type { QueryRow } from "../../lib/shapes";
import { get, isShared, query as address } from "../../lib/api";
import { registered } from "../../lib/answers";
import { around } from "../../lib/regions";
import type { EntityLayer } from "../entity_layer";
import { boundsOf, latLng, type FeedMap } from "../map_view";
import type { Found } from "../search_view";
import { toast } from "../shell_view";
import type { LiveModel } from "./model";
import { openRegionCard } from "./region_card";

const MOST_REGISTERED = 8;

export class Places {
  /** The entity that the map follows, until the reader moves the map. */
  followed: string | null = null;

  constructor(
    private readonly model: LiveModel,
    private readonly feedMap: FeedMap,
    private readonly entities: EntityLayer,
    private readonly onEntity: (entity: string) => void,
  ) {
    const { map } = feedMap;
    map.on("dragstart", () => (this.followed = null));
    map.on("keydown", ({ originalEvent }) => {
      if (originalEvent.key.startsWith("Arrow")) this.followed = null;
    });
  }

  private get isGeographic(): boolean {
    return this.model.feed.crs === "geographic";
  }

  find(text: string): Found[] {
    const wanted = text.toLowerCase();
    const match = (name: string): boolean => name.toLowerCase().includes(wanted);
    const entities = [...this.model.data.positions.keys()]
      .filter(match)
      .sort((a, b) => a.length - b.length || a.localeCompare(b))
      .slice(0, 6);
    return [
      ...entities.map((id): Found => ({ kind: "entity", id, name: id })),
      ...this.model.queries
        .filter((row) => match(row.name))
        .slice(0, 5)
        .map((row): Found => ({ kind: "query", id: row.id, name: row.name })),
      ...this.model.regions
        .filter((row) => match(row.name))
        .slice(0, 5)
        .map((row): Found => ({ kind: "region", id: row.id, name: row.name })),
    ];
  }

  /** Entities with a matching name in the registry: they need not have reported recently. */
  async findRegistered(text: string, signal: AbortSignal): Promise<Found[]> {
    if (isShared()) return [];
    const { results } = await get(address(`feeds/${this.model.feed.name}/registry`, { search: text }), registered, signal);
    return results
      .slice(0, MOST_REGISTERED)
      .map(({ entity, name }): Found => ({ kind: "entity", id: entity, name: name === "" ? entity : `${name} (${entity})` }));
  }

  goTo(found: Found): void {
    if (found.kind === "entity") this.onEntity(found.id);
    const query = found.kind === "query" ? this.model.query(found.id) : null;
    if (query !== null) this.goToQuery(query);
    const region = found.kind === "region" ? this.model.regions.find((row) => row.id === found.id) : undefined;
    const box = region === undefined ? null : boundsOf([region.geometry], this.isGeographic);
    if (box === null || region === undefined) return;
    this.feedMap.fit(box);
    this.feedMap.regions.highlight(new Set([region.id]));
    const [w, s, e, n] = box;
    if (!isShared())
      openRegionCard(this.feedMap.map, latLng(this.feedMap.near((w + e) / 2), (s + n) / 2), { ...region, colour: null }, this.model);
  }

  goToQuery(row: QueryRow): void {
    const box = boundsOf(this.model.geometriesOf(row.id), this.isGeographic);
    if (box !== null) this.feedMap.fit(box);
    this.feedMap.regions.highlight(new Set(this.model.regionsOfQuery.get(row.id)));
  }

  /** Centres the map on it, and keeps it visible from now on. */
  follow(entity: string): void {
    this.followed = entity;
    const at = this.entities.placeOf(entity);
    if (at !== null) this.feedMap.panTo(at.lng, at.lat);
  }

  /** Time has advanced: the followed entity may have left the map's window. */
  keepInSight(): void {
    const at = this.followed === null ? null : this.entities.placeOf(this.followed);
    if (at !== null && !this.feedMap.isInSight(at.lng, at.lat)) this.feedMap.panTo(at.lng, at.lat);
  }

  fitAll(): void {
    const places = [...this.model.data.positions.values()]
      .filter(([id]) => this.entities.presence(id) !== "gone")
      .map(([, x, y]): [number, number] => [this.feedMap.near(x), y]);
    const box =
      around(places) ??
      boundsOf(
        this.model.regions.map((row) => row.geometry),
        this.isGeographic,
      );
    if (box !== null) this.feedMap.fit(box);
    else toast(t("There is nothing on this feed yet."));
  }
}
