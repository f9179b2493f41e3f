/** The map of a feed: geographic over the bundled base map or tiles, planar over the plan image. */

import { t } from "../lib/texts";
import * as L from "leaflet";
import { worldCopy } from "../lib/globe";
import { asGeometry, bounds, type Box, type Geometry } from "../lib/regions";
import { onThemeChange } from "../lib/colours";
import type { Feed } from "../lib/shapes";
import { BaseMaps } from "./base_maps";
import { projection, type Project } from "./canvas_layer";
import { RegionLayer } from "./region_layer";
import { TrackLayer } from "./track_layer";

export interface FeedMap {
  map: L.Map;
  project: Project;
  /** Shifts an x of the feed to the world copy that is shown. */
  near: (x: number) => number;
  /** Null on a plan. */
  base: BaseMaps | null;
  regions: RegionLayer;
  tracks: TrackLayer;
  /**
   * In the feed's coordinates; L.LatLng has them in reverse. Stays visible when the window changes,
   * until the reader moves the map.
   */
  fit: (box: Box, maxZoom?: number) => void;
  /** Centres a position in the part of the map that is not covered. */
  panTo: (x: number, y: number) => void;
  /** Whether a position is in the part of the map that is not covered. */
  isInSight: (x: number, y: number) => boolean;
  remove: () => void;
}

export interface MapOptions {
  isSmall?: boolean;
  at?: { x: number; y: number; zoom: number } | null;
  /** CSS pixels at each edge that are covered by panels. */
  covered?: () => Edges;
}

export interface Edges {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** CSS pixels between fitted content and the edges. */
const PADDING_PX = 28;
/** Closer to an edge it may be below the map's controls. */
const EDGE_PX = 44;
const nothing = (): Edges => ({ left: 0, top: 0, right: 0, bottom: 0 });

export function latLng(x: number, y: number): L.LatLng {
  return L.latLng(y, x);
}

/**
 * The map's window as a box in the feed's coordinates: all around the globe if it
 * extends over the antimeridian.
 */
export function shownBox(bounds: L.LatLngBounds, isGeographic: boolean): [number, number, number, number] {
  const [w, s, e, n] = [bounds.getWest(), bounds.getSouth(), bounds.getEast(), bounds.getNorth()];
  return isGeographic && (w < -180 || e > 180) ? [-180, s, 180, n] : [w, s, e, n];
}

export function openMap(element: HTMLElement, feed: Feed, { isSmall = false, at = null, covered = nothing }: MapOptions = {}): FeedMap {
  const isPlanar = feed.crs === "planar";
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.classList.toggle("planar", isPlanar);
  const map = L.map(element, {
    crs: isPlanar ? L.CRS.Simple : L.CRS.EPSG3857,
    zoomControl: false,
    boxZoom: false,
    attributionControl: !isSmall,
    minZoom: isPlanar ? -6 : 2,
    maxZoom: isPlanar ? 10 : 19,
    zoomSnap: isPlanar ? 0.25 : 0.5,
    zoomAnimation: !isCalm,
    fadeAnimation: false,
    inertia: !isCalm,
    worldCopyJump: false,
    maxBoundsViscosity: 0.6,
  });
  element.setAttribute("role", "region");
  element.setAttribute("aria-label", t("Map of {feed}", { feed: feed.title === "" ? feed.name : feed.title }));
  if (!isSmall) {
    map.attributionControl.setPrefix(false);
    L.control.zoom({ position: "bottomright", zoomInTitle: t("Zoom in"), zoomOutTitle: t("Zoom out") }).addTo(map);
    if (!isPlanar) L.control.scale({ position: "bottomleft", imperial: false }).addTo(map);
  }
  pane(map, "overlays", 340);
  pane(map, "heat", 345);
  pane(map, "regions", 350);
  pane(map, "tracks", 380);
  pane(map, "entities", 420);
  pane(map, "evidence", 440);
  const base = isPlanar ? null : new BaseMaps(map);
  if (isPlanar) planBackground(map, feed);
  const near = worldCopy(feed);
  const project = projection(feed.crs, near);
  const regions = new RegionLayer(project, !isPlanar).addTo(map);
  const tracks = new TrackLayer(project).addTo(map);
  const fitter = new Fitter(map, near, covered);
  const fit: FeedMap["fit"] = (box, maxZoom = isPlanar ? 4 : 16) => fitter.fit(box, maxZoom);
  openingView(map, feed, at, fit);
  const stop = onThemeChangeWhile(element, () => {
    base?.themeChanged();
    regions.themeChanged();
    tracks.themeChanged();
  });
  const observer = new ResizeObserver(() => fitter.resized());
  observer.observe(element);
  return {
    map,
    project,
    near,
    base,
    regions,
    tracks,
    fit,
    panTo: (x, y) => fitter.panTo(x, y),
    isInSight: (x, y) => fitter.isInSight(x, y),
    remove: () => {
      stop();
      observer.disconnect();
      map.remove();
    },
  };
}

/**
 * Keeps fitted content visible when panels open and close, until the reader moves the
 * map; then the centre is kept.
 */
class Fitter {
  private fitted: { box: Box; maxZoom: number } | null = null;
  private isFitting = false;

