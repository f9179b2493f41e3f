/**
 * Region documents of the specification: polygons, multipolygons, circles. Coordinates
 * are [x, y]: longitude first.
 */

import { formatNumber, t, tn } from "./texts";

export type Ring = [number, number][];
export interface PolygonDocument {
  type: "Polygon";
  coordinates: Ring[];
}
export interface MultiPolygonDocument {
  type: "MultiPolygon";
  coordinates: Ring[][];
}
export interface CircleDocument {
  center: [number, number];
  radius: number;
}
export type Geometry = PolygonDocument | MultiPolygonDocument | CircleDocument;
export interface Reference {
  region: string;
}

export function isCircle(geometry: Geometry): geometry is CircleDocument {
  return "center" in geometry;
}

export function isReference(value: unknown): value is Reference {
  return typeof value === "object" && value !== null && "region" in value && typeof value.region === "string";
}

/** A geometry, if the value has that form; the server checks its coordinates. */
export function asGeometry(value: unknown): Geometry | null {
  if (typeof value !== "object" || value === null) return null;
  if ("center" in value && "radius" in value) return value as CircleDocument;
  if ("type" in value && "coordinates" in value && (value.type === "Polygon" || value.type === "MultiPolygon")) return value as Geometry;
  return null;
}

/** Metres per degree of latitude on the sphere that Leaflet uses. */
const DEGREE_M = 111_319.49;

/**
 * All rings of a region; a circle as a ring of `corners` points. On a geographic
 * feed its radius is in metres.
 */
export function rings(geometry: Geometry, geographic: boolean, corners = 64): Ring[] {
  if (isCircle(geometry)) return [circleRing(geometry, geographic, corners)];
  return geometry.type === "Polygon" ? geometry.coordinates : geometry.coordinates.flat();
}

function circleRing({ center: [x, y], radius }: CircleDocument, geographic: boolean, corners: number): Ring {
  const ry = geographic ? radius / DEGREE_M : radius;
  const rx = geographic ? radius / (DEGREE_M * Math.max(0.01, Math.cos((y * Math.PI) / 180))) : radius;
  const ring: Ring = [];
  for (let i = 0; i <= corners; i++) {
    const angle = ((i % corners) / corners) * 2 * Math.PI;
    ring.push([x + rx * Math.cos(angle), y + ry * Math.sin(angle)]);
  }
  return ring;
}

/** West, south, east, north. */
export type Box = [number, number, number, number];

/** The bounding box of points; null without points. */
export function around(points: Iterable<readonly [number, number]>): Box | null {
  let [w, s, e, n] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of points) {
    if (x < w) w = x;
    if (x > e) e = x;
    if (y < s) s = y;
    if (y > n) n = y;
  }
  return w <= e ? [w, s, e, n] : null;
}

/** The middle of a box. */
export function middleOf([w, s, e, n]: Box): [number, number] {
  return [Number(((w + e) / 2).toPrecision(8)), Number(((s + n) / 2).toPrecision(8))];
}

/** A rectangle in the middle of a box, half as wide and high. */
export function rectangleIn([w, s, e, n]: Box): Geometry {
  const at = (low: number, high: number, share: number): number => Number((low + (high - low) * share).toPrecision(8));
  const [left, right, bottom, top] = [at(w, e, 0.25), at(w, e, 0.75), at(s, n, 0.25), at(s, n, 0.75)];
  return withRing({ type: "Polygon", coordinates: [[]] }, [
    [left, bottom],
    [right, bottom],
    [right, top],
    [left, top],
  ]);
}

/** Null for a region without points. */
export function bounds(geometry: Geometry, geographic: boolean): Box | null {
  return around(rings(geometry, geographic, 16).flat());
}

/**
 * The outer ring of the first polygon without its closing point, as the coordinate table edits it.
 */
export function openRing(geometry: Geometry): Ring {
  if (isCircle(geometry)) return [geometry.center];
  const ring = (geometry.type === "Polygon" ? geometry.coordinates[0] : geometry.coordinates[0]?.[0]) ?? [];
  const first = ring[0];
  const last = ring[ring.length - 1];
  const isClosed = ring.length > 1 && first !== undefined && last !== undefined && first[0] === last[0] && first[1] === last[1];
  return isClosed ? ring.slice(0, -1) : [...ring];
}

/**
 * The geometry with the outer ring of its first polygon replaced; holes
 * and other polygons are kept.
 */
export function withRing(geometry: PolygonDocument | MultiPolygonDocument, ring: Ring): Geometry {
  const first = ring[0];
  const closed: Ring = first === undefined ? [] : [...ring, [first[0], first[1]]];
  if (geometry.type === "Polygon") return { type: "Polygon", coordinates: [closed, ...geometry.coordinates.slice(1)] };
  const [polygon = [], ...others] = geometry.coordinates;
  return { type: "MultiPolygon", coordinates: [[closed, ...polygon.slice(1)], ...others] };
}

/** "Polygon, 5 corners", "Circle, radius 30 m". */
export function describe(geometry: Geometry, geographic: boolean): string {
  if (isCircle(geometry))
    return t("Circle, radius {radius}", { radius: `${formatNumber(Number(geometry.radius.toPrecision(6)))}${geographic ? " m" : ""}` });
  if (geometry.type === "MultiPolygon" && geometry.coordinates.length > 1)
    return t("{count} polygons", { count: geometry.coordinates.length });
  const holes = geometry.type === "Polygon" ? geometry.coordinates.length - 1 : 0;
  const corners = t("Polygon, {count} corners", { count: openRing(geometry).length });
  return holes > 0 ? `${corners}, ${tn("1 hole", "{count} holes", holes)}` : corners;
}
