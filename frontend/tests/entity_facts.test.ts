import { describe, expect, it, vi } from "vitest";
import { course, distance, entityFacts, entityReports } from "../src/data/entity_facts";

const FEED = { crs: "geographic", time: "ms" } as const;
const report = (t: number, x: number | null, y: number | null, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  event: "position",
  entity: "a",
  t,
  x,
  y,
  ...more,
});
const facts = (
  last: unknown,
  before: unknown,
  feed: { crs: "geographic" | "planar"; time: "ms" | "ticks" } = FEED,
): Record<string, string> => Object.fromEntries(entityFacts(entityReports({ last, before }), feed, 90_000));

describe("an entity's last report", () => {
  it("is shown with its age, its attributes, and speed and course from its last two positions", () => {
    const found = facts(report(60_000, 10, 50.01, { type: "ferry", draught: 4.125, note: null }), report(0, 10, 50));
    expect(found).toEqual({
      "Last report": "30 s ago",
      type: "ferry",
      draught: "4.13",
      place: "10.00000, 50.01000",
      speed: "66.7 km/h, by its last two places",
      course: "0°, by its last two places",
    });
  });

  it("takes speed and course from attributes that have them", () => {
    const found = facts(report(60_000, 10, 50.01, { sog: 12.5, cog: 3 }), report(0, 10, 50));
    expect([found["sog"], found["speed"], found["cog"], found["course"]]).toEqual(["12.5", undefined, "3", undefined]);
  });

  it("works without a position, an earlier report, or any report", () => {
    expect(facts(report(90_000, null, null, { event: "read" }), null)).toEqual({ "Last report": "now", event: "read" });
    expect(facts(report(0, 1, 2), null, { crs: "planar", time: "ticks" })).toMatchObject({ place: "1.0, 2.0" });
    expect(facts(null, null)).toEqual({});
  });

  it("measures on the globe and on a plan", () => {
    expect(distance([0, 0], [0, 1], true)).toBeCloseTo(111_195, 0);
    expect(distance([0, 0], [3, 4], false)).toBe(5);
    expect([course([0, 0], [1, 0], false), course([0, 0], [0, -1], false), course([0, 0], [-1, 0], true)]).toEqual([90, 180, 270]);
  });
});

describe("in another language", () => {
  it("no word of ours stays English", async () => {
    vi.resetModules();
    vi.doMock("../src/lib/texts", async (original) => ({ ...(await original<object>()), t: (text: string) => `<${text}>` }));
    const { entityFacts: inGerman } = await import("../src/data/entity_facts");
    const reports = entityReports({ last: report(90_000, 10, 50.01, { event: "read" }), before: report(0, 10, 50) });
    expect(inGerman(reports, FEED, 90_000).map(([name]) => name)).toEqual(["<Last report>", "<event>", "<place>", "<speed>", "<course>"]);
    expect(inGerman(reports, FEED, 90_000)[0]).toEqual(["<Last report>", "<now>"]);
    vi.doUnmock("../src/lib/texts");
  });
});
