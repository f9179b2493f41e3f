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
import { around, isCircle, type Box, type Geometry } from "../lib/regions";
import { closedRing, holeAt, holesOf, shapeFault, withHole, withoutHole, type ShapeFault } from "../lib/rings";
import { EntitiesData } from "../data/entities_data";
import { type Feed, type Position } from "../lib/shapes";
import { DrawnCorners } from "./drawn_corners";
import type { EditorMap, MapShape, PointDocument } from "./editors/editor";
import { EntityLayer } from "./entity_layer";
import { layerOf, shapeOf, tidy } from "./layer_shapes";
import { boundsOf, latLng, openMap, shownBox, type FeedMap } from "./map_view";
import { RegionLayer, type DrawnRegion } from "./region_layer";
import { t } from "../lib/texts";

type Shape = "Polygon" | "Rectangle" | "Circle";
/** What is drawn: a new region, or a hole in the one with handles. */
type Tool = Shape | "Hole";
/** What the next click on the map chooses. */
type Choice = "Point" | "HoleToRemove";
const TOOLS: [Tool, string, string][] = [
  ["Polygon", "pentagon", t("Draw a polygon")],
  ["Rectangle", "rectangle-horizontal", t("Draw a rectangle")],
  ["Circle", "circle", t("Draw a circle")],
  ["Hole", "square-dashed-plus", t("Draw a hole in the region")],
];
const HINTS: Record<Tool | Choice, string> = {
  Point: t("Click the place on the map. Escape cancels."),
  Polygon: t("Click to set corners; click the first one again to finish. Escape cancels."),
  Rectangle: t("Click one corner, then the opposite one. Escape cancels."),
  Circle: t("Click the centre, then the edge. Escape cancels."),
  Hole: t("Click to set corners inside the region; click the first one again to finish. Escape cancels."),
  HoleToRemove: t("Click the hole that you want to remove. Escape cancels."),
};
const REFUSED = t("An edge to there would cross another edge: click elsewhere, or take back the last corner.");
const NO_PLACES = t("No rows with a place yet. Ranges of values, composite events and rules need none.");
const FAULTS: Record<ShapeFault, string> = {
  crossing: t("Edges of the region cross, so it cannot be saved. Drag a corner until none cross."),
  outside: t("A hole is not inside the region, so it cannot be saved. Drag its corners inside, or remove the hole."),
  overlap: t("Parts of the region overlap, so it cannot be saved. Drag their corners apart."),
};

