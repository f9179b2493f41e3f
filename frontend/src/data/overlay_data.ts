/** Overlays of a feed's map. Pure. */

import { id, isObject, record, string } from "../lib/parse";
import { t } from "../lib/texts";

export const overlay = record({ id, name: string });
export type Overlay = ReturnType<typeof overlay>;

/** Longer files are refused before they are read. */
export const OVERLAY_BYTES = 20_000_000;

/** No degrees have such a size: these are metres. */
const FAR_FROM_DEGREES = 1_000;

/** A file's text as a FeatureCollection, or why it cannot be drawn on this map. */
export function collectionFrom(text: string, isGeographic: boolean): { collection: GeoJSON.FeatureCollection } | { fault: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: t("it is not JSON") };
  }
  if (isObject(value) && value["type"] === "Feature") value = { type: "FeatureCollection", features: [value] };
  if (isObject(value) && "coordinates" in value)
    value = { type: "FeatureCollection", features: [{ type: "Feature", properties: {}, geometry: value }] };
  if (!isObject(value) || value["type"] !== "FeatureCollection" || !Array.isArray(value["features"]))
    return { fault: t("it is not GeoJSON") };
  if (value["features"].length === 0) return { fault: t("it has no features") };
  if (isGeographic && greatest(value["features"].map((feature) => coordinatesOf(feature))) > FAR_FROM_DEGREES)
    return { fault: t("its coordinates are not in degrees: convert it to longitude and latitude (EPSG:4326)") };
  return { collection: value as unknown as GeoJSON.FeatureCollection };
}

function coordinatesOf(feature: unknown): unknown {
  const geometry = isObject(feature) ? feature["geometry"] : null;
  if (!isObject(geometry)) return null;
  const parts = geometry["geometries"];
  return Array.isArray(parts) ? parts.map((part) => (isObject(part) ? part["coordinates"] : null)) : geometry["coordinates"];
}

/** The greatest size of an x or y in nested lists of positions; heights do not count. */
function greatest(node: unknown): number {
  if (!Array.isArray(node)) return 0;
  if (typeof node[0] === "number") return Math.max(Math.abs(node[0]), Math.abs(Number(node[1])));
  return node.reduce<number>((most, one) => Math.max(most, greatest(one)), 0);
}

/** `harbour.geojson` becomes `harbour`. */
export function nameOfFile(file: string): string {
  return file.replace(/\.(geo)?json$/i, "").slice(0, 100) || "overlay";
}
