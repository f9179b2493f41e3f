import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fromDocument, toDocument, faultInForm } from "../src/data/arrival_data";
import { columnsWords, givers } from "../src/data/derive_data";
import { feed, queryRow } from "../src/lib/shapes";

const PLAZA = feed({ name: "plaza", crs: "planar", time: "ms", columns: { speed: "float" } });
const span = fc.constantFrom<string | number>("PT5M", 1500);

describe("the editor of arrivals", () => {
  const documents = fc.record(
    {
      family: fc.constant("arrival"),
      version: fc.constant(1),
      region: fc.constantFrom({ region: "Stand A" }, { center: [1, 2], radius: 3 }),
      within: span,
      over: span,
      gap: span,
      where: fc.constant([["speed", "<", 1]]),
      name: fc.constant("kept"),
    },
    { requiredKeys: ["family", "version", "within", "over", "gap"] },
  );

  it("writes back every document that it can read", () => {
    fc.assert(
      fc.property(documents, (document) => {
        expect(toDocument(fromDocument(document, PLAZA))).toEqual(document);
      }),
    );
  });

  it("begins with default times and reports missing entries at their fields", () => {
    expect(toDocument(fromDocument({}, PLAZA))).toEqual({ family: "arrival", version: 1, within: "PT10M", over: "PT3M", gap: "PT2M" });
    expect(faultInForm({ pointer: "", message: "the key 'region' is missing" })).toEqual({
      pointer: "/region",
      message: "No region yet: draw one on the map, choose a stored one or import a file.",
    });
    expect(faultInForm({ pointer: "/over", message: "must be at least 1, not 0" }).message).toBe("must be at least 1, not 0");
  });

  it("gives events to queries that derive", () => {
    const row = queryRow({
      id: "1",
      name: "soon",
      family: "arrival",
      kinds: ["arriving"],
      enabled: true,
      feed: "plaza",
      specification: {},
    });
    expect(givers([row], null, "composite")).toEqual([row]);
    expect(columnsWords(row)).toBe("entity is the one it is about");
  });
});
