/**
 * The families that the pages know. It does not compile if a family lacks a part here, or
 * an editor in the registry.
 */

import { arrival } from "./arrival";
import { border } from "./border";
import { calculus } from "./calculus";
import { composite } from "./composite";
import { constraint } from "./constraint";
import { encounter } from "./encounter";
import type { Family, Kind } from "./family";
import { motion } from "./motion";
import { occupancy } from "./occupancy";
import { transition } from "./transition";

const FAMILIES = { border, transition, motion, occupancy, encounter, arrival, constraint, composite, calculus } satisfies Record<
  string,
  Family
>;
export type FamilyName = keyof typeof FAMILIES;

/** All of them, by name. */
export const families: Readonly<Record<FamilyName, Family>> = FAMILIES;

/** Undefined for a family that only a newer server knows. */
export function familyOf(name: unknown): Family | undefined {
  return isFamily(name) ? families[name] : undefined;
}

/** Whether queries of the family watch one region. */
export function hasRegion(name: string): boolean {
  return familyOf(name)?.hasRegion === true;
}

export function isFamily(name: unknown): name is FamilyName {
  return typeof name === "string" && Object.hasOwn(families, name);
}

const KINDS = new Map<string, Kind>(Object.values(families).flatMap(({ kinds }) => Object.entries(kinds)));

/** Undefined for kinds that documents name. */
export function kindOf(kind: string): Kind | undefined {
  return KINDS.get(kind);
}

const ENDING = new Set([...KINDS.values()].flatMap(({ endedBy }) => endedBy ?? []));

/** Whether answers of this kind end what answers of another kind began. */
export function isEnding(kind: string): boolean {
  return ENDING.has(kind);
}

/** The kind of the answers that end what answers of this kind began. */
export function endOf(kind: string): string | undefined {
  return KINDS.get(kind)?.endedBy;
}
