/**
 * Draws and edits regions on a map: polygon, rectangle, circle; vertices are dragged. One region,
 * or the shapes of an editor.
 */

import * as L from "leaflet";
import "@geoman-io/leaflet-geoman-free";
import "@geoman-io/leaflet-geoman-free/dist/leaflet-geoman.css";
import { get } from "../lib/api";
import { positions } from "../lib/answers";
import { button, h, iconButton } from "../lib/dom";
import { token } from "../lib/colours";
import { around, isCircle, type Box, type Geometry, type Ring } from "../lib/regions";
import { EntitiesData } from "../data/entities_data";
import { type Feed, type Position } from "../lib/shapes";
import type { EditorMap, MapShape, PointDocument } from "./editors/editor";
import { EntityLayer } from "./entity_layer";
import { boundsOf, latLng, openMap, shownBox, type FeedMap } from "./map_view";
import { RegionLayer, type DrawnRegion } from "./region_layer";
import { t } from "../lib/texts";

type Shape = "Polygon" | "Rectangle" | "Circle";
const SHAPES: [Shape, string, string][] = [
  ["Polygon", "pentagon", t("Draw a polygon")],
  ["Rectangle", "rectangle-horizontal", t("Draw a rectangle")],
  ["Circle", "circle", t("Draw a circle")],
];
const HINTS: Record<Shape | "Point", string> = {
  Point: t("Click the place on the map. Escape cancels."),
  Polygon: t("Click to set corners; click the first one again to finish. Escape cancels."),
  Rectangle: t("Click one corner, then the opposite one. Escape cancels."),
  Circle: t("Click the centre, then the edge. Escape cancels."),
};

/** Pixels between a region and its label. */
const LABEL_GAP = 12;

/** A type of Leaflet-Geoman, which does not export it. */
interface CornersDrawn {
  _removeLastVertex(): void;
}

/** Vertices on the map are for pointers only: by keyboard they are numbers in a table. */
function forPointers(corner: L.Marker): void {
  const element = corner.getElement();
  element?.removeAttribute("role");
  element?.removeAttribute("tabindex");
  element?.setAttribute("aria-hidden", "true");
}

export class RegionEditorView implements EditorMap {
  readonly element: HTMLElement;
  readonly feedMap: FeedMap;
  /** Shapes with handles, points, and highlighted shapes; the others are on a canvas below. */
  private readonly layers = L.featureGroup();
  private readonly quiet: RegionLayer;
  private readonly note = h("div", { class: "map-note", hidden: true, role: "status" });
  private readonly buttons = new Map<Shape, HTMLButtonElement>();
  private readonly clear: HTMLButtonElement;
  private readonly isGeographic: boolean;
  private shapes: readonly MapShape[] = [];
  private asked: ((geometry: Geometry | [number, number]) => void) | null = null;
  private picked: ((name: string) => void) | null = null;
  private readonly tools = h("div", { class: "button-group" });
  private isPlacing = false;
  /** The reader has panned or zoomed the map. */
  private isMoved = false;

