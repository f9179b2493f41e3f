/**
 * A Leaflet layer with one canvas over the map's window and a margin around
 * it, drawn by the subclass.
 *
 * Positions are kept in base coordinates (the map's pixels at zoom 0), so that a frame costs one
 * multiplication and one subtraction per point, without allocating objects. While the map is
 * dragged its pane moves the canvas along; it is redrawn only if the window leaves the margin.
 */

import * as L from "leaflet";

export interface CanvasFrame {
  context: CanvasRenderingContext2D;
  /** CSS pixels of the canvas: x = px * k - ox, y = py * k - oy. */
  k: number;
  ox: number;
  oy: number;
  width: number;
  height: number;
}

interface AnimatedMap extends L.Map {
  _latLngToNewLayerPoint(latlng: L.LatLng, zoom: number, center: L.LatLng): L.Point;
}

export type Project = (x: number, y: number) => [number, number];

/**
 * Base coordinates of a position; geographic as Leaflet's EPSG:3857, on the world copy that `near`
 * chooses; planar as L.CRS.Simple.
 */
export function projection(crs: "geographic" | "planar", near: (lng: number) => number): Project {
  if (crs === "planar") return (x, y) => [x, -y];
  return (lng, lat) => {
    const sin = Math.sin((Math.max(-85.0511, Math.min(85.0511, lat)) * Math.PI) / 180);
    return [256 * (near(lng) / 360 + 0.5), 256 * (0.5 - Math.log((1 + sin) / (1 - sin)) / (4 * Math.PI))];
  };
}

export abstract class CanvasLayer extends L.Layer {
  protected readonly canvas = document.createElement("canvas");
  private request = 0;
  private isZooming = false;
  private topLeft: L.LatLng | null = null;
  /** What the canvas shows: its zoom and its corners in layer coordinates. */
  private drawn: { zoom: number; area: L.Bounds } | null = null;
  declare protected _map: L.Map;

  /** `margin`: how far the canvas extends beyond each edge, as a share of the window's size. */
  constructor(
    private readonly paneName: string,
    private readonly margin = 0.15,
  ) {
    super();
    this.canvas.dataset["layer"] = paneName;
    this.canvas.className = "overlay-canvas leaflet-zoom-animated";
  }

  /** The duration of the last drawing is in the canvas's `data-draw-ms`, for measurements. */
  protected abstract draw(frame: CanvasFrame): void;

  override onAdd(map: L.Map): this {
    const pane = map.getPane(this.paneName) ?? map.createPane(this.paneName);
    pane.appendChild(this.canvas);
    this.requestDraw();
    return this;
  }

  override onRemove(): this {
    cancelAnimationFrame(this.request);
    this.request = 0;
    this.canvas.remove();
    return this;
  }

  override getEvents(): Record<string, L.LeafletEventHandlerFn> {
    return {
      move: () => this.follow(),
      moveend: () => this.requestDraw(),
      resize: () => this.requestDraw(),
      zoomend: () => {
        this.isZooming = false;
        this.drawNow();
      },
      zoomanim: (event) => this.animateZoom(event as L.ZoomAnimEvent),
    };
  }

  /** Draws in the next frame; several requests cause one drawing. */
  requestDraw(): void {
    if (this.request !== 0 || !this.canvas.isConnected) return;
    this.request = requestAnimationFrame(() => {
      this.request = 0;
      this.drawNow();
    });
  }

  /** Draws only if the window shows parts that the canvas does not contain. */
  private follow(): void {
    const size = this._map.getSize();
    const window = L.bounds(this._map.containerPointToLayerPoint([0, 0]), this._map.containerPointToLayerPoint(size));
    if (this.drawn?.zoom === this._map.getZoom() && this.drawn.area.contains(window)) return;
    this.drawNow();
  }

  private animateZoom(event: L.ZoomAnimEvent): void {
    if (this.topLeft === null) return;
    this.isZooming = true;
    const scale = this._map.getZoomScale(event.zoom, this._map.getZoom());
    const offset = (this._map as AnimatedMap)._latLngToNewLayerPoint(this.topLeft, event.zoom, event.center);
    L.DomUtil.setTransform(this.canvas, offset, scale);
  }

  private drawNow(): void {
    if (this.isZooming || !this.canvas.isConnected) return;
    const began = performance.now();
    const size = this._map.getSize();
    const pad = size.multiplyBy(this.margin).round();
    const [width, height] = [size.x + 2 * pad.x, size.y + 2 * pad.y];
    const ratio = Math.min(2, devicePixelRatio || 1);
    const corner = this._map.containerPointToLayerPoint(pad.multiplyBy(-1));
    this.resize(width, height, ratio);
    L.DomUtil.setPosition(this.canvas, corner);
    this.topLeft = this._map.containerPointToLatLng(pad.multiplyBy(-1));
    this.drawn = { zoom: this._map.getZoom(), area: L.bounds(corner, corner.add([width, height])) };
    const context = this.canvas.getContext("2d");
    if (context === null) return;
    const { k, ox, oy } = this.frame();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.draw({ context, k, ox: ox - pad.x, oy: oy - pad.y, width, height });
    this.canvas.dataset["drawMs"] = (performance.now() - began).toFixed(2);
  }

  private resize(width: number, height: number, ratio: number): void {
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width === wide && this.canvas.height === high) return;
    [this.canvas.width, this.canvas.height] = [wide, high];
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
  }

  /** The current transformation from base coordinates to CSS pixels of the map's window. */
  frame(): { k: number; ox: number; oy: number } {
    const crs = this._map.options.crs ?? L.CRS.EPSG3857;
    const k = crs.scale(this._map.getZoom()) / crs.scale(0);
    const min = this._map.getPixelBounds().min ?? L.point(0, 0);
    return { k, ox: min.x, oy: min.y };
  }
}

/**
 * A layer with a second canvas over its first: for the few things that change
 * while the many below do not.
 */
export abstract class FrontedLayer extends CanvasLayer {
  protected abstract readonly front: CanvasLayer;

  override onAdd(map: L.Map): this {
    super.onAdd(map);
    this.front.addTo(map);
    return this;
  }

  override onRemove(): this {
    this.front.remove();
    return super.onRemove();
  }
}
