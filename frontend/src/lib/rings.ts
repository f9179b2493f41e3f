/**
 * Rings of regions: which shape cannot be saved, and holes. The page uses this while a shape is
 * drawn; the server decides what is stored.
 */

import { isCircle, type Geometry, type Ring } from "./regions";

/** Edges of one polygon cross, a hole is not inside it, or edges of two polygons cross. */
export type ShapeFault = "crossing" | "outside" | "overlap";
type Point = readonly [number, number];

/** One hole: the number of its polygon, and of its ring there. */
export interface HolePlace {
  part: number;
  ring: number;
}

interface Edge {
  from: Point;
  to: Point;
  part: number;
}

/**
 * What is wrong with the shape, if something is visibly wrong; null for shapes that only touch
 * themselves. `isGeographic`: rings may go over the antimeridian.
 */
export function shapeFault(geometry: Geometry, isGeographic: boolean): ShapeFault | null {
  if (isCircle(geometry)) return null;
  const parts = polygonsOf(geometry).map((rings) => (isGeographic ? rings.map(unrolled) : rings));
  const crossed = firstCrossing(parts.flatMap((rings, part) => rings.flatMap((ring) => edgesOf(ring, part))));
  if (crossed !== null) return crossed[0].part === crossed[1].part ? "crossing" : "overlap";
  return parts.some(hasStrayHole) ? "outside" : null;
}

/** The geometry with one more hole, in the polygon in which the hole has a corner; else the first. */
export function withHole(geometry: Geometry, hole: Ring): Geometry {
  if (isCircle(geometry)) return geometry;
  const parts = polygonsOf(geometry);
  const found = parts.findIndex(([outer = []]) => hole.some((corner) => isInRing(outer, corner)));
  return rebuilt(
    geometry,
    parts.map((rings, part) => (part === Math.max(0, found) ? [...rings, hole] : rings)),
  );
}

export function withoutHole(geometry: Geometry, hole: HolePlace): Geometry {
  if (isCircle(geometry)) return geometry;
  return rebuilt(
    geometry,
    polygonsOf(geometry).map((rings, part) => rings.filter((_, ring) => part !== hole.part || ring !== hole.ring)),
  );
}

export function holesOf(geometry: Geometry): HolePlace[] {
  if (isCircle(geometry)) return [];
  return polygonsOf(geometry).flatMap((rings, part) => rings.slice(1).map((_, i) => ({ part, ring: i + 1 })));
}

export function holeAt(geometry: Geometry, place: Point): HolePlace | null {
  if (isCircle(geometry)) return null;
  const parts = polygonsOf(geometry);
  return holesOf(geometry).find(({ part, ring }) => isInRing(parts[part]?.[ring] ?? [], place)) ?? null;
}

/** The outer ring of a drawn polygon, closed. */
export function closedRing(geometry: Geometry): Ring {
  return isCircle(geometry) ? [] : (polygonsOf(geometry)[0]?.[0] ?? []);
}

/** How many corners a hole has. */
export function cornersOfHole(geometry: Geometry, { part, ring }: HolePlace): number {
  return isCircle(geometry) ? 0 : (polygonsOf(geometry)[part]?.[ring]?.length ?? 1) - 1;
}

function polygonsOf(geometry: Exclude<Geometry, { center: unknown }>): Ring[][] {
  return geometry.type === "Polygon" ? [geometry.coordinates] : geometry.coordinates;
}

function rebuilt(geometry: Exclude<Geometry, { center: unknown }>, parts: Ring[][]): Geometry {
  return geometry.type === "Polygon" ? { type: "Polygon", coordinates: parts[0] ?? [] } : { type: "MultiPolygon", coordinates: parts };
}

/** Longitudes go on where the ring crosses the antimeridian. */
function unrolled(ring: Ring): Ring {
  let last = ring[0]?.[0] ?? 0;
  return ring.map(([x, y]) => {
    last = x - 360 * Math.round((x - last) / 360);
    return [last, y];
  });
}

function edgesOf(ring: Ring, part: number): Edge[] {
  return ring.slice(1).map((to, i) => ({ from: ring[i]!, to, part }));
}

/** Sorted by their western ends, each edge is compared only with those that begin above its span. */
function firstCrossing(edges: Edge[]): [Edge, Edge] | null {
  const west = ({ from, to }: Edge): number => Math.min(from[0], to[0]);
  const sorted = edges.sort((a, b) => west(a) - west(b));
  for (const [i, edge] of sorted.entries()) {
    const east = Math.max(edge.from[0], edge.to[0]);
    for (let j = i + 1; j < sorted.length && west(sorted[j]!) <= east; j++) {
      if (doCross(edge, sorted[j]!)) return [edge, sorted[j]!];
    }
  }
  return null;
}

/** Edges that only touch do not cross. */
function doCross(a: Edge, b: Edge): boolean {
  return areApart(a, b.from, b.to) && areApart(b, a.from, a.to);
}

function areApart({ from, to }: Edge, p: Point, q: Point): boolean {
  return side(from, to, p) * side(from, to, q) < 0;
}

function side([ax, ay]: Point, [bx, by]: Point, [x, y]: Point): number {
  return Math.sign((bx - ax) * (y - ay) - (by - ay) * (x - ax));
}

function hasStrayHole([outer = [], ...holes]: Ring[]): boolean {
  return holes.some((hole, i) => {
    const corner = hole[0];
    if (corner === undefined) return false;
    return !isWithin(outer, hole) || holes.some((other, k) => k !== i && hole.every((one) => isInRing(other, one)));
  });
}

/** A corner on the border of `outer` may count as outside; not all of a ring that lies inside do. */
function isWithin(outer: Ring, ring: Ring): boolean {
  return ring.some((corner) => isInRing(outer, corner));
}

/** Even-odd. */
function isInRing(ring: Ring, [x, y]: Point): boolean {
  let isInside = false;
  ring.slice(1).forEach(([bx, by], i) => {
    const [ax, ay] = ring[i]!;
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) isInside = !isInside;
  });
  return isInside;
}
