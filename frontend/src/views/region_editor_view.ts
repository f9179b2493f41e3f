/** Drawing and changing one region on a map: polygon, rectangle, circle; corners are dragged, or typed in the table. */

import * as L from "leaflet";
import "@geoman-io/leaflet-geoman-free";
import "@geoman-io/leaflet-geoman-free/dist/leaflet-geoman.css";
import { get } from "../lib/api";
import { button, h, iconButton } from "../lib/dom";
import { token } from "../lib/colours";
import { list, nullable, number, record } from "../lib/parse";
import { bounds, isCircle, type Geometry, type Ring } from "../lib/regions";
import { EntitiesData } from "../data/entities_data";
import { position, type Feed } from "../data/shapes";
import { EntityLayer } from "./entity_layer";
import { latLng, openMap, type FeedMap } from "./map_view";
import type { DrawnRegion } from "./region_layer";

type Shape = "Polygon" | "Rectangle" | "Circle";
const SHAPES: [Shape, string, string][] = [
  ["Polygon", "pentagon", "Draw a polygon"],
  ["Rectangle", "rectangle-horizontal", "Draw a rectangle"],
  ["Circle", "circle", "Draw a circle"],
];
const HINTS: Record<Shape, string> = {
  Polygon: "Click to set corners; click the first one again to finish. Escape cancels.",
  Rectangle: "Click one corner, then the opposite one. Escape cancels.",
  Circle: "Click the centre, then the edge. Escape cancels.",
};
const positions = record({ t: nullable(number), entities: list(position) });

export class RegionEditorView {
  readonly element: HTMLElement;
  readonly feedMap: FeedMap;
  private readonly layers = L.featureGroup();
  private readonly note = h("div", { class: "map-note", hidden: true, role: "status" });
  private readonly buttons = new Map<Shape, HTMLButtonElement>();
  private readonly clear: HTMLButtonElement;
  private readonly isGeographic: boolean;
  private geometry: Geometry | null = null;

  constructor(
    place: HTMLElement,
    private readonly feed: Feed,
    private readonly onChange: (geometry: Geometry | null) => void,
    extra: HTMLElement[] = [],
  ) {
    this.isGeographic = feed.crs === "geographic";
    const canvas = h("div", { class: "map-canvas" });
    for (const [shape, name, text] of SHAPES) this.buttons.set(shape, iconButton(text, name, { onClick: () => this.draw(shape) }));
    this.clear = iconButton("Remove the region", "trash-2", { onClick: () => this.take(null) });
    this.element = h("div", { class: "region-editor" }, canvas, h("div", { class: "map-tools" }, h("div", { class: "button-group" }, ...this.buttons.values(), this.clear), ...extra), this.note);
    place.append(this.element);
    this.feedMap = openMap(canvas, feed);
    const { map } = this.feedMap;
    map.pm.setGlobalOptions({ allowSelfIntersection: false, snappable: false, limitMarkersToCount: 60 });
    this.layers.addTo(map);
    map.on("pm:create", ({ layer }) => {
      map.removeLayer(layer);
      this.take(read(layer, this.isGeographic));
    });
    map.on("pm:drawend", () => this.drawing(null));
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") map.pm.disableDraw();
    });
    this.show(null);
    void this.showEntities();
  }

  /** Stored regions and shapes around the one that is edited. */
  setContext(regions: DrawnRegion[]): void {
    this.feedMap.regions.set(regions);
  }

  /** Shows a region without telling anybody; one that may not be changed here is drawn without handles. */
  show(geometry: Geometry | null, isEditable = true, fit = false): void {
    this.geometry = geometry;
    this.layers.clearLayers();
    this.clear.disabled = geometry === null;
    if (geometry === null) return;
    const style = { color: token("--accent"), weight: 2.5, fillOpacity: 0.14, dashArray: isEditable ? undefined : "5 5" };
    const layer = isCircle(geometry) ? L.circle(latLng(...geometry.center), { ...style, radius: geometry.radius }) : L.polygon(toLatLngs(geometry), style);
    layer.addTo(this.layers);
    if (isEditable) this.makeEditable(layer);
    const box = fit ? bounds(geometry, this.isGeographic) : null;
    if (box !== null) this.feedMap.fit(box, this.isGeographic ? 16 : 4);
  }

  private makeEditable(layer: L.Polygon | L.Circle): void {
    layer.pm.enable({ allowSelfIntersection: false, draggable: true });
    const changed = (): void => {
      this.geometry = read(layer, this.isGeographic, this.geometry);
      this.onChange(this.geometry);
    };
    for (const name of ["pm:edit", "pm:dragend", "pm:vertexremoved"]) layer.on(name, changed);
  }

  private take(geometry: Geometry | null): void {
    this.show(geometry);
    this.onChange(geometry);
  }

  private draw(shape: Shape): void {
    const { map } = this.feedMap;
    if (map.pm.globalDrawModeEnabled() && map.pm.Draw.getActiveShape() === shape) {
      map.pm.disableDraw();
      return;
    }
    const accent = token("--accent");
    const style = { color: accent, weight: 2.5 };
    map.pm.enableDraw(shape, { templineStyle: style, hintlineStyle: { ...style, dashArray: "5 5" }, pathOptions: style, tooltips: false, cursorMarker: true, continueDrawing: false });
    this.drawing(shape);
  }

  private drawing(shape: Shape | null): void {
    for (const [one, element] of this.buttons) element.setAttribute("aria-pressed", String(one === shape));
    this.note.hidden = shape === null;
    this.note.textContent = shape === null ? "" : HINTS[shape];
  }

  private async showEntities(): Promise<void> {
    try {
      const found = await get(`feeds/${this.feed.name}/positions`, positions);
      const data = new EntitiesData(this.feedMap.project);
      for (const row of found.entities) data.put(row);
      const layer = new EntityLayer(data);
      layer.isQuiet = true;
      layer.addTo(this.feedMap.map);
    } catch {
      // The entities are only there for orientation.
    }
  }

  remove(): void {
    this.feedMap.remove();
    this.element.remove();
  }
}

