/**
 * Bundled coastlines and borders of Natural Earth: drawn as tiles on canvases, so that
 * Leaflet keeps and moves them.
 */

import * as L from "leaflet";
import geojsonvt from "geojson-vt";
import { feature, mesh } from "topojson-client";
import type { Topology, GeometryCollection } from "topojson-specification";
import coarseUrl from "world-atlas/countries-50m.json?url";
import fineUrl from "world-atlas/countries-10m.json?url";
import { token } from "../lib/colours";

type World = Topology<{ countries: GeometryCollection; land: GeometryCollection }>;
type Index = ReturnType<typeof geojsonvt>;
interface Level {
  land: Index;
  borders: Index;
}

/** From this zoom on the 1:10 million coast is drawn instead of the 1:50 million one. */
const FINE_ZOOM = 7;
const EXTENT = 4096;
/** The kind of feature without a line to draw. */
const POINT = 1;
const levels = new Map<string, Promise<Level>>();

function level(url: string): Promise<Level> {
  let found = levels.get(url);
  if (found === undefined) {
    found = load(url);
    levels.set(url, found);
  }
  return found;
}

async function load(url: string): Promise<Level> {
  const response = await fetch(url);
  const world = (await response.json()) as World;
  const options = { maxZoom: 14, indexMaxZoom: 4, tolerance: 2, buffer: 64, extent: EXTENT };
  const land = geojsonvt(feature(world, world.objects.land), options);
  const lines = mesh(world, world.objects.countries, (a, b) => a !== b);
  const borders = geojsonvt({ type: "Feature", properties: {}, geometry: lines }, options);
  return { land, borders };
}

class BasemapLayer extends L.GridLayer {
  override createTile(coordinates: L.Coords, done: L.DoneCallback): HTMLElement {
    const tile = document.createElement("canvas");
    const size = this.getTileSize();
    const ratio = Math.min(2, devicePixelRatio || 1);
    tile.width = size.x * ratio;
    tile.height = size.y * ratio;
    void level(coordinates.z >= FINE_ZOOM ? fineUrl : coarseUrl).then(
      (data) => {
        paint(tile, data, coordinates, tile.width);
        done(undefined, tile);
      },
      (error: unknown) => done(error instanceof Error ? error : new Error("no basemap"), tile),
    );
    return tile;
  }
}

function paint(tile: HTMLCanvasElement, data: Level, { x, y, z }: L.Coords, width: number): void {
  const context = tile.getContext("2d");
  if (context === null) return;
  const wrapped = ((x % 2 ** z) + 2 ** z) % 2 ** z;
  context.fillStyle = token("--map-water");
  context.fillRect(0, 0, width, width);
  trace(context, data.land, z, wrapped, y, width);
  context.fillStyle = token("--map-land");
  context.fill("evenodd");
  context.strokeStyle = token("--map-coast");
  context.lineWidth = width / 256;
  context.stroke();
  trace(context, data.borders, z, wrapped, y, width);
  context.strokeStyle = token("--map-border");
  context.setLineDash([width / 64, width / 85]);
  context.lineWidth = (width / 256) * 1.2;
  context.stroke();
}

/** Beyond the index's maximum depth the tile of the deepest level is drawn enlarged. */
function trace(context: CanvasRenderingContext2D, index: Index, z: number, x: number, y: number, width: number): void {
  const over = Math.max(0, z - 14);
  const found = index.getTile(z - over, x >> over, y >> over);
  const scale = (width / EXTENT) * 2 ** over;
  const shiftX = (x - ((x >> over) << over)) * width;
  const shiftY = (y - ((y >> over) << over)) * width;
  context.beginPath();
  for (const item of found?.features ?? []) {
    if ((item.type as number) === POINT) continue;
    for (const line of item.geometry as unknown as [number, number][][]) {
      line.forEach(([px, py], i) => {
        if (i === 0) context.moveTo(px * scale - shiftX, py * scale - shiftY);
        else context.lineTo(px * scale - shiftX, py * scale - shiftY);
      });
    }
  }
}

/** A graticule, so that a street-level map without tiles still shows scale and position. */
class GraticuleLayer extends L.GridLayer {
  override createTile(): HTMLElement {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 256;
    const context = tile.getContext("2d");
    if (context === null) return tile;
    context.strokeStyle = token("--map-grid");
    context.globalAlpha = 0.55;
    context.strokeRect(0.5, 0.5, 256, 256);
    return tile;
  }
}

export function basemap(): L.LayerGroup & { themeChanged: () => void } {
  const layers = [
    new BasemapLayer({ attribution: "Natural Earth", pane: "tilePane", keepBuffer: 1 }),
    new GraticuleLayer({ minZoom: 11, pane: "tilePane" }),
  ];
  const group = L.layerGroup(layers);
  return Object.assign(group, { themeChanged: () => layers.forEach((layer) => layer.redraw()) });
}
