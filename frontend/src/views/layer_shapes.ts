/** Regions as layers of Leaflet, and back. */

import * as L from "leaflet";
import { isCircle, type Geometry, type Ring } from "../lib/regions";
import { latLng } from "./map_view";

export function layerOf(geometry: Geometry, style: L.PathOptions): L.Circle | L.Polygon {
  return isCircle(geometry)
    ? L.circle(latLng(...geometry.center), { ...style, radius: geometry.radius })
    : L.polygon(toLatLngs(geometry), style);
}

function toLatLngs(geometry: Exclude<Geometry, { center: unknown }>): L.LatLng[][] | L.LatLng[][][] {
  const ring = (points: Ring): L.LatLng[] => points.slice(0, -1).map(([x, y]) => latLng(x, y));
  return geometry.type === "Polygon" ? geometry.coordinates.map(ring) : geometry.coordinates.map((polygon) => polygon.map(ring));
}

/** Seven decimals of a degree are a centimetre. */
export function tidy(value: number, isGeographic: boolean): number {
  return Number(value.toFixed(isGeographic ? 7 : 4));
}

export function shapeOf(layer: L.Layer, isGeographic: boolean): Geometry | null {
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
