/** The base map of a geographic map: the bundled coastlines, or one of the maps in the settings. */

import * as L from "leaflet";
import { baseMapName, setBaseMapName } from "../lib/preferences";
import { basemap } from "./basemap_view";
import { baseMaps, fail, toast, type BaseMap } from "./shell_view";
import { t } from "../lib/texts";

const BUNDLED = t("Coastlines");
/** Over the bundled map, which shows where an archive of a region has no tiles. */
const ABOVE = { zIndex: 2 };

type Layer = L.Layer & { themeChanged?: () => void };

export class BaseMaps {
  private readonly given = baseMaps();
  private shown: Layer | null = null;
  current = "";

  constructor(private readonly map: L.Map) {
    const wanted = baseMapName();
    this.choose(this.names.find((name) => name === wanted) ?? this.given[0]?.name ?? BUNDLED);
  }

  get names(): string[] {
    return [...this.given.map(({ name }) => name), BUNDLED];
  }

  /** Shows this base map. */
  choose(name: string): void {
    this.shown?.remove();
    this.current = name;
    const found = this.given.find((one) => one.name === name);
    this.shown = found === undefined ? basemap() : layerOf(found);
    this.shown.addTo(this.map);
  }

  /** Shows it, and stores it as the reader's choice. */
  prefer(name: string): void {
    this.choose(name);
    setBaseMapName(name);
  }

  themeChanged(): void {
    this.shown?.themeChanged?.();
  }
}

function layerOf(map: BaseMap): Layer {
  const { tiles, wms, layers, attribution, bounds, vector_layers, least_zoom, most_zoom } = map;
  if (tiles === "")
    return ofServer(
      map.name,
      L.tileLayer.wms(wms, { layers, format: "image/png", transparent: false, attribution, maxZoom: 19, ...ABOVE }),
    );
  // Beyond its maximum zoom a map is shown enlarged.
  const zooms = { maxZoom: 19, minNativeZoom: least_zoom, maxNativeZoom: most_zoom };
  if (bounds === null) return ofServer(map.name, L.tileLayer(tiles, { attribution, ...zooms, ...ABOVE }));
  const within = L.latLngBounds([bounds[1], bounds[0]], [bounds[3], bounds[2]]);
  if (vector_layers.length > 0) return vectors(map, within);
  return overBundled((group) => group.addLayer(L.tileLayer(tiles, { attribution, ...zooms, bounds: within, ...ABOVE })));
}

/**
 * The map of another server. Where it has no pictures, coastlines are shown; a message is shown if
 * it has none.
 */
function ofServer(name: string, layer: L.TileLayer): Layer {
  const group = L.layerGroup([layer]);
  let pictures = 0;
  layer.on("tileload", () => (pictures += 1));
  layer.once("tileerror", () => {
    group.addLayer(basemap());
    layer.once("load", () => {
      if (pictures === 0) toast(t("The map “{name}” cannot be loaded: coastlines are shown instead.", { name }), "critical");
    });
  });
  return withThemes(group);
}

/** The bundled map with another one over it, added by `addTo`. */
function overBundled(addTo: (group: L.LayerGroup) => void): Layer {
  const below = basemap();
  const group = L.layerGroup([below]);
  addTo(group);
  return withThemes(group);
}

function withThemes(group: L.LayerGroup): Layer {
  return Object.assign(group, { themeChanged: () => group.eachLayer((one: Layer) => one.themeChanged?.()) });
}

/** The code that draws them is loaded only when it is needed. */
function vectors(map: BaseMap, bounds: L.LatLngBounds): Layer {
  return overBundled((group) => {
    import("./vector_base_map")
      .then(({ vectorLayer }) => group.addLayer(vectorLayer(map, { bounds, ...ABOVE, pane: "tilePane" })))
      .catch(fail);
  });
}
