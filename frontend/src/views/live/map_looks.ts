/**
 * Options of the map: clusters, colours by an attribute, heat maps; their menu and their legend.
 */

import { t, tn } from "../../lib/texts";
import { density, gridOf } from "../../data/density_data";
import type { EntitiesData } from "../../data/entities_data";
import { type Heat, looksFrom, SPEED } from "../../data/map_looks";
import { attributeValues, type Styling, stylingOf } from "../../data/styling";
import { get, isShared, query as address } from "../../lib/api";
import { classColour, token } from "../../lib/colours";
import { h, icon, replace } from "../../lib/dom";
import { Latest } from "../../lib/latest";
import { mapLooks, setMapLooks } from "../../lib/preferences";
import { formatClock, formatNumber } from "../../lib/time";
import { formatSpeed } from "../../lib/units";
import type { EntityLayer } from "../entity_layer";
import { HeatLayer } from "../heat_layer";
import { shownBox, type FeedMap } from "../map_view";
import type { MenuItem } from "../menu_view";
import { fail } from "../shell_view";
import type { LiveModel } from "./model";
import { metrePerSecond } from "./standstill";

/** How often values and counts are requested while the page is live. */
const EVERY_MS = 10_000;
/** The delay after the window or the map was moved. */
const SETTLED_MS = 300;
const HEAT_NAMES: Record<Heat, string> = { none: t("No heat map"), reports: t("Heat map of reports"), answers: t("Heat map of answers") };

export class MapLooks {
  readonly legend = h("div", { class: "map-legend", hidden: true });
  private readonly looks;
  private readonly heat: HeatLayer;
  private names: string[] = [];
  private styling: Styling | null = null;
  private heatText = "";
  private readonly heatQuestion = new Latest((signal) => this.askHeat(signal), fail);
  private readonly valueQuestion = new Latest((signal) => this.askValues(signal), fail);
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(
    private readonly model: LiveModel,
    private readonly feedMap: FeedMap,
    private readonly entities: EntitiesData,
    private readonly layer: EntityLayer,
  ) {
    this.looks = looksFrom(mapLooks(model.feed.name));
    this.heat = new HeatLayer(feedMap.project).addTo(feedMap.map);
    feedMap.map.on("moveend", () => this.moved());
    this.timer = setInterval(() => this.again(), EVERY_MS);
    layer.grouping = this.looks.grouping;
    if (!isShared()) void this.valueQuestion.now();
    this.moved();
  }

  /** The window or the instant of the page has changed. */
  moved(): void {
    if (this.looks.heat !== "none") this.heatQuestion.after(SETTLED_MS);
  }

  close(): void {
    clearInterval(this.timer);
    this.heatQuestion.drop();
    this.valueQuestion.drop();
  }

  themeChanged(): void {
    this.paint();
  }

  private again(): void {
    if (document.hidden || !this.model.clock.isLive) return;
    if (this.looks.heat !== "none") this.heatQuestion.after(0);
    if (this.looks.colourBy !== null) this.valueQuestion.after(0);
  }

  // ---- Choices

  items(): MenuItem[] {
    const { looks } = this;
    const item = (name: string, text: string, isCurrent: boolean, change: () => void): MenuItem => ({
      content: [icon(isCurrent ? "check" : name), h("span", { class: "truncate" }, text)],
      isCurrent,
      onPick: () => {
        change();
        setMapLooks(this.model.feed.name, JSON.stringify(looks));
      },
    });
    const grouping = [
      item("group", t("Clusters where it is crowded"), looks.grouping === "auto", () => this.group("auto")),
      item("group", t("Always clusters"), looks.grouping === "clusters", () => this.group("clusters")),
      item("group", t("Each entity separately"), looks.grouping === "each", () => this.group("each")),
    ];
    const colours = [null, SPEED, ...this.names].map((name) =>
      item("palette", name === null ? t("One colour") : t("Colour by {name}", { name: nameOf(name) }), looks.colourBy === name, () =>
        this.colour(name),
      ),
    );
    const heats = (["none", "reports", "answers"] as const).map((heat) =>
      item("flame", HEAT_NAMES[heat], looks.heat === heat, () => this.chooseHeat(heat)),
    );
    return isShared() ? grouping : [...grouping, ...colours, ...heats];
  }

  private group(grouping: typeof this.looks.grouping): void {
    this.looks.grouping = grouping;
    this.layer.grouping = grouping;
    this.layer.changed();
  }

  private colour(name: string | null): void {
    this.looks.colourBy = name;
    [this.styling, this.layer.colourOf] = [null, null];
    this.paint();
    void this.valueQuestion.now();
  }

