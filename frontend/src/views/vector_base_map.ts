/**
 * A base map of vector tiles, drawn in the colours of the page: roads, water, names. Loaded only
 * where such a map is shown.
 *
 * Tiles in the layers of Protomaps are drawn by the library's own rules, those in the layers of
 * OpenMapTiles by ours, and others plainly: areas, lines, points and their names.
 */

import type * as L from "leaflet";
import { namedFlavor, type Flavor } from "@protomaps/basemaps";
import {
  CenteredTextSymbolizer,
  CircleSymbolizer,
  exp,
  GeomType,
  labelRules,
  leafletLayer,
  LineLabelSymbolizer,
  LineSymbolizer,
  paintRules,
  PolygonSymbolizer,
  type Feature,
  type Filter,
  type LabelRule,
  type PaintRule,
} from "protomaps-leaflet";
import { isDark, token } from "../lib/colours";
import { language } from "../lib/texts";
import type { BaseMap } from "./shell_view";

interface Rules {
  paint: PaintRule[];
  label: LabelRule[];
}

export type VectorLayer = L.GridLayer & { themeChanged: () => void };

/** A tile is drawn at two zooms: at the lower one everything in it is half as large. */
const LEVELS = 1;
const NAMES = [`name:${language}`, `name_${language}`, "name"];
const PLACE_CLASSES = ["country", "state", "city", "town", "village", "suburb", "island"];

export function vectorLayer(
  { tiles, attribution, least_zoom, most_zoom, vector_layers: layers }: BaseMap,
  options: L.GridLayerOptions,
): VectorLayer {
  const colours = flavour();
  const { paint, label } = rulesOf(layers, colours);
  const layer = leafletLayer({
    ...options,
    url: tiles,
    attribution,
    lang: language,
    paintRules: paint,
    labelRules: label,
    backgroundColor: colours.earth,
    maxDataZoom: most_zoom,
    minZoom: least_zoom === 0 ? 0 : least_zoom + LEVELS,
    maxZoom: 19,
    devicePixelRatio: Math.min(2, devicePixelRatio || 1),
  });
  const themeChanged = (): void => {
    const renewed = flavour();
    const { paint, label } = rulesOf(layers, renewed);
    Object.assign(layer, { paintRules: paint, labelRules: label, backgroundColor: renewed.earth });
    layer.clearLayout();
    layer.rerenderTiles();
  };
  return Object.assign(layer as unknown as L.GridLayer, { themeChanged });
}

/**
 * The library's light or dark colours; land, water and roads as on the bundled map, so that moving
 * entities stay the brightest.
 */
function flavour(): Flavor {
  const [land, water, road] = [token("--map-land"), token("--map-water"), token("--map-border")];
  const roads = { highway: road, major: road, minor_a: road, minor_b: road, other: road };
  const halos = { city_label_halo: land, roads_label_major_halo: land, roads_label_minor_halo: land, state_label_halo: land };
  return { ...namedFlavor(isDark() ? "dark" : "light"), ...roads, ...halos, background: land, earth: land, water, landcover: undefined };
}

function rulesOf(layers: readonly string[], colours: Flavor): Rules {
  const has = (...names: string[]): boolean => names.every((name) => layers.includes(name));
  if (has("earth", "roads")) return { paint: paintRules(colours), label: labelRules(colours, language) };
  if (has("transportation")) return openMapTiles(colours);
  return plain(layers, colours);
}

const isArea: Filter = (_, { geomType }) => geomType === GeomType.Polygon;
const isLine: Filter = (_, { geomType }) => geomType === GeomType.Line;
const isPoint: Filter = (_, { geomType }) => geomType === GeomType.Point;
const ofClass =
  (...classes: string[]): Filter =>
  (_, { props }) =>
    classes.some((one) => one === props["class"]);

function area(dataLayer: string, fill: string, filter: Filter = isArea, opacity = 1): PaintRule {
  return { dataLayer, filter: (z, f) => isArea(z, f) && filter(z, f), symbolizer: new PolygonSymbolizer({ fill, opacity }) };
}

/** `stops`: widths in CSS pixels by zoom. */
function line(dataLayer: string, color: string, stops: [number, number][], filter: Filter = isLine): PaintRule {
  return { dataLayer, filter: (z, f) => isLine(z, f) && filter(z, f), symbolizer: new LineSymbolizer({ color, width: exp(1.6, stops) }) };
}

