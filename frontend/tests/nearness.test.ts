import { describe, expect, it } from "vitest";
import { nearness } from "../src/data/nearness";
import type { Position } from "../src/lib/shapes";

const PLANE = { crs: "planar", time: "ms" } as const;
const EARTH = { crs: "geographic", time: "ms" } as const;

/**
 * A row of 100 entities ten units apart, three of them together at its end, which
 * report every eight seconds.
 */
const row: Position[] = Array.from({ length: 100 }, (_, i) => [`e${i}`, 10 * i, 0, 100_000 - 80 * i]);
row.push(["a", 5000, 0, 100_000], ["b", 5001, 0, 96_000], ["c", 5000, 1.5, 92_000]);

describe("what is unusually close", () => {
  it("is the distance of the few that are closest, in the time in which all report", () => {
    expect(nearness(row, 3, PLANE)).toEqual({ distance: 2, within: "PT10S" });
  });

  it("is in metres on the earth, also across the date line", () => {
    const three: Position[] = [
      ["a", 179.999, 0, 0],
      ["b", -179.999, 0, 60_000],
      ["c", 179.998, 0, 60_000],
    ];
    expect(nearness(three, 2, EARTH)).toEqual({ distance: 200, within: "PT1S" });
  });

  it("is unknown with too few entities, and at least one where all are at one place", () => {
    expect(nearness(row.slice(0, 2), 3, PLANE)).toBeNull();
    expect(nearness([row[0]!, row[0]!, row[0]!], 3, { ...PLANE, time: "ticks" })).toEqual({ distance: 1, within: 1 });
  });
});