  constructor(
    place: HTMLElement,
    private readonly feed: Feed,
    /**
     * A region was drawn without a request of an editor, or the one shown was changed or
     * removed; null: only editors draw.
     */
    private readonly onChange: ((geometry: Geometry | null) => void) | null = null,
    extra: HTMLElement[] = [],
    /** Otherwise there are no tools: regions are only shown. */
    private readonly mayDraw = true,
  ) {
    this.isGeographic = feed.crs === "geographic";
    const canvas = h("div", { class: "map-canvas" });
    for (const [shape, name, text] of SHAPES) this.buttons.set(shape, iconButton(text, name, { onClick: () => this.draw(shape) }));
    this.clear = iconButton(t("Remove the region"), "trash-2", { onClick: () => this.editable()?.onEdited?.(null) });
    this.tools.append(...(mayDraw ? this.buttons.values() : []), this.clear);
    this.element = h("div", { class: "region-editor" }, canvas, h("div", { class: "map-tools" }, this.tools, ...extra), this.note);
    place.append(this.element);
    this.feedMap = openMap(canvas, feed);
    const { map } = this.feedMap;
    map.pm.setGlobalOptions({ allowSelfIntersection: false, snappable: false, limitMarkersToCount: 60 });
    this.quiet = new RegionLayer(this.feedMap.project, this.isGeographic).addTo(map);
    this.layers.addTo(map);
    map.on("pm:create", ({ layer }) => {
      map.removeLayer(layer);
      const drawn = read(layer, this.isGeographic);
      if (drawn !== null) this.take(drawn);
    });
    map.on("pm:drawend", () => this.drawing(null));
    for (const kind of ["pointerdown", "wheel", "keydown"]) canvas.addEventListener(kind, () => (this.isMoved = true));
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- of this event it is the layer that was added
    map.on("layeradd", ({ layer }: L.LayerEvent) => layer instanceof L.Marker && forPointers(layer));
    map.on("click", (event) => this.clicked(event.latlng));
    map.on("mousemove", (event) => this.pointed(event.latlng));
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      map.pm.disableDraw();
      this.placing(false);
    });
    document.addEventListener("keydown", (event) => this.undoing(event));
    this.paint();
    this.readyTools();
    void this.showEntities();
  }

  /**
   * Ctrl+Z takes back the newest corner: the browser's own undo would change a text field
   * that the reader has left.
   */
  private undoing(event: KeyboardEvent): void {
    const { pm } = this.feedMap.map;
    const isTyping = event.target instanceof HTMLElement && event.target.matches("input, textarea, select, [contenteditable]");
    if (event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || isTyping || !pm.globalDrawModeEnabled()) return;
    event.preventDefault();
    if (pm.Draw.getActiveShape() === "Polygon") (pm.Draw as unknown as { Polygon: CornersDrawn }).Polygon._removeLastVertex();
  }

  /** What the map shows, in the feed's coordinates. */
  shownBox(): Box {
    return shownBox(this.feedMap.map.getBounds(), this.feed.crs === "geographic");
  }

  /** Stored regions and shapes around those that are edited. */
  setContext(regions: DrawnRegion[]): void {
    this.feedMap.regions.set(regions);
  }

  /**
   * Shows one region without a notification; one that cannot be edited here
   * is drawn without handles.
   */
  showRegion(geometry: Geometry | null, isEditable = true, fit = false): void {
    const onEdited = (changed: Geometry | null): void => {
      if (changed === null) this.showRegion(null);
      this.onChange?.(changed);
    };
    this.show(geometry === null ? [] : [{ id: "region", geometry, label: "", active: true, ...(isEditable ? { onEdited } : {}) }], fit);
  }

  // ---- The interface for editors

  show(shapes: readonly MapShape[], fit = false): void {
    const isSame =
      keyOf(shapes) === keyOf(this.shapes) && shapes.every(({ picture }, i) => (picture ?? null) === (this.shapes[i]?.picture ?? null));
    this.shapes = shapes;
    // Handles are not replaced while they are dragged.
    if (!isSame) this.paint();
    const box = fit ? this.box() : null;
    if (box !== null) this.feedMap.fit(box, this.isGeographic ? 16 : 4);
  }

  ask(
    kind: "region" | "point",
    onDrawn: (geometry: Geometry | [number, number]) => void,
    begin = true,
    onPicked: ((name: string) => void) | null = null,
  ): void {
    this.stop();
    this.asked = onDrawn;
    this.picked = onPicked;
    this.readyTools();
    if (kind === "point") this.placing(true);
    else if (begin) this.draw("Polygon");
  }

  stop(): void {
    this.asked = null;
    this.picked = null;
    this.pointed(null);
    this.readyTools();
    this.placing(false);
    this.feedMap.map.pm.disableDraw();
  }

  // ---- Shapes

  private box(): [number, number, number, number] | null {
    const asRegion = ({ geometry }: MapShape): Geometry =>
      isPoint(geometry) ? { center: geometry.coordinates, radius: this.isGeographic ? 200 : 1 } : geometry;
    return boundsOf(this.shapes.map(asRegion), this.isGeographic);
  }

  private editable(): MapShape | undefined {
    return this.shapes.find((shape) => shape.active && shape.onEdited !== undefined);
  }

  private paint(): void {
    this.layers.clearLayers();
    this.clear.disabled = this.editable() === undefined;
    this.tools.hidden = !this.mayDraw && this.clear.disabled;
    const accent = token("--accent");
    const quiet: DrawnRegion[] = [];
    for (const { id, geometry, label, picture, active, onEdited } of this.shapes) {
      if (isPoint(geometry)) this.point(geometry, label, active, accent);
      else if (active) this.strong(id, geometry, picture ?? label, accent, onEdited !== undefined);
      else quiet.push({ id, name: label, geometry, colour: accent });
    }
    this.quiet.set(quiet);
  }

  private point({ coordinates }: PointDocument, label: string, active: boolean, accent: string): void {
    const marker = L.circleMarker(latLng(...coordinates), {
      color: accent,
      weight: active ? 3 : 2,
      radius: active ? 8 : 6,
      fillOpacity: active ? 0.5 : 0.2,
    }).addTo(this.layers);
    name(marker, label);
  }

  private strong(id: string, geometry: Geometry, label: string | HTMLElement, accent: string, isEditable: boolean): void {
    const style = { color: accent, weight: 2.5, fillOpacity: 0.14, dashArray: isEditable ? undefined : "5 5" };
    const layer = isCircle(geometry)
      ? L.circle(latLng(...geometry.center), { ...style, radius: geometry.radius })
      : L.polygon(toLatLngs(geometry), style);
    layer.addTo(this.layers);
    if (typeof label === "string") name(layer, label);
    else this.above(geometry, label);
    if (!isEditable) return;
    layer.pm.enable({ allowSelfIntersection: false, draggable: true });
    const changed = (): void => this.edited(id, read(layer, this.isGeographic) ?? geometry);
    for (const event of ["pm:edit", "pm:dragend", "pm:vertexremoved"]) layer.on(event, changed);
  }

  /**
   * An element is placed above a region, so that the inside stays visible; where the map ends
   * above, below it or at the map's edge.
   */
  private above(geometry: Geometry, picture: HTMLElement): void {
    const box = boundsOf([geometry], this.isGeographic);
    if (box === null) return;
    const { map } = this.feedMap;
    const middle = (box[0] + box[2]) / 2;
    const tooltip = L.tooltip({ permanent: true, direction: "top", className: "count-label" })
      .setLatLng(latLng(middle, box[3]))
      .setContent(picture);
    this.layers.addLayer(tooltip);
    const place = (): void => {
      const [top, bottom] = [box[3], box[1]].map((y) => map.latLngToContainerPoint(latLng(middle, y))) as [L.Point, L.Point];
      const needed = (tooltip.getElement()?.offsetHeight ?? 0) + LABEL_GAP;
      const isCut = top.y < needed && bottom.y > 0;
      const isBelow = bottom.y + needed <= map.getSize().y;
      tooltip.options.direction = isCut ? "bottom" : "top";
      tooltip.setLatLng(map.containerPointToLatLng(!isCut ? top : isBelow ? bottom : L.point(top.x, 0)));
    };
    map.on("moveend resize", place);
    tooltip.on("remove", () => map.off("moveend resize", place));
    place();
  }

  private edited(id: string, geometry: Geometry): void {
    const shape = this.shapes.find((one) => one.id === id);
    this.shapes = this.shapes.map((one) => (one === shape ? { ...one, geometry } : one));
    shape?.onEdited?.(geometry);
  }

  // ---- Drawing

  private take(drawn: Geometry | [number, number]): void {
    const { asked } = this;
    this.asked = null;
    this.picked = null;
    if (asked !== null) {
      asked(drawn);
    } else if (!Array.isArray(drawn) && this.onChange !== null) {
      this.showRegion(drawn);
      this.onChange(drawn);
    }
    this.readyTools();
  }

  /** The tools are enabled only while a caller waits for a shape. */
  private readyTools(): void {
    for (const element of this.buttons.values()) element.disabled = this.asked === null && this.onChange === null;
  }

  /** The stored region that a click would choose. */
  private pickable(at: L.LatLng | null): DrawnRegion | null {
    const { map, project, regions } = this.feedMap;
    if (at === null || this.picked === null || map.pm.globalDrawModeEnabled()) return null;
    const [px, py] = project(at.lng, at.lat);
    return regions.regionAt(px, py);
  }

  private pointed(at: L.LatLng | null): void {
    const region = this.pickable(at);
    this.feedMap.regions.highlight(new Set(region === null ? [] : [region.id]));
    this.element.classList.toggle("picking", region !== null);
    this.element.title = region?.name ?? "";
  }

  private clicked(at: L.LatLng): void {
    const region = this.pickable(at);
    if (region !== null) {
      const { picked } = this;
      this.stop();
      picked?.(region.name);
    }
    if (!this.isPlacing) return;
    this.placing(false);
    this.take([tidy(at.lng, this.isGeographic), tidy(at.lat, this.isGeographic)]);
  }

  private placing(isPlacing: boolean): void {
    this.isPlacing = isPlacing;
    this.element.classList.toggle("placing", isPlacing);
    this.showHint(isPlacing ? "Point" : null);
  }

  private draw(shape: Shape): void {
    const { map } = this.feedMap;
    if (map.pm.globalDrawModeEnabled() && map.pm.Draw.getActiveShape() === shape) {
      map.pm.disableDraw();
      return;
    }
    this.placing(false);
    const accent = token("--accent");
    const style = { color: accent, weight: 2.5 };
    map.pm.enableDraw(shape, {
      templineStyle: style,
      hintlineStyle: { ...style, dashArray: "5 5" },
      pathOptions: style,
      tooltips: false,
      cursorMarker: true,
      continueDrawing: false,
    });
    this.drawing(shape);
  }

  private drawing(shape: Shape | null): void {
    for (const [one, element] of this.buttons) element.setAttribute("aria-pressed", String(one === shape));
    this.showHint(shape);
  }

  private showHint(what: Shape | "Point" | null): void {
    this.note.hidden = what === null;
    this.note.textContent = what === null ? "" : HINTS[what];
  }

  private async showEntities(): Promise<void> {
    try {
      const found = await get(`feeds/${this.feed.name}/positions`, positions);
      const data = new EntitiesData(this.feedMap.project);
      for (const row of found.entities) data.put(row);
      const layer = new EntityLayer(data);
      layer.isQuiet = true;
      layer.addTo(this.feedMap.map);
      this.openAt(found.entities);
    } catch {
      // The entities are shown only for orientation.
    }
  }

  /**
   * Fits the map of a feed without a stored view to its entities, unless the reader
   * moved it or a shape is shown.
   */
  private openAt(entities: readonly Position[]): void {
    if (this.feed.view !== null || this.feed.plan_bounds !== null || this.shapes.length > 0 || this.isMoved) return;
    const box = around(entities.map(([, x, y]) => [this.feedMap.near(x), y]));
    if (box !== null) this.feedMap.fit(box, this.isGeographic ? 12 : 4);
  }

  remove(): void {
    this.feedMap.remove();
    this.element.remove();
  }
}