  private chooseHeat(heat: Heat): void {
    this.looks.heat = heat;
    if (heat !== "none") {
      void this.heatQuestion.now();
      return;
    }
    this.heatQuestion.drop();
    this.heatText = "";
    this.heat.show(null);
    this.paint();
  }

  // ---- Drawing

  private async askValues(signal: AbortSignal): Promise<void> {
    const { colourBy } = this.looks;
    const name = colourBy === null || colourBy === SPEED ? undefined : colourBy;
    const found = await get(address(`feeds/${this.model.feed.name}/attribute`, { name }), attributeValues, signal);
    // A column of this name contains the value that the page computes anyway.
    this.names = found.names.filter((one) => one.toLowerCase() !== "speed");
    if (colourBy === null) return;
    const valueOf = colourBy === SPEED ? this.speedOf() : (i: number) => found.values[this.entities.ids[i]!];
    const values = Array.from({ length: this.entities.count }, (_, i) => valueOf(i));
    if (values.length === 0) {
      this.valueQuestion.after(1000);
      return;
    }
    // Classes are chosen once, so that the meaning of colours does not
    // change from moment to moment.
    this.styling ??= stylingOf(values, colourBy === SPEED && this.model.feed.crs !== "planar" ? formatSpeed : formatNumber);
    const { styling } = this;
    this.layer.colourOf = (i) => classColourOf(styling, styling.of(valueOf(i)));
    this.paint();
  }

  /** Metres per second; on a plane units of the plan per unit of time. */
  private speedOf(): (i: number) => number | null {
    const scale = metrePerSecond(this.model.feed);
    return (i) => {
      const speed = this.entities.speedOf(i) / (scale === null ? 1 : scale(this.entities.py[i]!));
      return Number.isFinite(speed) ? speed : null;
    };
  }

  private async askHeat(signal: AbortSignal): Promise<void> {
    const { feed, clock, state } = this.model;
    const { map } = this.feedMap;
    const size = map.getSize();
    const box = shownBox(map.getBounds(), feed.crs === "geographic");
    const grid = gridOf(size.x, size.y);
    const [from, to] = clock.window();
    const upTo = Math.min(to, this.model.now());
    if (size.x === 0 || from >= upTo) return;
    const hidden = new Set(state.hidden);
    const shown = hidden.size === 0 ? undefined : this.model.queries.filter((row) => !hidden.has(row.id)).map((row) => row.id);
    const path = address(`feeds/${feed.name}/density`, {
      from: Math.floor(from),
      to: Math.ceil(upTo),
      bbox: box.join(","),
      ...grid,
      of: this.looks.heat,
      query: this.looks.heat === "answers" ? shown?.join(",") : undefined,
    });
    const found = await get(path, density, signal);
    const clockOf = (t: number): string => formatClock(t, feed.time, this.model.zone);
    const whole = found.to < Math.ceil(upTo) ? t(" (limit of one count reached: choose a shorter span)") : "";
    const reports =
      this.looks.heat === "answers"
        ? tn("1 report within answers", "{count} reports within answers", found.total)
        : tn("1 report", "{count} reports", found.total);
    this.heatText = `${reports}, ${clockOf(found.from)} – ${clockOf(found.to)}${whole}`;
    this.heat.show({ counts: found.counts, ...grid, box }, `${HEAT_NAMES[this.looks.heat]}: ${this.heatText}`);
    this.paint();
  }

  private paint(): void {
    const { styling, looks } = this;
    const rows: Node[] = [];
    if (styling !== null && looks.colourBy !== null) {
      rows.push(h("h3", {}, looks.colourBy === SPEED ? t("Speed") : looks.colourBy));
      styling.classes.forEach(({ label }, n) =>
        rows.push(
          h("div", { class: "row" }, h("span", { class: "swatch", vars: { "--swatch": classColourOf(styling, n) } }), h("span", {}, label)),
        ),
      );
    }
    if (looks.heat !== "none" && this.heatText !== "")
      rows.push(
        h("h3", {}, HEAT_NAMES[looks.heat]),
        h("div", { class: "heat-ramp", "aria-hidden": "true" }),
        h("p", { class: "small muted" }, this.heatText),
      );
    this.legend.hidden = rows.length === 0;
    replace(this.legend, ...rows);
    this.layer.changed();
  }
}

function nameOf(name: string): string {
  return name === SPEED ? "speed" : name;
}

function classColourOf(styling: Styling, n: number): string {
  const place = styling.classes[n]?.place ?? null;
  return place === null ? token("--entity") : classColour(styling.kind, place);
}
