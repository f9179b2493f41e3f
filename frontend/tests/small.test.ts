import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EntitiesData, PointGrid, TRAIL } from "../src/data/entities_data";
import { fromSearch, noChoice, toSearch, type ViewState } from "../src/data/view_state";
import { worldCopy } from "../src/lib/globe";
import { bounds, openRing, rings, withRing, type Ring } from "../src/lib/regions";
import { answerTitle, versionWords } from "../src/lib/words";
import { measure } from "../src/views/interval_words";
import { axisLabel, axisStep, formatMoment, formatSpan, parseDuration, zoneOffset } from "../src/lib/time";

describe("times", () => {
  it("writes spans in their two largest units", () => {
    expect([450, 61_000, 3_600_000, 90_061_000].map((span) => formatSpan(span, "ms"))).toEqual(["450 ms", "1 min 1 s", "1 h", "1 d 1 h"]);
    expect(formatSpan(1, "ticks")).toBe("1 tick");
  });

  it("writes moments in the reader's zone, summer and winter", () => {
    const summer = Date.UTC(2026, 6, 1, 22, 30);
    expect(formatMoment(summer, "ms", "UTC")).toBe("1 Jul 2026, 22:30:00");
    expect(formatMoment(summer, "ms", "Europe/Berlin")).toBe("2 Jul 2026, 00:30:00");
    expect(zoneOffset(Date.UTC(2026, 0, 1), "ms", "Europe/Berlin")).toBe(3_600_000);
    expect(formatMoment(1234, "ticks", "Europe/Berlin")).toBe("tick 1,234");
  });

  it("reads ISO durations of days to seconds and nothing else", () => {
    expect(["PT3M", "P1DT2H", "PT0.5S", "90"].map(parseDuration)).toEqual([180_000, 93_600_000, 500, 90]);
    expect(["P", "PT", "3 min", "P1M", ""].map(parseDuration)).toEqual([null, null, null, null, null]);
  });

  it("chooses round steps", () => {
    expect([axisStep(700, "ms"), axisStep(40_000, "ms"), axisStep(130, "ticks")]).toEqual([1000, 60_000, 200]);
    expect(axisLabel(Date.UTC(2026, 10, 21, 9, 5), 60_000, "ms", "UTC")).toBe("09:05");
  });
});

const states: fc.Arbitrary<ViewState> = fc.record({
  feed: fc.option(fc.string({ minLength: 1 })),
  hidden: fc.array(fc.string({ minLength: 1 }), { maxLength: 3 }),
  entities: fc.array(fc.string({ minLength: 1 }), { maxLength: 3 }),
  detection: fc.option(fc.string({ minLength: 1 })),
  range: fc.option(fc.tuple(fc.integer({ min: 0, max: 99 }), fc.integer({ min: 100, max: 999 }))),
  window: fc.option(fc.tuple(fc.integer({ min: 0, max: 99 }), fc.integer({ min: 100, max: 999 }))),
  instant: fc.option(fc.integer({ min: 0, max: 999 })),
  span: fc.option(fc.integer({ min: 1, max: 10_000 })),
  map: fc.option(
    fc.record({ x: fc.integer({ min: -180, max: 180 }), y: fc.integer({ min: -90, max: 90 }), zoom: fc.integer({ min: 0, max: 19 }) }),
  ),
  mode: fc.constantFrom("timeline", "list"),
});

describe("the address", () => {
  it("restores every choice", () => {
    fc.assert(
      fc.property(states, (state) => {
        expect(fromSearch(toSearch(state))).toEqual(state);
      }),
    );
  });

  it("names the second that the clock shows", () => {
    expect(fromSearch(toSearch({ ...noChoice(), instant: 1_999.9 })).instant).toBe(1_999);
  });

  it("leaves out what is malformed and keeps the rest", () => {
    expect(fromSearch("?feed=city&range=9~3&window=a~b&at=1~2&span=-4&view=pie&entity=&hide=")).toEqual(noChoice("city"));
  });
});

describe("regions", () => {
  const corners = fc.array(fc.tuple(fc.integer({ min: -20, max: 20 }), fc.integer({ min: -20, max: 20 })), { minLength: 3, maxLength: 6 });

  it("opens and closes rings without losing a corner", () => {
    fc.assert(
      fc.property(corners, (ring) => {
        const first = ring[0]!;
        const last = ring[ring.length - 1]!;
        fc.pre(first[0] !== last[0] || first[1] !== last[1]);
        expect(openRing(withRing({ type: "Polygon", coordinates: [[]] }, ring))).toEqual(ring);
      }),
    );
  });

  it("keeps holes when the outer ring changes", () => {
    const hole: Ring = [
      [1, 1],
      [2, 1],
      [2, 2],
      [1, 1],
    ];
    const changed = withRing(
      {
        type: "Polygon",
        coordinates: [
          [
            [0, 0],
            [9, 0],
            [9, 9],
            [0, 0],
          ],
          hole,
        ],
      },
      [
        [0, 0],
        [8, 0],
        [8, 8],
      ],
    );
    expect(rings(changed, true)[1]).toEqual(hole);
  });

  it("draws a circle's radius in metres on the globe and in units on a plan", () => {
    const [w, s, e, n] = bounds({ center: [10, 60], radius: 1000 }, true)!;
    expect((n - s) * 111_319.49).toBeCloseTo(2000, 0);
    expect((e - w) / (n - s)).toBeCloseTo(2, 1);
    expect(bounds({ center: [5, 5], radius: 2 }, false)).toEqual([3, 3, 7, 7]);
  });
});

