import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { columnsWords, freshEvent, giverOf, givers, readDerive, withAnswers, writtenDerive } from "../src/data/derive_data";
import * as encounter from "../src/data/encounter_data";
import { extremeWords, fromDocument, isAsked, levelsOf, steppedPath, toDocument, faultInForm } from "../src/data/occupancy_data";
import { feed, queryRow } from "../src/lib/shapes";

const PLAZA = feed({ name: "plaza", crs: "planar", time: "ms", columns: { speed: "float" } });
const span = fc.constantFrom<string | number>("PT5M", 1500);

describe("the editor of occupancy", () => {
  const documents = fc.record(
    {
      family: fc.constant("occupancy"),
      version: fc.constant(1),
      region: fc.constantFrom({ region: "Stand A" }, { center: [1, 2], radius: 3 }),
      count: fc.tuple(fc.constantFrom(">=", "<="), fc.integer({ min: 1, max: 99 })),
      stale: span,
      lasting: span,
      where: fc.constant([["speed", "<", 1]]),
    },
    { requiredKeys: ["family", "version", "region", "count"] },
  );

  it("writes back every document that it can read", () => {
    fc.assert(
      fc.property(documents, (document) => {
        expect(toDocument(fromDocument(document, PLAZA))).toEqual(document);
      }),
    );
  });

  it("says at its field what is missing", () => {
    const entries = { ...fromDocument({}, PLAZA), count: "" };
    expect(faultInForm({ pointer: "/count/1", message: "must be a number" }, entries)).toEqual({
      pointer: "/count/1",
      message: "No number yet: enter how many.",
    });
    expect(faultInForm({ pointer: "", message: "must have either 'region' or 'ranges'" }, entries).pointer).toBe("/region");
  });

  it("draws each level up to the next, within the period that is shown", () => {
    const steps = [
      [0, 0],
      [10, 2],
      [10, 3],
      [20, 1],
    ];
    expect(levelsOf(steps, 5, 30)).toEqual([
      { from: 5, to: 10, count: 0 },
      { from: 10, to: 20, count: 3 },
      { from: 20, to: 30, count: 1 },
    ]);
    expect(steppedPath(levelsOf(steps, 0, 20), 4, 100, 40)).toBe("M0.0 40.0L50.0 40.0L50.0 10.0L100.0 10.0");
    expect([steppedPath([], 4, 100, 40), isAsked(3, { counting: ">=", count: "3" }), isAsked(3, { counting: "<=", count: "2" })]).toEqual([
      "",
      true,
      false,
    ]);
  });

  it("names the extreme that the query is about: most at once, or fewest", () => {
    const levels = levelsOf(
      [
        [0, 2],
        [10, 5],
        [20, 1],
      ],
      0,
      30,
    );
    expect([extremeWords(levels, { counting: ">=" }), extremeWords(levels, { counting: "<=" })]).toEqual(["at most 5", "at least 1"]);
  });
});

describe("the editor of encounters", () => {
  const where = fc.constantFrom<unknown[]>([["kind", "=", "tug"]], [["speed", "<", 2]]);
  const role = where.map((rows) => ({ where: rows }));
  const documents = fc.record(
    {
      family: fc.constant("encounter"),
      version: fc.constant(1),
      a: role,
      b: role,
      distance: fc.integer({ min: 0, max: 500 }),
      every: span,
      gap: span,
      position: fc.constant("interpolated"),
      inside: fc.constant({ region: "bay" }),
      lasting: span,
      where,
    },
    { requiredKeys: ["family", "version", "distance", "every", "gap"] },
  );

  it("writes back every document that it can read", () => {
    fc.assert(
      fc.property(documents, (document) => {
        expect(encounter.toDocument(encounter.fromDocument(document, PLAZA))).toEqual(document);
      }),
    );
  });

  it("says at its field what is missing", () => {
    expect(encounter.faultInForm({ pointer: "", message: "the key 'gap' is missing" }).pointer).toBe("/gap");
    expect(encounter.faultInForm({ pointer: "/every", message: "must be at least 1, not 0" }).message).toBe("must be at least 1, not 0");
  });
});

describe("answers as events", () => {
  const row = (id: string, name: string, family: string, kinds: string[], enabled = true) =>
    queryRow({ id, name, family, kinds, enabled, feed: "plaza", specification: {} });
  const rows = [
    row("1", "Port: arrivals", "border", ["in", "out"]),
    row("2", "rules", "calculus", ["f"]),
    row("3", "off", "border", ["in"], false),
    row("4", "crowd", "occupancy", ["occupied"]),
  ];

  it("round-trip", () => {
    const derive = { arrival: { query: "Port: arrivals", kind: "in", at: "end" }, full: { query: "4", kind: "occupied", at: "start" } };
    expect(writtenDerive(readDerive(derive))).toEqual(derive);
    expect([writtenDerive(readDerive(null)), readDerive([])]).toEqual([null, []]);
  });

  it("come from enabled queries, not from rules, and not from the query itself", () => {
    expect(givers(rows, "4", "composite").map(({ name }) => name)).toEqual(["Port: arrivals"]);
    expect(giverOf(rows, "4")?.name).toBe("crowd");
  });

  it("come only to rules from queries whose answers are known late, and from no stopped query", () => {
    const late = [
      queryRow({ ...rows[0], id: "5", name: "legs", specification: { segments: true } }),
      queryRow({ ...rows[3], id: "6", name: "side by side", family: "encounter", specification: { position: "interpolated" } }),
      queryRow({ ...rows[0], id: "7", name: "stopped", stopped: { reason: "too many answers", at: 0 } }),
    ];
    expect(givers(late, null, "composite")).toEqual([]);
    expect(givers(late, null, "calculus").map(({ name }) => name)).toEqual(["legs", "side by side"]);
  });

  it("get a free name that rules can use", () => {
    const first = freshEvent(rows[0], []);
    expect(first).toEqual({ event: "port_arrivals_in", query: "Port: arrivals", kind: "in", at: "end" });
    expect(freshEvent(rows[0], [first]).event).toBe("port_arrivals_in_2");
    expect(columnsWords(rows[3])).toContain("count");
  });

  it("add columns for conditions, where the feed's columns have precedence", () => {
    expect(withAnswers(PLAZA).columns).toMatchObject({ value: "float", entity2: "string", speed: "float" });
    expect(withAnswers({ ...PLAZA, columns: { value: "string" } }).columns["value"]).toBe("string");
  });
});
