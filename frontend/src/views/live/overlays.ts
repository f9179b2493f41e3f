/**
 * Overlays below everything else on the map: those stored with the feed, and files dropped by the
 * reader; and the menu of all layers.
 */

import { t } from "../../lib/texts";
import * as L from "leaflet";
import { collectionFrom, nameOfFile, overlay, OVERLAY_BYTES } from "../../data/overlay_data";
import type { Feed } from "../../lib/shapes";
import { call, get, isShared, post } from "../../lib/api";
import { onThemeChange, token } from "../../lib/colours";
import { h, icon, iconButton } from "../../lib/dom";
import { anything, list } from "../../lib/parse";
import { hiddenOverlays, setHiddenOverlays } from "../../lib/preferences";
import { confirmDanger } from "../dialog_view";
import { acceptFiles } from "../file_drops";
import type { FeedMap } from "../map_view";
import { attachMenu, type MenuItem } from "../menu_view";
import { fail, toast } from "../shell_view";

interface Shown {
  name: string;
  /** Null: it is only on this page. */
  id: string | null;
  collection: GeoJSON.FeatureCollection | null;
  layer: L.GeoJSON | null;
}

export class Overlays {
  readonly button = iconButton(t("Map layers"), "layers");
  private readonly all: Shown[] = [];
  private readonly renderer = L.canvas({ pane: "overlays" });
  private readonly refreshMenu: () => void;
  private readonly picker = h("input", { type: "file", accept: ".geojson,.json", hidden: true, "aria-label": t("Overlay file") });

  constructor(
    private readonly feed: Feed,
    private readonly feedMap: FeedMap,
    private readonly more: () => MenuItem[],
  ) {
    this.refreshMenu = attachMenu(this.button, () => this.items());
    feedMap.map.getContainer().append(this.picker);
    this.picker.addEventListener("change", () => void this.take(this.picker.files?.[0] ?? null));
    acceptFiles(feedMap.map.getContainer(), (files) => void this.takeAll(files));
    onThemeChange(() => this.all.forEach((one) => one.layer?.setStyle(style())));
    if (!isShared()) void this.load().catch(fail);
  }

  private get address(): string {
    return `feeds/${this.feed.name}/overlays/`;
  }

  private async load(): Promise<void> {
    const hidden = hiddenOverlays();
    const stored = (await get(this.address, list(overlay))).map(({ id, name }): Shown => ({ name, id, collection: null, layer: null }));
    this.all.push(...stored);
    this.refreshMenu();
    const shown = stored.filter((one) => !hidden.has(`${this.feed.name}/${one.name}`));
    // One that cannot be loaded does not prevent the others.
    await Promise.all(shown.map((one) => this.show(one).catch(fail)));
    this.refreshMenu();
  }

  private async show(one: Shown): Promise<void> {
    one.collection ??= (await get(`${this.address}${one.id!}/`, anything)) as GeoJSON.FeatureCollection;
    // Chosen in the menu, or removed, while it was loaded.
    if (one.layer !== null || (one.id !== null && !this.all.includes(one))) return;
    const { near } = this.feedMap;
    one.layer = L.geoJSON(one.collection, {
      pane: "overlays",
      interactive: false,
      style,
      pointToLayer: (_, at) => L.circleMarker(at, { ...style(), renderer: this.renderer, radius: 3 }),
      coordsToLatLng: ([x, y]) => L.latLng(y, near(x)),
      ...({ renderer: this.renderer } as L.GeoJSONOptions),
    }).addTo(this.feedMap.map);
  }

  private toggle(one: Shown): void {
    const hidden = hiddenOverlays();
    const key = `${this.feed.name}/${one.name}`;
    if (one.layer === null) {
      hidden.delete(key);
      void this.show(one).catch(fail);
    } else {
      hidden.add(key);
      one.layer.remove();
      one.layer = null;
    }
    if (one.id !== null) setHiddenOverlays(hidden);
  }

  private items(): MenuItem[] {
    const { base } = this.feedMap;
    const item = (name: string, text: string, onPick: () => void, isCurrent = false): MenuItem => ({
      content: [icon(name), h("span", { class: "truncate" }, text)],
      isCurrent,
      onPick,
    });
    const bases =
      base === null || base.names.length < 2
        ? []
        : base.names.map((name) => item("map", name, () => base.prefer(name), name === base.current));
    const overlays = this.all.map((one) =>
      item(one.layer === null ? "eye-off" : "eye", `${one.layer === null ? t("Show") : t("Hide")} ${one.name}`, () => this.toggle(one)),
    );
    const removal = (one: Shown): MenuItem => item("trash-2", t("Remove {name}", { name: one.name }), () => void this.remove(one));
    const changes = this.all.flatMap((one) => {
      if (one.id !== null) return this.feed.editable ? [removal(one)] : [];
      const keeping = item("save", t("Keep {name} for everybody", { name: one.name }), () => void this.keep(one));
      return this.feed.editable ? [keeping, removal(one)] : [removal(one)];
    });
    return [...bases, ...overlays, item("upload", t("Add a GeoJSON file…"), () => this.picker.click()), ...changes, ...this.more()];
  }

  private async takeAll(files: readonly File[]): Promise<void> {
    for (const file of files) await this.take(file);
  }

  private async take(file: File | null): Promise<void> {
    this.picker.value = "";
    if (file === null) return;
    if (file.size > OVERLAY_BYTES) {
      toast(t("“{name}” has more than {value} MB: simplify it.", { name: file.name, value: OVERLAY_BYTES / 1_000_000 }), "critical");
      return;
    }
    const found = collectionFrom(await file.text(), this.feed.crs === "geographic");
    if ("fault" in found) {
      toast(t("“{name}” cannot be shown: {fault}.", { name: file.name, fault: found.fault }), "critical");
      return;
    }
    const one: Shown = { name: nameOfFile(file.name), id: null, collection: found.collection, layer: null };
    try {
      await this.show(one);
      this.all.push(one);
      const box = one.layer?.getBounds();
      if (box?.isValid() === true) this.feedMap.map.fitBounds(box, { animate: false });
      toast(t("“{name}” is shown until you leave this page.", { name: one.name }), "good");
    } catch {
      toast(t("“{name}” cannot be shown: a geometry is not valid.", { name: file.name }), "critical");
    }
  }

  private async keep(one: Shown): Promise<void> {
    try {
      const kept = await post(this.address, { name: one.name, document: one.collection }, overlay);
      const before = this.all.findIndex((other) => other.id === kept.id && other !== one);
      if (before >= 0) this.all.splice(before, 1)[0]!.layer?.remove();
      one.id = kept.id;
      toast(t("“{name}” is kept with the feed.", { name: one.name }), "good");
    } catch (error) {
      fail(error);
    }
  }

  private async remove(one: Shown): Promise<void> {
    if (one.id === null) {
      this.drop(one);
      return;
    }
    const effect = t("“{name}” is removed for all users.", { name: one.name });
    if (!(await confirmDanger(t("Remove this overlay?"), effect, t("Remove overlay")))) return;
    try {
      await call(`${this.address}${one.id}/`, { method: "DELETE" });
      this.drop(one);
    } catch (error) {
      fail(error);
    }
  }

  private drop(one: Shown): void {
    one.layer?.remove();
    this.all.splice(this.all.indexOf(one), 1);
  }
}

function style(): L.PathOptions {
  const colour = token("--map-overlay");
  return { color: colour, weight: 1.5, opacity: 0.9, fillColor: colour, fillOpacity: 0.12 };
}