function toLatLngs(geometry: Exclude<Geometry, { center: unknown }>): L.LatLng[][] | L.LatLng[][][] {
  const ring = (points: Ring): L.LatLng[] => points.slice(0, -1).map(([x, y]) => latLng(x, y));
  return geometry.type === "Polygon" ? geometry.coordinates.map(ring) : geometry.coordinates.map((polygon) => polygon.map(ring));
}

/** Seven decimals of a degree are a centimetre. */
function tidy(value: number, isGeographic: boolean): number {
  return Number(value.toFixed(isGeographic ? 7 : 4));
}

function read(layer: L.Layer, isGeographic: boolean, before: Geometry | null = null): Geometry | null {
  const pair = (at: L.LatLng): [number, number] => [tidy(at.lng, isGeographic), tidy(at.lat, isGeographic)];
  if (layer instanceof L.Circle) return { center: pair(layer.getLatLng()), radius: Number(layer.getRadius().toFixed(2)) };
  if (!(layer instanceof L.Polygon)) return before;
  const closed = (points: L.LatLng[]): Ring => {
    const ring = points.map(pair);
    const first = ring[0];
    return first === undefined ? [] : [...ring, [first[0], first[1]]];
  };
  const found = layer.getLatLngs();
  if (Array.isArray(found[0]) && Array.isArray(found[0][0])) return { type: "MultiPolygon", coordinates: (found as L.LatLng[][][]).map((polygon) => polygon.map(closed)) };
  const polygon = (Array.isArray(found[0]) ? found : [found]) as L.LatLng[][];
  return { type: "Polygon", coordinates: polygon.map(closed) };
}

/** A button that opens the file chooser and hands the file over. */
export function fileButton(text: string, accept: string, onFile: (file: File) => void, kind = ""): HTMLElement {
  const input = h("input", { type: "file", accept, class: "visually-hidden", tabindex: -1, "aria-hidden": "true" });
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    if (file !== undefined) onFile(file);
    input.value = "";
  });
  return h("span", {}, button(text, { icon: "file-up", kind, onClick: () => input.click() }), input);
}
