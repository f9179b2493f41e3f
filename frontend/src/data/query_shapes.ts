/** The regions a specification speaks of: drawn ones in place, stored ones by name. */

import { isObject } from "../lib/parse";
import { asGeometry, type Geometry } from "../lib/regions";

export interface SpokenRegions {
  names: string[];
  geometries: Geometry[];
}

export function spokenRegions(document: unknown): SpokenRegions {
  const found: SpokenRegions = { names: [], geometries: [] };
  walk(document, found);
  return found;
}

function walk(value: unknown, found: SpokenRegions): void {
  const geometry = asGeometry(value);
  if (geometry !== null) {
    found.geometries.push(geometry);
  } else if (Array.isArray(value)) {
    for (const item of value) walk(item, found);
  } else if (isObject(value)) {
    // {"region": "name"} is a reference; {"region": {...}} is the key of a border query that holds one.
    if (typeof value["region"] === "string" && Object.keys(value).length === 1) found.names.push(value["region"]);
    else for (const item of Object.values(value)) walk(item, found);
  }
}