  constructor(
    private readonly map: L.Map,
    private readonly near: (x: number) => number,
    private readonly covered: () => Edges,
  ) {
    map.on("movestart zoomstart", () => {
      if (!this.isFitting) this.fitted = null;
    });
  }

  fit(box: Box, maxZoom: number): void {
    const [w, s, e, n] = box;
    const shift = this.near((w + e) / 2) - (w + e) / 2;
    const { left, top, right, bottom } = this.covered();
    this.isFitting = true;
    this.map.fitBounds(L.latLngBounds(latLng(w + shift, s), latLng(e + shift, n)), {
      paddingTopLeft: [left + PADDING_PX, top + PADDING_PX],
      paddingBottomRight: [right + PADDING_PX, bottom + PADDING_PX],
      maxZoom,
      animate: false,
    });
    this.isFitting = false;
    this.fitted = { box, maxZoom };
  }

  resized(): void {
    const { fitted } = this;
    this.isFitting = true;
    this.map.invalidateSize({ animate: false, pan: fitted === null });
    this.isFitting = false;
    if (fitted !== null && this.map.getSize().x > 0) this.fit(fitted.box, fitted.maxZoom);
  }

  panTo(x: number, y: number): void {
    const size = this.map.getSize();
    const { left, top, right, bottom } = this.covered();
    const middle = L.point((left + size.x - right) / 2, (top + size.y - bottom) / 2);
    this.map.panBy(this.map.latLngToContainerPoint(latLng(this.near(x), y)).subtract(middle));
  }

  isInSight(x: number, y: number): boolean {
    const size = this.map.getSize();
    const { left, top, right, bottom } = this.covered();
    const at = this.map.latLngToContainerPoint(latLng(this.near(x), y));
    return at.x > left + EDGE_PX && at.y > top + EDGE_PX && at.x < size.x - right - EDGE_PX && at.y < size.y - bottom - EDGE_PX;
  }
}

function pane(map: L.Map, name: string, zIndex: number): void {
  const made = map.createPane(name);
  made.style.zIndex = String(zIndex);
  made.style.pointerEvents = "none";
}

function planBackground(map: L.Map, feed: Feed): void {
  if (feed.plan_image !== null && feed.plan_bounds !== null) {
    const [x0, y0, x1, y1] = feed.plan_bounds;
    const plan = L.imageOverlay(feed.plan_image, L.latLngBounds(latLng(x0, y0), latLng(x1, y1)), {
      className: "plan",
      pane: "tilePane",
      alt: t("Plan of {title}", { title: feed.title }),
    });
    plan.on("load", () => plan.getElement()?.classList.toggle("plan-drawing", isBright(plan.getElement()!)));
    plan.addTo(map);
  }
}

/** A drawing on white rather than a photograph: in the dark theme it is inverted. */
function isBright(image: HTMLImageElement): boolean {
  const [width, height] = [16, 16];
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  if (context === null) return false;
  context.drawImage(image, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  let sum = 0;
  for (let i = 0; i < data.length; i += 4) sum += data[i]! + data[i + 1]! + data[i + 2]!;
  return sum / (width * height * 3) > 190;
}

function openingView(map: L.Map, feed: Feed, at: MapOptions["at"], fit: FeedMap["fit"]): void {
  if (at) map.setView(latLng(at.x, at.y), at.zoom, { animate: false });
  else if (feed.plan_bounds !== null) fit(feed.plan_bounds, 6);
  else if (feed.view !== null) map.setView(latLng(...feed.view.center), feed.view.zoom, { animate: false });
  else if (feed.crs === "planar") map.setView([0, 0], 0);
  else map.setView([30, 10], 2.5);
}

function onThemeChangeWhile(element: HTMLElement, callback: () => void): () => void {
  let isOn = true;
  onThemeChange(() => {
    if (isOn && element.isConnected) callback();
  });
  return () => (isOn = false);
}

/** The common bounding box of several geometries, for fitting. */
export function boundsOf(geometries: readonly Geometry[], isGeographic: boolean): Box | null {
  let box: Box | null = null;
  for (const geometry of geometries) {
    const one = asGeometry(geometry) === null ? null : bounds(geometry, isGeographic);
    if (one === null) continue;
    box = box === null ? one : [Math.min(box[0], one[0]), Math.min(box[1], one[1]), Math.max(box[2], one[2]), Math.max(box[3], one[3])];
  }
  return box;
}
