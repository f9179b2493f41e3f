/** What lies at the bottom of a geographic map: the bundled coastlines, or one of the maps that the settings name. */

import * as L from "leaflet";
import { baseMapName, setBaseMapName } from "../lib/preferences";
import { basemap } from "./basemap_view";
import { baseMaps, type BaseMap } from "./shell_view";
import { t } from "../lib/texts";

export const BUNDLED = t("Coastlines");

export class BaseMaps {
  private readonly given = baseMaps();
  private shown: (L.Layer & { themeChanged?: () => void }) | null = null;
  current = "";

  constructor(private readonly map: L.Map) {
    const wanted = baseMapName();
    this.choose(this.names.find((name) => name === wanted) ?? this.given[0]?.name ?? BUNDLED);
  }

  get names(): string[] {
    return [...this.given.map(({ name }) => name), BUNDLED];
  }

  /** From now on this one is shown. */
  choose(name: string): void {
    this.shown?.remove();
    this.current = name;
    const found = this.given.find((one) => one.name === name);
    this.shown = found === undefined ? basemap() : layerOf(found);
    this.shown.addTo(this.map);
  }

  /** Shown, and the reader's choice on other pages and days. */
  prefer(name: string): void {
    this.choose(name);
    setBaseMapName(name);
  }

  themeChanged(): void {
    this.shown?.themeChanged?.();
  }
}

/** A map that ends at some zoom goes on with larger pictures. */
function layerOf({ tiles, wms, layers, attribution, least_zoom, most_zoom }: BaseMap): L.Layer {
  return tiles === ""
    ? L.tileLayer.wms(wms, { layers, format: "image/png", transparent: false, attribution, maxZoom: 19 })
    : L.tileLayer(tiles, { attribution, maxZoom: 19, minNativeZoom: least_zoom, maxNativeZoom: most_zoom });
}
