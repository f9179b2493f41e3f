/**
 * The entities' positions on the live map: the present ones, or those of the
 * instant that the clock shows.
 */

import { Playback } from "../../clock/playback";
import type { EntitiesData } from "../../data/entities_data";
import type { Position } from "../../lib/shapes";
import type { EntityLayer } from "../entity_layer";
import { fail } from "../shell_view";
import type { LiveModel } from "./model";

export class Positions {
  private readonly playback: Playback;
  private frameRequest = 0;

  /**
   * `onFrame` is called before a frame is drawn while the clock plays, and `onShown` when the map
   * shows the positions of an instant of the past.
   */
  constructor(
    private readonly model: LiveModel,
    private readonly entities: EntitiesData,
    private readonly layer: EntityLayer,
    private readonly onFrame: () => void,
    private readonly onShown: (instant: number) => void,
  ) {
    this.playback = new Playback({
      feed: model.feed.name,
      unitsPerMs: model.unitsPerMs,
      entities,
      onFault: fail,
      onBegin: (t) => (model.clock.earliest = t),
    });
  }

  /** No entity has a position. */
  get isEmpty(): boolean {
    return this.entities.count === 0;
  }

  /** The feed's clock advances for all entities, including those without reports. */
  tick(clock: number | null): void {
    if (clock !== null) this.entities.tick(clock);
    this.layer.changed();
  }

  /** Takes live positions, unless the map shows the past. */
  take(rows: Iterable<Position>, clock: number | null): void {
    if (!this.model.clock.isLive) return;
    this.tick(clock);
    for (const row of rows) this.entities.put(row);
  }

  /** A snapshot comes with all positions. */
  clearPresent(): void {
    if (this.model.clock.isLive) this.entities.clear();
  }

  /** The current positions of all entities, with their recent tracks. */
  async showPresent(): Promise<void> {
    const { clock } = this.model;
    this.playback.close();
    try {
      const { t, x, y, entity, entities, begin } = await this.playback.warmUp(this.model.present());
      if (!clock.isLive) return;
      if (begin !== null) clock.earliest = begin;
      this.entities.clear();
      for (let n = 0; n < t.length; n++) this.entities.put([entities[entity[n]!]!, x[n]!, y[n]!, t[n]!]);
    } catch (error) {
      fail(error);
    }
    for (const row of this.model.data.positions.values()) this.entities.put(row);
    this.tick(this.model.present());
  }

  /** Draws frames while the clock plays, and until the map shows the instant of a paused clock. */
  showPast(): void {
    if (this.frameRequest !== 0 || this.model.clock.isLive) return;
    this.frameRequest = requestAnimationFrame(() => {
      this.frameRequest = 0;
      if (this.model.clock.isPlaying) this.onFrame();
      this.drawPast();
    });
  }

  private drawPast(): void {
    const { clock } = this.model;
    if (clock.isLive) return;
    const now = clock.now();
    if (this.playback.show(now, clock.rate)) this.layer.changed();
    if (this.playback.isShown(now)) this.onShown(now);
    if (clock.isPlaying || !this.playback.isShown(now)) this.showPast();
  }

  close(): void {
    cancelAnimationFrame(this.frameRequest);
    this.playback.close();
  }
}