describe("entities", () => {
  it("keep their last positions, oldest first, and the heading of the last move", () => {
    const data = new EntitiesData((x, y) => [x, -y]);
    for (let t = 0; t < TRAIL + 5; t++) data.put(["a", t, 0, t]);
    data.put(["a", 0, 0, 3]);
    const places: number[] = [];
    data.eachTrailPoint(0, (x) => places.push(x));
    expect(places).toEqual(Array.from({ length: TRAIL }, (_, i) => i + 5));
    expect(data.heading[0]).toBe(0);
    data.put(["a", TRAIL + 4, 1, TRAIL + 5]);
    expect(data.heading[0]).toBeCloseTo(-Math.PI / 2);
  });

  it("grows past its first size", () => {
    const data = new EntitiesData((x, y) => [x, y]);
    for (let i = 0; i < 1000; i++) data.put([`e${i}`, i, i, 0]);
    expect([data.count, data.px[999], data.indexOf("e500")]).toEqual([1000, 999, 500]);
  });

  it("finds every point within a cell's width", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: -30, max: 60 }), fc.integer({ min: -30, max: 60 })), { maxLength: 20 }),
        fc.tuple(fc.integer({ min: -10, max: 50 }), fc.integer({ min: -10, max: 50 })),
        (points, [x, y]) => {
          const grid = new PointGrid(12);
          points.forEach(([px, py], i) => grid.add(i, px, py));
          const near = new Set(grid.near(x, y));
          points.forEach(([px, py], i) => {
            if (Math.hypot(px - x, py - y) <= 12) expect(near.has(i)).toBe(true);
          });
        },
      ),
    );
  });
});

describe("the globe", () => {
  it("draws a feed on the Pacific in one piece", () => {
    const near = worldCopy({ crs: "geographic", view: { center: [180, 0], zoom: 3 } });
    expect([137, 180, -180, -170, -95, 0].map(near)).toEqual([137, 180, 180, 190, 265, 0]);
  });

  it("does not change longitudes of other feeds, or plans", () => {
    const near = worldCopy({ crs: "geographic", view: null });
    expect([-180, -5, 0, 180].map(near)).toEqual([-180, -5, 0, 180]);
    expect(worldCopy({ crs: "planar", view: { center: [500, 0], zoom: 1 } })(-400)).toBe(-400);
  });
});

describe("words", () => {
  it("name the version that gave an answer, and whether it has changed since", () => {
    expect([true, false].map((unchanged) => versionWords({ version: 2, unchanged }))).toEqual([
      "version 2",
      "version 2; the query was changed since",
    ]);
  });

  it("name an answer by its entities and kind, or only by its kind", () => {
    expect(answerTitle(["232000306"], "illegalFishing")).toBe("232000306: illegal fishing");
    expect(answerTitle(["bus-1", "bus-2"], "leaving_object")).toBe("bus-1 and bus-2: leaving object");
    expect(answerTitle(["buoy-7", "buoy-7"], "match")).toBe("buoy-7: match");
    expect(answerTitle([], "detection")).toBe("Detected");
  });
});

describe("the number of an answer", () => {
  const earth = { crs: "geographic" } as const;

  it("has a label by family", () => {
    expect(measure(137.68, { family: "encounter" }, earth)).toEqual(["Nearest", "138 m"]);
    expect(measure(1.25, { family: "encounter" }, { crs: "planar" })).toEqual(["Nearest", "1.25"]);
    expect(measure(5, { family: "occupancy", count: [">=", 5] }, earth)).toEqual(["Most at once", "5"]);
    expect(measure("0", { family: "occupancy", count: ["<=", 2] }, earth)).toEqual(["Minimum at once", "0"]);
    expect(measure(12, { family: "motion" }, earth)).toEqual(["Distance", "12 m"]);
  });

  it("is left out where there is none", () => {
    expect(measure(null, { family: "encounter" }, earth)).toBeNull();
    expect(measure("true", { family: "calculus" }, earth)).toBeNull();
    expect(measure(3, undefined, earth)).toBeNull();
  });
});
