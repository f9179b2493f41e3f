import fc from "fast-check";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { colourAt, PLACES, queryColour, spreadColours } from "../src/lib/colours";

beforeAll(() => {
  vi.stubGlobal("document", { documentElement: { dataset: { theme: "light" } } });
});

describe("colours of queries", () => {
  const ids = fc.uniqueArray(fc.integer({ min: 1, max: 100_000 }).map(String), { maxLength: PLACES });

  it("do not repeat within a feed", () => {
    expect(new Set(Array.from({ length: PLACES }, (_, place) => colourAt(place))).size).toBe(PLACES);
    fc.assert(
      fc.property(ids, (feed) => {
        spreadColours(feed);
        expect(new Set(feed.map(queryColour)).size).toBe(feed.length);
      }),
    );
  });

  it("do not depend on the order of queries, and the first to claim a colour keeps it", () => {
    fc.assert(
      fc.property(ids, (feed) => {
        spreadColours(feed);
        const before = feed.map(queryColour);
        spreadColours([...feed].reverse());
        expect(feed.map(queryColour)).toEqual(before);
      }),
    );
    spreadColours(["1", String(1 + PLACES)]);
    expect(queryColour("1")).toBe(colourAt(1));
    expect(queryColour(String(1 + PLACES))).toBe(colourAt(2));
  });
});
