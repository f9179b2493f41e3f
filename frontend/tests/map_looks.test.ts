import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { gathered, GROUPINGS } from "../src/data/clusters";
import { gridOf, strength } from "../src/data/density_data";
import { looksFrom } from "../src/data/map_looks";
import { stylingOf } from "../src/data/styling";

class Places {
  readonly px;
  readonly py;

  constructor(
    xy: readonly (readonly [number, number])[],
    private readonly moves: boolean,
  ) {
    this.px = Float64Array.from(xy, ([x]) => x);
    this.py = Float64Array.from(xy, ([, y]) => y);
  }

  isMoving(): boolean {
    return this.moves;
  }
}
const places = (xy: readonly (readonly [number, number])[], isMoving = false): Places => new Places(xy, isMoving);
const all = (count: number): Int32Array => Int32Array.from({ length: count }, (_, i) => i);

describe("clusters", () => {
  it("draws every entity exactly once in any grouping", () => {
    const spots = fc.array(fc.tuple(fc.integer({ min: -300, max: 300 }), fc.integer({ min: -300, max: 300 })), { maxLength: 400 });
    fc.assert(
      fc.property(spots, fc.constantFrom(...GROUPINGS), fc.boolean(), (xy, grouping, isMoving) => {
        const { single, clusters } = gathered(all(xy.length), places(xy, isMoving), 2, grouping);
        const members = [...single, ...clusters.flatMap((one) => one.members)].sort((a, b) => a - b);
        expect(members).toEqual([...all(xy.length)]);
        expect(clusters.every((one) => one.members.length >= 2)).toBe(true);
      }),
    );
  });

  it("draws few entities at exactly one point as a stack", () => {
    const spot: [number, number][] = [[5, 5], [5, 5], [5, 5.001]]; // prettier-ignore
    expect(gathered(all(3), places(spot), 1, "auto").clusters).toEqual([{ px: 5, py: 5, members: [0, 1], isStack: true }]);
    expect(gathered(all(3), places(spot, true), 1, "auto").clusters).toEqual([]);
  });

  it("clusters automatically only where most entities would overlap", () => {
    const apart = Array.from({ length: 400 }, (_, n): [number, number] => [(n % 20) * 20, Math.floor(n / 20) * 20]);
    expect(gathered(all(400), places(apart), 1, "auto").clusters).toEqual([]);
    expect(gathered(all(400), places(apart), 0.1, "auto").clusters.length).toBeGreaterThan(0);
    expect(gathered(all(400), places(apart), 0.1, "each").clusters).toEqual([]);
  });
});

describe("colours by an attribute", () => {
  it("gives numbers steps in order", () => {
    const { kind, classes, of } = stylingOf(Array.from({ length: 101 }, (_, n) => n));
    expect(kind).toBe("steps");
    expect(classes.map((one) => one.label)).toEqual(["below 20", "20 – 40", "40 – 60", "60 – 80", "80 and more", "No value"]);
    expect([0, 20, 59, 1000, null].map(of)).toEqual([0, 1, 2, 4, 5]);
  });

  it("gives the most frequent names a hue each, in alphabetical order, and all others one", () => {
    const names = "abcdefghij".split("").flatMap((name, n) => Array.from({ length: 20 - n }, () => name));
    const { kind, classes, of } = stylingOf([...names, null]);
    expect(kind).toBe("names");
    expect(classes.map((one) => one.label)).toEqual(["a", "b", "c", "d", "e", "f", "g", "h", "Other", "No value"]);
    expect(["c", "j", undefined, ""].map(of)).toEqual([2, 8, 9, 9]);
  });

  it("has a class for every value", () => {
    const value = fc.oneof(fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constant(null), fc.boolean());
    fc.assert(
      fc.property(fc.array(value), value, (values, one) => {
        const { classes, of } = stylingOf(values);
        expect([one, ...values].every((other) => classes[of(other)] !== undefined)).toBe(true);
      }),
    );
  });
});

describe("the heat map", () => {
  it("has at most as many cells as the server allows", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8000 }), fc.integer({ min: 1, max: 8000 }), (width, height) => {
        const { columns, rows } = gridOf(width, height);
        expect(columns * rows).toBeLessThanOrEqual(40_000);
      }),
    );
  });

  it("has opacities by the square root of the share", () => expect([0, 1, 4].map((count) => strength(count, 4))).toEqual([0, 0.5, 1]));
});

describe("the stored choices", () => {
  it("are the defaults if nothing or nonsense is stored", () => {
    const usual = { grouping: "auto", colourBy: null, heat: "none" };
    for (const text of [null, "", "{", "[]", '{"grouping": "x", "heat": 3}']) expect(looksFrom(text)).toEqual(usual);
    expect(looksFrom('{"grouping": "each", "colourBy": "kind", "heat": "answers"}').heat).toBe("answers");
  });
});