/** CSS pixels that the tools and the buttons of the zoom cover. */
const COVERED = { left: 40, top: 0, right: 24, bottom: 0 };
/** Pixels between a region and its label. */
const LABEL_GAP = 12;

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
  private readonly buttons = new Map<Tool, HTMLButtonElement>();
  private readonly holeRemover = iconButton(t("Remove a hole"), "square-dashed-x", {
    onClick: () => this.choosing(this.choice === "HoleToRemove" ? null : "HoleToRemove"),
  });
  private readonly clear: HTMLButtonElement;
  private readonly corners: DrawnCorners;
  private readonly isGeographic: boolean;
  private shapes: readonly MapShape[] = [];
  private asked: ((geometry: Geometry | [number, number]) => void) | null = null;
  private picked: ((name: string) => void) | null = null;
  private readonly tools = h("div", { class: "button-group" });
  private tool: Tool | null = null;
  private choice: Choice | null = null;
  /** No corner can be set where the pointer is. */
  private isRefused = false;
  private hasPlaces: boolean | null = null;
  private needsPlaces = false;
  private fault: ShapeFault | null = null;
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
    for (const [tool, name, text] of TOOLS) this.buttons.set(tool, iconButton(text, name, { onClick: () => this.draw(tool) }));
    this.clear = iconButton(t("Remove the region"), "trash-2", { onClick: () => this.editable()?.onEdited?.(null) });
    this.tools.append(...(mayDraw ? this.buttons.values() : []), this.holeRemover, this.clear);
    const toolbar = h("div", { class: "map-tools" }, this.tools, ...extra);
    this.element = h("div", { class: "region-editor" }, canvas, toolbar, this.note);
    place.append(this.element);
    this.feedMap = openMap(canvas, feed, { covered: () => COVERED });
    const { map } = this.feedMap;
    this.corners = new DrawnCorners(
      map,
      () => this.redraw(),
      (isRefused) => this.pointedAt(isRefused),
    );
    toolbar.append(this.corners.element);
    map.pm.setGlobalOptions({ allowSelfIntersection: false, snappable: false, limitMarkersToCount: 60 });
    this.quiet = new RegionLayer(this.feedMap.project, this.isGeographic).addTo(map);
    this.layers.addTo(map);
    map.on("pm:create", ({ layer }) => {
      map.removeLayer(layer);
      const drawn = shapeOf(layer, this.isGeographic);
      if (drawn === null) return;
      if (this.tool === "Hole") this.changeRings((geometry) => withHole(geometry, closedRing(drawn)));
      else this.take(drawn);
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
      this.choosing(null);
    });
    document.addEventListener("keydown", (event) => {
      const isTyping = event.target instanceof HTMLElement && event.target.matches("input, textarea, select, [contenteditable]");
      if (!isTyping && this.corners.pressed(event)) event.preventDefault();
    });
    this.paint();
    this.readyTools();
    void this.showEntities();
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

  /** Why the shape with handles cannot be saved, and the remedy; null: as far as the page knows, it can. */
  problem(): string | null {
    return this.fault === null ? null : FAULTS[this.fault];
  }

  /** From now on the map says if none of the newest rows has a place. */
  explainMissingPlaces(): void {
    this.needsPlaces = true;
    this.showNote();
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
    if (kind === "point") this.choosing("Point");
    else if (begin) this.draw("Polygon");
    // On a narrow screen the map is above the form that asks.
    if (begin) this.element.scrollIntoView({ block: "nearest" });
  }

  stop(): void {
    this.asked = null;
    this.picked = null;
    this.pointed(null);
    this.readyTools();
    this.choosing(null);
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
    this.fault = null;
    this.clear.disabled = this.editable() === undefined;
    this.tools.hidden = !this.mayDraw && this.clear.disabled;
    this.readyTools();
    const accent = token("--accent");
    const quiet: DrawnRegion[] = [];
    for (const { id, geometry, label, picture, active, onEdited } of this.shapes) {
      if (isPoint(geometry)) this.point(geometry, label, active, accent);
      else if (active) this.strong(id, geometry, picture ?? label, accent, onEdited !== undefined);
      else quiet.push({ id, name: label, geometry, colour: accent });
    }
    this.quiet.set(quiet);
    this.showNote();
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
    const layer = layerOf(geometry, style).addTo(this.layers);
    if (typeof label === "string") name(layer, label);
    else this.above(geometry, label);
    if (!isEditable) return;
    // A corner stays where it was dragged, also where edges cross: it would jump back without a word.
    layer.pm.enable({ allowSelfIntersection: true, draggable: true });
    this.judge(layer, geometry);
    const changed = (): void => {
      const now = shapeOf(layer, this.isGeographic) ?? geometry;
      this.judge(layer, now);
      this.edited(id, now);
    };
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

  /** A shape that cannot be saved is red, and the note says why. */
  private judge(layer: L.Path, geometry: Geometry): void {
    this.fault = shapeFault(geometry, this.isGeographic);
    layer.setStyle({ color: token(this.fault === null ? "--accent" : "--critical") });
    this.showNote();
  }

  /** Adds or removes a hole of the region with handles; its handles are made anew. */
  private changeRings(change: (geometry: Geometry) => Geometry): void {
    const shape = this.editable();
    if (shape === undefined || isPoint(shape.geometry)) return;
    const geometry = change(shape.geometry);
    this.shapes = this.shapes.map((one) => (one === shape ? { ...one, geometry } : one));
    this.paint();
    shape.onEdited?.(geometry);
  }

  private edited(id: string, geometry: Geometry): void {
    const shape = this.shapes.find((one) => one.id === id);
    this.shapes = this.shapes.map((one) => (one === shape ? { ...one, geometry } : one));
    this.readyTools();
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

  /** The tools of new shapes are enabled only while a caller waits for one. */
  private readyTools(): void {
    const geometry = this.editable()?.geometry;
    const mayHave = geometry !== undefined && !isPoint(geometry) && !isCircle(geometry);
    for (const [tool, element] of this.buttons)
      element.disabled = tool === "Hole" ? !mayHave : this.asked === null && this.onChange === null;
    this.holeRemover.disabled = !mayHave || holesOf(geometry).length === 0;
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
    const { choice } = this;
    if (choice === null) return;
    this.choosing(null);
    const place: [number, number] = [tidy(at.lng, this.isGeographic), tidy(at.lat, this.isGeographic)];
    if (choice === "Point") this.take(place);
    if (choice === "HoleToRemove")
      this.changeRings((geometry) => {
        const hole = holeAt(geometry, place);
        return hole === null ? geometry : withoutHole(geometry, hole);
      });
  }

  private choosing(choice: Choice | null): void {
    if (choice !== null) this.feedMap.map.pm.disableDraw();
    this.choice = choice;
    this.element.classList.toggle("placing", choice !== null);
    this.holeRemover.setAttribute("aria-pressed", String(choice === "HoleToRemove"));
    this.showNote();
  }

  private draw(tool: Tool): void {
    const { map } = this.feedMap;
    if (this.tool === tool) {
      map.pm.disableDraw();
      return;
    }
    this.choosing(null);
    const accent = token("--accent");
    const style = { color: accent, weight: 2.5 };
    map.pm.enableDraw(tool === "Hole" ? "Polygon" : tool, {
      templineStyle: style,
      hintlineStyle: { ...style, dashArray: "5 5" },
      pathOptions: style,
      tooltips: false,
      cursorMarker: true,
      continueDrawing: false,
    });
    this.drawing(tool);
  }

  /** The same tool, without what was drawn with it so far. */
  private redraw(): void {
    const { tool } = this;
    this.feedMap.map.pm.disableDraw();
    if (tool !== null) this.draw(tool);
  }

  private drawing(tool: Tool | null): void {
    this.tool = tool;
    this.isRefused = false;
    for (const [one, element] of this.buttons) element.setAttribute("aria-pressed", String(one === tool));
    this.showNote();
  }

  private pointedAt(isRefused: boolean): void {
    if (this.isRefused === isRefused) return;
    this.isRefused = isRefused;
    this.showNote();
  }

  /** What to do next; else why the shape cannot be saved. */
  private showNote(): void {
    const next = this.tool ?? this.choice;
    const fault = this.isRefused ? REFUSED : next === null ? this.problem() : null;
    const text = fault ?? (next !== null ? HINTS[next] : this.needsPlaces && this.hasPlaces === false ? NO_PLACES : null);
    this.note.hidden = text === null;
    this.note.classList.toggle("map-note-fault", fault !== null);
    // A status is read out when its text is set.
    if (this.note.textContent !== (text ?? "")) this.note.textContent = text ?? "";
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
      this.hasPlaces = found.entities.length > 0;
      this.showNote();
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
