/** The regions of a specification: inline shapes, and stored regions by name. */

import { isObject } from "../lib/parse";
import { asGeometry, type Geometry } from "../lib/regions";

export interface QueryRegions {
  names: string[];
  geometries: Geometry[];
}

export function regionsOf(document: unknown): QueryRegions {
  const found: QueryRegions = { names: [], geometries: [] };
  walk(document, found);
  return found;
}

function walk(value: unknown, found: QueryRegions): void {
  const geometry = asGeometry(value);
  if (geometry !== null) {
    found.geometries.push(geometry);
  } else if (Array.isArray(value)) {
    for (const item of value) walk(item, found);
  } else if (isObject(value)) {
    // {"region": "name"} is a reference; {"region": {...}} is the key of a border
    // query with an inline region.
    if (typeof value["region"] === "string" && Object.keys(value).length === 1) found.names.push(value["region"]);
    else for (const item of Object.values(value)) walk(item, found);
  }
}