function isPoint(geometry: Geometry | PointDocument): geometry is PointDocument {
  return "type" in geometry && geometry.type === "Point";
}

/** Equal for shapes that look the same, apart from their elements. */
function keyOf(shapes: readonly MapShape[]): string {
  return JSON.stringify(shapes.map((shape) => ({ ...shape, picture: null, isEditable: shape.onEdited !== undefined })));
}

/** Given a node, Leaflet does not parse the tooltip as HTML: text stays text. */
function name(layer: L.Path, label: string): void {
  if (label !== "")
    layer.bindTooltip(h("span", {}, label), { permanent: true, direction: "top", className: "shape-label", offset: [0, -4] });
}

function toLatLngs(geometry: Exclude<Geometry, { center: unknown }>): L.LatLng[][] | L.LatLng[][][] {
  const ring = (points: Ring): L.LatLng[] => points.slice(0, -1).map(([x, y]) => latLng(x, y));
  return geometry.type === "Polygon" ? geometry.coordinates.map(ring) : geometry.coordinates.map((polygon) => polygon.map(ring));
}

/** Seven decimals of a degree are a centimetre. */
function tidy(value: number, isGeographic: boolean): number {
  return Number(value.toFixed(isGeographic ? 7 : 4));
}

function read(layer: L.Layer, isGeographic: boolean): Geometry | null {
  const pair = (at: L.LatLng): [number, number] => [tidy(at.lng, isGeographic), tidy(at.lat, isGeographic)];
  if (layer instanceof L.Circle) return { center: pair(layer.getLatLng()), radius: Number(layer.getRadius().toFixed(2)) };
  if (!(layer instanceof L.Polygon)) return null;
  const closed = (points: L.LatLng[]): Ring => {
    const ring = points.map(pair);
    const first = ring[0];
    return first === undefined ? [] : [...ring, [first[0], first[1]]];
  };
  const found = layer.getLatLngs();
  if (Array.isArray(found[0]) && Array.isArray(found[0][0]))
    return { type: "MultiPolygon", coordinates: (found as L.LatLng[][][]).map((polygon) => polygon.map(closed)) };
  const polygon = (Array.isArray(found[0]) ? found : [found]) as L.LatLng[][];
  return { type: "Polygon", coordinates: polygon.map(closed) };
}

/** A button that opens the file chooser and passes the file on. */
export function fileButton(text: string, accept: string, onFile: (file: File) => void, kind = ""): HTMLElement {
  const input = h("input", { type: "file", accept, class: "visually-hidden", tabindex: -1, "aria-hidden": "true" });
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    if (file !== undefined) onFile(file);
    input.value = "";
  });
  return h("span", {}, button(text, { icon: "file-up", kind, onClick: () => input.click() }), input);
}
