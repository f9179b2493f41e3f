/** Colours of entities by an attribute: a few classes with a legend. Pure. */

import { anything, isObject, list, record, string, type Parser } from "../lib/parse";
import { formatNumber } from "../lib/time";
import { t } from "../lib/texts";

const valuesByEntity: Parser<Record<string, unknown>> = (value, path = "") => {
  if (!isObject(value)) return anything({}, path) as Record<string, unknown>;
  return value;
};
export const attributeValues = record({ names: list(string), values: valuesByEntity });

export interface StyleClass {
  label: string;
  /** Index in a palette; null: no colour. */
  place: number | null;
}

export interface Styling {
  /** `steps`: ordered classes, coloured along a scale; else each class has its own hue. */
  kind: "steps" | "names";
  classes: StyleClass[];
  /** The class of a value, as an index of `classes`. */
  of: (value: unknown) => number;
}

/** Further names share the class "Other". */
const MOST_NAMES = 8;
const STEPS = 5;
const NONE = t("No value");

/**
 * Classes for these values: steps if all are numbers and differ, else one for each
 * of the most frequent names.
 */
export function stylingOf(values: readonly unknown[], format: (value: number) => string = formatNumber): Styling {
  const known = values.filter((value) => value !== null && value !== undefined && value !== "");
  const numbers = known.filter((value) => typeof value === "number");
  return (numbers.length === known.length ? steps(numbers, format) : null) ?? names(known);
}

/**
 * Between the 2nd and the 98th percentile, with round bounds: one outlier does
 * not take the whole scale.
 */
function steps(numbers: number[], format: (value: number) => string): Styling | null {
  const sorted = Float64Array.from(numbers).sort();
  const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] ?? NaN;
  const step = roundStep((at(0.98) - at(0.02)) / STEPS);
  if (step === null) return null;
  const first = Math.floor(at(0.02) / step) + 1;
  const bounds = Array.from({ length: STEPS - 1 }, (_, n) => Number(((first + n) * step).toPrecision(12)));
  const labels = [
    t("below {bound}", { bound: format(bounds[0]!) }),
    ...bounds.slice(1).map((bound, n) => `${format(bounds[n]!)} – ${format(bound)}`),
    t("{value} and more", { value: format(bounds[bounds.length - 1]!) }),
  ];
  const classes: StyleClass[] = [...labels.map((label, place) => ({ label, place })), { label: NONE, place: null }];
  return {
    kind: "steps",
    classes,
    of: (value) => (typeof value === "number" ? bounds.filter((bound) => value >= bound).length : classes.length - 1),
  };
}

/** 1, 2 or 5 times a power of ten, at least `least`; null of nothing. */
function roundStep(least: number): number | null {
  if (!(least > 0) || !Number.isFinite(least)) return null;
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5].find((factor) => factor * power >= least * (1 - 1e-9)) ?? 10) * power;
}

/** In alphabetical order, so that a name keeps its colour when counts change. */
function names(known: unknown[]): Styling {
  const counts = new Map<string, number>();
  for (const value of known) counts.set(textOf(value), (counts.get(textOf(value)) ?? 0) + 1);
  const frequent = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, MOST_NAMES);
  const kept = frequent.map(([name]) => name).sort();
  const classes: StyleClass[] = kept.map((label, place) => ({ label, place }));
  const other = classes.length;
  if (counts.size > kept.length) classes.push({ label: t("Other"), place: null });
  const none = classes.push({ label: NONE, place: null }) - 1;
  const placeOf = new Map(kept.map((name, place) => [name, place]));
  return {
    kind: "names",
    classes,
    of: (value) => (value === null || value === undefined || value === "" ? none : (placeOf.get(textOf(value)) ?? Math.min(other, none))),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
