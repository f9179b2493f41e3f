/** Overlays of a feed's map. Pure. */

import { id, isObject, record, string } from "../lib/parse";
import { t } from "../lib/texts";

export const overlay = record({ id, name: string });
export type Overlay = ReturnType<typeof overlay>;

/** Longer files are refused before they are read. */
export const OVERLAY_BYTES = 20_000_000;

/** A file's text as a FeatureCollection, or why it is invalid. */
export function collectionFrom(text: string): { collection: GeoJSON.FeatureCollection } | { fault: string } {
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
  return { collection: value as unknown as GeoJSON.FeatureCollection };
}

/** `harbour.geojson` becomes `harbour`. */
export function nameOfFile(file: string): string {
  return file.replace(/\.(geo)?json$/i, "").slice(0, 100) || "overlay";
}
