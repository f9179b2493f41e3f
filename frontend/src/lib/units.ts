/** Distances and speeds in the units that the reader chose. */

import { formatNumber, formatTenths, t } from "./texts";

export const UNITS = ["metric", "nautical", "imperial"] as const;
export type Units = (typeof UNITS)[number];

export const UNIT_NAMES: Record<Units, string> = {
  metric: t("Metres, kilometres an hour"),
  nautical: t("Nautical miles, knots"),
  imperial: t("Feet, miles an hour"),
};

interface Scale {
  short: string;
  /** Of `short`, in metres. */
  shortMetres: number;
  long: string;
  longMetres: number;
  /** The length in metres from which on `long` is used. */
  from: number;
  speed: string;
}

const NAUTICAL_MILE = 1852;
const MILE = 1609.344;
const SCALES: Record<Units, Scale> = {
  metric: { short: "m", shortMetres: 1, long: "km", longMetres: 1000, from: 10_000, speed: "km/h" },
  nautical: { short: "m", shortMetres: 1, long: "nm", longMetres: NAUTICAL_MILE, from: NAUTICAL_MILE, speed: "kn" },
  imperial: { short: "ft", shortMetres: 0.3048, long: "mi", longMetres: MILE, from: MILE, speed: "mph" },
};

let chosen: Units = "metric";

export function setUnits(units: Units): void {
  chosen = units;
}

/** With sensible precision: "31.6 m", "512 m", "12.4 km". */
export function formatDistance(metres: number): string {
  const { short, shortMetres, long, longMetres, from } = SCALES[chosen];
  const isLong = metres >= from;
  const value = metres / (isLong ? longMetres : shortMetres);
  return `${formatNumber(Number(value.toFixed(value < 100 ? 1 : 0)))} ${isLong ? long : short}`;
}

export function formatSpeed(metresPerSecond: number): string {
  const { longMetres, speed } = SCALES[chosen];
  return `${formatTenths((metresPerSecond * 3600) / longMetres)} ${speed}`;
}

/** With sensible precision: "31.6 m", "512 m"; units of the plan have four digits. */
export function distanceWords(distance: number, isMetres: boolean): string {
  return isMetres ? formatDistance(distance) : formatNumber(Number(distance.toPrecision(4)));
}
