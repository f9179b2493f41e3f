/** The reader's settings of a feed's map. Pure. */

import { isObject } from "../lib/parse";
import { GROUPINGS, type Grouping } from "./clusters";
import { t } from "../lib/texts";

export const HEATS = ["none", "reports", "answers"] as const;
export type Heat = (typeof HEATS)[number];

/** The reader's choice; `colourBy` null: all entities alike; SPEED: by speed. */
export interface Looks {
  grouping: Grouping;
  colourBy: string | null;
  heat: Heat;
}

/** Not a valid name of an attribute: it begins with a space. */
export const SPEED = t(" speed");

export function looksFrom(text: string | null): Looks {
  let value: unknown = null;
  try {
    value = text === null ? null : JSON.parse(text);
  } catch {
    // Written by another version: treated as no choice.
  }
  const known = isObject(value) ? value : {};
  return {
    grouping: GROUPINGS.find((one) => one === known["grouping"]) ?? "auto",
    colourBy: typeof known["colourBy"] === "string" ? known["colourBy"] : null,
    heat: HEATS.find((one) => one === known["heat"]) ?? "none",
  };
}
