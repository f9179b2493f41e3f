import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EntitiesData } from "../src/data/entities_data";
import { GONE_PERIODS, median, SILENT_PERIODS, unbroken } from "../src/data/silence";

const PERIOD = 200;

/**
 * A feed whose `regular` reports every PERIOD, after its clock has come to `to`;
 * others by their own times.
 */
function feed(to: number, others: Record<string, number[]> = {}): EntitiesData {
  const data = new EntitiesData((x, y) => [x, y]);
  for (let t = 0; t <= to; t += PERIOD) {
    data.tick(t);
    data.put(["regular", t, 0, t]);
    for (const [id, times] of Object.entries(others)) if (times.includes(t)) data.put([id, t, 1, t]);
  }
  return data;
}

const presence = (data: EntitiesData, id: string): string => data.presence(data.indexOf(id)!);
const trail = (data: EntitiesData, id: string): number => data.trailLength[data.indexOf(id)!]!;
const every = (from: number, to: number): number[] => Array.from({ length: (to - from) / PERIOD + 1 }, (_, i) => from + i * PERIOD);

describe("silent entities", () => {
  it("fade after some of their usual intervals and are removed after more, by the feed's clock", () => {
    const left = every(0, 10_000);
    expect(presence(feed(10_000 + PERIOD * (SILENT_PERIODS - 3), { left }), "left")).toBe("here");
    expect(presence(feed(10_000 + PERIOD * (SILENT_PERIODS + 3), { left }), "left")).toBe("silent");
    expect(presence(feed(10_000 + PERIOD * (GONE_PERIODS + 8), { left }), "left")).toBe("gone");
  });

  it("are judged by their own interval, not by that of others", () => {
    const seldom = Array.from({ length: 12 }, (_, i) => i * PERIOD * 50);
    const last = seldom[seldom.length - 1]!;
    expect(presence(feed(last + PERIOD * 60, { seldom }), "seldom")).toBe("here");
  });

  it("are judged by the feed's interval after a single report", () => {
    expect(presence(feed(60_000, { once: [0] }), "once")).toBe("gone");
  });

  it("are not assumed while little is known of the feed, or while its clock stands still", () => {
    expect(presence(feed(PERIOD * 3, { once: [0] }), "once")).toBe("here");
    const data = feed(60_000);
    data.tick(60_000);
    expect(presence(data, "regular")).toBe("here");
  });

  it("do not include entities that always report late", () => {
    const data = feed(10_000);
    for (let t = 10_000; t <= 30_000; t += PERIOD) {
      data.tick(t);
      data.put(["regular", t, 0, t]);
      data.put(["late", t, 0, t - 60 * PERIOD]);
    }
    expect(presence(data, "late")).toBe("here");
  });

  it("begin a new trail when they return, without a heading until they move", () => {
    const back = feed(40_000, { person: [...every(0, 10_000), 40_000] });
    expect([presence(back, "person"), trail(back, "person")]).toEqual(["here", 1]);
    expect(back.heading[back.indexOf("person")!]).toBeNaN();
    const stayed = feed(10_400, { person: every(0, 10_400) });
    expect(trail(stayed, "person")).toBe(16);
  });
});

describe("parts of a track", () => {
  it("are split only at silences", () => {
    const times = [0, 200, 400, 600, 800, 60_000, 60_200];
    expect(unbroken(times.map((t) => [t] as const)).map((part) => part.map(([t]) => t))).toEqual([
      [0, 200, 400, 600, 800],
      [60_000, 60_200],
    ]);
    expect([unbroken([]), unbroken([[5]])]).toEqual([[], [[[5]]]]);
  });

  it("together form the track", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1000)), (gaps) => {
        let t = 0;
        const points = gaps.map((gap) => [(t += gap)] as const);
        const parts = unbroken(points);
        expect(parts.flat()).toEqual(points);
        expect(parts.every((part) => part.length > 0)).toBe(true);
      }),
    );
  });
});

describe("the median", () => {
  it("is one of the values, with as many below as above", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9), { minLength: 1 }), (values) => {
        const middle = median(values);
        expect(values).toContain(middle);
        expect(values.filter((value) => value < middle).length).toBeLessThanOrEqual(values.length / 2);
        expect(values.filter((value) => value > middle).length).toBeLessThanOrEqual(values.length / 2);
      }),
    );
    expect(median([])).toBeNaN();
  });
});
