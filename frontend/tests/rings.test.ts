import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Geometry, Ring } from "../src/lib/regions";
import { holeAt, holesOf, shapeFault, withHole, withoutHole } from "../src/lib/rings";

const box = (x: number, y: number, size: number): Ring => [
  [x, y],
  [x + size, y],
  [x + size, y + size],
  [x, y + size],
  [x, y],
];
const polygon = (...coordinates: Ring[]): Geometry => ({ type: "Polygon", coordinates });
const parts = (...coordinates: Ring[][]): Geometry => ({ type: "MultiPolygon", coordinates });
const BOW_TIE: Ring = [
  [0, 0],
  [10, 10],
  [10, 0],
  [0, 10],
  [0, 0],
];

describe("a shape that cannot be saved", () => {
  it("has edges that cross, in one ring or in two", () => {
    expect(shapeFault(polygon(BOW_TIE), false)).toBe("crossing");
    expect(shapeFault(polygon(box(0, 0, 10), box(8, 8, 4)), false)).toBe("crossing");
    expect(shapeFault(parts([box(0, 0, 10)], [BOW_TIE.map(([x, y]) => [x + 20, y])]), false)).toBe("crossing");
    expect(shapeFault(parts([box(0, 0, 10)], [box(5, 5, 10)]), false)).toBe("overlap");
  });

  it("has a hole outside of it or in another hole", () => {
    expect(shapeFault(polygon(box(0, 0, 10), box(20, 20, 4)), false)).toBe("outside");
    expect(shapeFault(polygon(box(0, 0, 10), box(1, 1, 8), box(3, 3, 2)), false)).toBe("outside");
    expect(shapeFault(polygon(box(0, 0, 10), box(3, 3, 2), box(1, 1, 8)), false)).toBe("outside");
    expect(shapeFault(polygon(box(0, 0, 10), box(1, 1, 2), box(5, 5, 2)), false)).toBeNull();
  });

  it("is not one that goes over the antimeridian, or touches itself", () => {
    const over: Ring = [
      [179, 0],
      [-179, 0],
      [-179, 2],
      [179, 2],
      [179, 0],
    ];
    expect(shapeFault(polygon(over), true)).toBeNull();
    expect(shapeFault(polygon(box(0, 0, 10), box(0, 0, 5)), false)).toBeNull();
    expect(shapeFault({ center: [0, 0], radius: 5 }, true)).toBeNull();
  });

  it("is never a star around its middle, in whatever order of the sides", () => {
    const star = fc.array(fc.double({ min: 1, max: 9, noNaN: true }), { minLength: 3, maxLength: 40 });
    fc.assert(
      fc.property(star, (radii) => {
        const ring = radii.map((r, i): [number, number] => {
          const turn = (2 * Math.PI * i) / radii.length;
          return [r * Math.cos(turn), r * Math.sin(turn)];
        });
        expect(shapeFault(polygon([...ring, ring[0]!]), false)).toBeNull();
      }),
    );
  });
});

describe("a hole", () => {
  it("belongs to the polygon that it is in, and can be removed again", () => {
    const two = parts([box(0, 0, 10)], [box(20, 0, 10), box(21, 1, 2)]);
    const holed = withHole(two, box(25, 5, 2));
    expect(holesOf(holed)).toEqual([
      { part: 1, ring: 1 },
      { part: 1, ring: 2 },
    ]);
    expect(holeAt(holed, [26, 6])).toEqual({ part: 1, ring: 2 });
    expect(holeAt(holed, [28, 8])).toBeNull();
    expect(withoutHole(holed, { part: 1, ring: 2 })).toEqual(two);
  });

  it("stays with the region where it cannot be saved, so that it can be moved", () => {
    const stray = withHole(polygon(box(0, 0, 10)), box(50, 50, 2));
    expect(holesOf(stray)).toEqual([{ part: 0, ring: 1 }]);
    expect(shapeFault(stray, false)).toBe("outside");
  });

  it("is none of a circle", () => {
    const circle: Geometry = { center: [0, 0], radius: 5 };
    expect([withHole(circle, box(0, 0, 1)), holesOf(circle), holeAt(circle, [0, 0])]).toEqual([circle, [], null]);
  });
});