function names(dataLayer: string, fill: string, stroke: string, size: number, more: Partial<LabelRule> = {}): LabelRule {
  const symbolizer = new CenteredTextSymbolizer({
    labelProps: NAMES,
    fill,
    stroke,
    width: 1.5,
    lineHeight: 1.5,
    font: `500 ${size}px sans-serif`,
  });
  return { dataLayer, symbolizer, ...more };
}

function namesAlong(dataLayer: string, colours: Flavor, minzoom: number, filter: Filter): LabelRule {
  const { roads_label_major: fill, roads_label_major_halo: stroke } = colours;
  return {
    dataLayer,
    minzoom,
    filter,
    symbolizer: new LineLabelSymbolizer({ labelProps: NAMES, fill, stroke, width: 2, font: "400 12px sans-serif" }),
  };
}

function openMapTiles(colours: Flavor): Rules {
  const major = ofClass("motorway", "trunk", "primary");
  const middle = ofClass("secondary", "tertiary");
  const minor = ofClass("minor", "service", "track", "path", "pedestrian");
  return {
    paint: [
      area("landcover", colours.wood_a, ofClass("wood", "forest")),
      area("landcover", colours.park_a, ofClass("grass", "farmland")),
      area("landcover", colours.sand, ofClass("sand", "rock")),
      area("landcover", colours.glacier, ofClass("ice")),
      area("landuse", colours.industrial, ofClass("industrial", "commercial", "military", "railway")),
      area("park", colours.park_a),
      area("water", colours.water),
      line("waterway", colours.water, [
        [8, 0.5],
        [18, 8],
      ]),
      area("aeroway", colours.aerodrome),
      line("aeroway", colours.runway, [
        [11, 0.5],
        [18, 24],
      ]),
      area("building", colours.buildings, isArea, 0.5),
      line(
        "transportation",
        colours.minor_a,
        [
          [12, 0.2],
          [18, 8],
        ],
        minor,
      ),
      line(
        "transportation",
        colours.major,
        [
          [8, 0.3],
          [18, 11],
        ],
        middle,
      ),
      line(
        "transportation",
        colours.highway,
        [
          [5, 0.5],
          [12, 1.8],
          [18, 15],
        ],
        major,
      ),
      line(
        "transportation",
        colours.railway,
        [
          [10, 0.4],
          [18, 2],
        ],
        ofClass("rail", "transit"),
      ),
      line(
        "boundary",
        colours.boundaries,
        [
          [2, 0.6],
          [12, 1.2],
        ],
        (_, { props }) => Number(props["admin_level"]) <= 4,
      ),
    ],
    label: [
      namesAlong("transportation_name", colours, 13, isLine),
      names("place", colours.city_label, colours.city_label_halo, 12, { filter: ofClass(...PLACE_CLASSES), sort: byRank }),
      names("water_name", colours.ocean_label, colours.water, 12, { filter: isPoint }),
    ],
  };
}

function byRank(a: Feature["props"], b: Feature["props"]): number {
  return Number(a["rank"] ?? 99) - Number(b["rank"] ?? 99);
}

/**
 * Layers of unknown meaning, in the order of the archive; those with a name of
 * water are drawn as water.
 */
function plain(layers: readonly string[], colours: Flavor): Rules {
  const isWater = (name: string): boolean => /water|ocean|sea|lake|river/i.test(name);
  return {
    paint: [
      ...layers.map((name) => area(name, isWater(name) ? colours.water : colours.buildings, isArea, isWater(name) ? 1 : 0.5)),
      ...layers.map((name) =>
        line(name, isWater(name) ? colours.water : colours.highway, [
          [8, 0.8],
          [18, 6],
        ]),
      ),
      ...layers.map((name) => ({
        dataLayer: name,
        filter: isPoint,
        symbolizer: new CircleSymbolizer({ radius: 2.5, fill: colours.city_label, stroke: colours.city_label_halo, width: 1 }),
      })),
    ],
    label: layers.flatMap((name) => [
      names(name, colours.city_label, colours.city_label_halo, 11, { filter: isPoint, minzoom: 12 }),
      namesAlong(name, colours, 14, isLine),
    ]),
  };
}
