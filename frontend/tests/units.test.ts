import { afterEach, describe, expect, it } from "vitest";
import { formatDistance, formatSpeed, setUnits, type Units } from "../src/lib/units";

afterEach(() => setUnits("metric"));

describe("distances and speeds", () => {
  it.each<[Units, number, string]>([
    ["metric", 31.64, "31.6 m"],
    ["metric", 9_999, "9,999 m"],
    ["metric", 12_345, "12.3 km"],
    ["nautical", 1_851, "1,851 m"],
    ["nautical", 1_852, "1 nm"],
    ["nautical", 463_000, "250 nm"],
    ["imperial", 30.48, "100 ft"],
    ["imperial", 16_093.44, "10 mi"],
  ])("%s: %d m is %s", (units, metres, text) => {
    setUnits(units);
    expect(formatDistance(metres)).toBe(text);
  });

  it.each<[Units, string]>([
    ["metric", "36.0 km/h"],
    ["nautical", "19.4 kn"],
    ["imperial", "22.4 mph"],
  ])("%s: 10 m/s is %s", (units, text) => {
    setUnits(units);
    expect(formatSpeed(10)).toBe(text);
  });
});
