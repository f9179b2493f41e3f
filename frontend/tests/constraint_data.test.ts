import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  comparedWith,
  eventsOf,
  faultOfMutual,
  fromDocument,
  freshName,
  mutualOf,
  renamed,
  toDocument,
  without,
  withMutual,
} from "../src/data/constraint_data";
import { circlePlaces, closureAnswer, graphEdges, nodeLines } from "../src/data/constraint_graph";
import { fromSigned, lagWords, spanValue, toSigned } from "../src/data/constraint_spans";
import { SPAN_UNITS } from "../src/data/query_form_data";
import { feed } from "../src/lib/shapes";

const OCEAN = feed({ name: "ocean", crs: "geographic", time: "ms", columns: { sst: "float", kind: "string" } });
const REGION = {
  type: "Polygon",
  coordinates: [
    [
      [0, 0],
      [1, 0],
      [1, 1],
      [0, 0],
    ],
  ],
};
const NAMES = ["A", "B", "C"];

const span = fc.oneof(
  fc.constant(null),
  fc.integer({ min: -9_000_000, max: 9_000_000 }),
  fc.constantFrom("PT5M", "-PT5M", "P2D", "PT0.5S"),
);
const where = fc.constantFrom<unknown[]>([], [["sst", ">", 28]], [["kind", "in", ["buoy", "ship"]]]);
const some = fc.subarray(NAMES, { minLength: 1 });
const length = fc.double({ min: 0, max: 2e7, noNaN: true }).map((value) => value + 0);
const distance = fc.record({ max: length, min: length, open: fc.constant(true) }, { requiredKeys: [] });
const compare = fc.array(
  fc.tuple(
    fc.constantFrom<unknown>("A.sst", "B.kind", "A.sst - B.sst", "2 * A.sst + 3", 4),
    fc.constantFrom("=", "<", "in"),
    fc.constantFrom<unknown>("C.sst", 3, "x", ["a", "b"], true, "-1 * C.sst + 0.5"),
  ),
  { minLength: 1, maxLength: 2 },
);
const constraint = fc.record(
  {
    between: some,
    dt: fc.tuple(span, span),
    distance,
    inside: fc.constantFrom<object>(REGION, { region: "nino" }, { center: [0, 0], radius: 5 }),
    compare,
  },
  { requiredKeys: ["between"] },
);
const documents = fc.record(
  {
    family: fc.constant("constraint"),
    version: fc.constant(1),
    variables: fc
      .tuple(where, where, where)
      .map((filters) => Object.fromEntries(NAMES.map((name, i) => [name, filters[i]!.length > 0 ? { where: filters[i] } : {}]))),
    constraints: fc.array(constraint, { maxLength: 4 }),
    where: where.filter((rows) => rows.length > 0),
    symmetric: fc.constant([["A", "B"]]),
    report: fc.constantFrom("all", "first"),
    expiration: fc.constantFrom("tight", "loose", "domains"),
    name: fc.constant("Warm and calm"),
  },
  { requiredKeys: ["family", "version", "variables", "constraints"] },
);
const mutuals = fc.record({
  k: fc.integer({ min: 2, max: 9 }),
  within: fc.constantFrom<string | number>("PT5M", "P5D", 300_000),
  distance: fc.constantFrom("5000", "0.5"),
  where,
  isDifferent: fc.boolean(),
});

describe("a constraint query's entries", () => {
  it("write back every document they are read from", () => {
    fc.assert(
      fc.property(documents, (document) => {
        expect(toDocument(fromDocument(document))).toEqual(document);
      }),
    );
  });

  it("follow a variable to its new name and back", () => {
    fc.assert(
      fc.property(documents, (document) => {
        const entries = fromDocument(document);
        const there = renamed(entries, "A", "Z");
        expect(JSON.stringify(toDocument(there))).not.toMatch(/\bA["\.]/);
        expect(toDocument(renamed(there, "Z", "A"))).toEqual(document);
      }),
    );
  });

  it("lose exactly the parts about a removed variable", () => {
    fc.assert(
      fc.property(documents, (document) => {
        const left = toDocument(without(fromDocument(document), "C"));
        expect(JSON.stringify(left)).not.toMatch(/\bC["\.]/);
        const kept = document.constraints.filter(
          (one) =>
            !one.between.includes("C") &&
            (one.compare ?? []).length === 0 &&
            (one.dt ?? one.distance ?? one.inside) !== undefined &&
            (one.between.length > 1 || (one.dt === undefined && one.distance === undefined)),
        );
        expect(left["constraints"]).toEqual(expect.arrayContaining(kept));
      }),
    );
  });

  it("read a sum as it was typed, on either side, and show it on the edge of its variables", () => {
    const entries = fromDocument({
      variables: { A: {}, B: {} },
      constraints: [
        { between: ["A", "B"], compare: [["A.sst - B.sst", ">", 2]] },
        { between: ["A"], compare: [["2 * A.sst + 3", "<", "A.air"]] },
      ],
    });
    expect(comparedWith("2 * A.sst + 3", "", ">", entries, OCEAN)).toBe("2 * A.sst + 3");
    expect(comparedWith("2.5", "A.sst - B.sst", ">", entries, OCEAN)).toBe(2.5);
    expect(comparedWith("A.sst - B.kind", "28", "=", entries, OCEAN)).toBe("A.sst - B.kind");
    expect(graphEdges(entries, null, OCEAN).map(({ key, lines }) => [key, lines])).toEqual([["A|B", ["A.sst - B.sst > 2"]]]);
    expect(nodeLines(entries, "A", OCEAN)).toEqual(["2 * sst + 3 < air"]);
    expect(nodeLines(entries, "B", OCEAN)).toEqual([]);
  });

  it("read a comparison's right side in the type of the left", () => {
    const entries = fromDocument({ variables: { A: {}, B: {} } });
    expect(["B.sst", "28.5", "warm"].map((typed) => comparedWith(typed, "A.sst", ">", entries, OCEAN))).toEqual(["B.sst", 28.5, "warm"]);
    expect(comparedWith("buoy, ship", "A.kind", "in", entries, OCEAN)).toEqual(["buoy", "ship"]);
    expect(comparedWith("28", "A.kind", "=", entries, OCEAN)).toBe("28");
    expect(freshName(entries)).toBe("V3");
  });
});

describe("the short form", () => {
  it("is recognised in its document", () => {
    fc.assert(
      fc.property(mutuals, (mutual) => {
        const document = toDocument(withMutual(fromDocument({}), mutual));
        expect(mutualOf(fromDocument(document))).toEqual(mutual);
        expect(Object.keys(document["variables"] as object)).toHaveLength(mutual.k);
      }),
    );
  });

  it("is not recognised in documents that say more or less", () => {
    const entries = withMutual(fromDocument({}), { k: 3, within: "PT5M", distance: "5000", where: [], isDifferent: true });
    const [only] = entries.constraints;
    expect(mutualOf({ ...entries, symmetric: [] })).toBeNull();
    expect(mutualOf({ ...entries, constraints: [only!, only!] })).toBeNull();
    expect(mutualOf({ ...entries, constraints: [{ ...only!, dt: [0, "PT5M"] }] })).toBeNull();
    expect(mutualOf({ ...entries, constraints: [{ ...only!, compare: only!.compare.slice(1) }] })).toBeNull();
    expect(
      mutualOf({ ...entries, variables: entries.variables.map((one, i) => ({ ...one, where: i === 0 ? [["sst", ">", 1]] : [] })) }),
    ).toBeNull();
  });
});

describe("entries of the short form", () => {
  it("are the nearest possible number of events", () => {
    expect(["1", "0", "-3", "2", "7", "32", "500"].map((text) => eventsOf(text, 3))).toEqual([2, 2, 2, 2, 7, 32, 32]);
    expect(["", " ", "x"].map((text) => eventsOf(text, 3))).toEqual([3, 3, 3]);
  });

  it("show a missing span next to its field", () => {
    const mutual = { k: 3, distance: "5000", where: [], isDifferent: true };
    const kept = { pointer: "/constraints", message: "events of variable 'V1' would have to be kept forever" };
    expect(faultOfMutual(kept, withMutual(fromDocument({}), { ...mutual, within: null })).pointer).toBe("/constraints/0/dt");
    expect(faultOfMutual(kept, withMutual(fromDocument({}), { ...mutual, within: "PT5M" }))).toEqual(kept);
  });
});

describe("signed spans", () => {
  it("keep their length and their sign", () => {
    fc.assert(
      fc.property(fc.integer({ min: -500, max: 500 }), fc.constantFrom("s", "min", "h", "d"), (amount, unit) => {
        const written = toSigned(String(amount), unit);
        expect(spanValue(written)).toBe(amount * SPAN_UNITS[unit] || 0);
        const again = fromSigned(written, "ms");
        expect(spanValue(toSigned(again.amount, again.unit))).toBe(spanValue(written));
      }),
    );
  });

  it("are described from the point of view of the first event", () => {
    expect(
      [
        ["-PT5M", "PT5M"],
        [0, "PT5M"],
        ["PT1M", null],
        ["-PT2M", 0],
        [null, null],
        ["-PT1M", "PT2M"],
      ].map((dt) => lagWords(dt as [string, string], "ms")),
    ).toEqual([
      "within 5 min",
      "0 to 5 min later",
      "at least 1 min later",
      "0 to 2 min earlier",
      "at any time",
      "1 min earlier to 2 min later",
    ]);
  });
});

describe("the drawn graph", () => {
  const entries = fromDocument({
    variables: { A: { where: [["sst", ">", 28]] }, B: {}, C: {} },
    constraints: [
      { between: ["A", "B"], dt: [0, "PT5M"], distance: { max: 5000 }, compare: [["A.sst", "<", "B.sst"]] },
      { between: ["B", "C"], dt: [0, "PT5M"] },
      { between: ["A"], inside: { region: "nino" } },
    ],
  });

  it("distinguishes explicit and implied edges", () => {
    const closure = closureAnswer({
      faults: [],
      document: {},
      text: "",
      conflict: null,
      edges: [
        { between: ["A", "B"], dt: [0, 300_000], distance: { max: 5000, open: false }, explicit: { dt: true, distance: true } },
        { between: ["A", "C"], dt: [0, 600_000], distance: null, explicit: { dt: false, distance: false } },
      ],
    });
    const edges = graphEdges(entries, closure, OCEAN);
    expect(edges.map(({ key, lines, constraints }) => [key, lines, constraints.length])).toEqual([
      ["A|B", ["0 to 5 min later", "≤ 5 km", "A.sst < B.sst"], 1],
      ["B|C", ["0 to 5 min later"], 1],
      ["A|C", ["0 to 10 min later"], 0],
    ]);
    expect(nodeLines(entries, "A", OCEAN)).toEqual(["sst > 28", "inside nino"]);
  });

  it("shows a constraint on many pairs once", () => {
    const mutual = withMutual(fromDocument({}), { k: 4, within: "PT5M", distance: "5000", where: [], isDifferent: false });
    expect(graphEdges(mutual, null, OCEAN).map((edge) => edge.isRepeated)).toEqual([false, true, true, true, true, true]);
  });

  it("marks an unsatisfiable cycle", () => {
    const closure = closureAnswer({
      faults: [],
      document: {},
      text: null,
      edges: [],
      conflict: {
        constraints: [0, 1],
        cycle: [
          ["B", "A"],
          ["C", "B"],
        ],
        reason: "no",
      },
    });
    expect(
      graphEdges(entries, closure, OCEAN)
        .filter((edge) => edge.isInConflict)
        .map((edge) => edge.key),
    ).toEqual(["A|B", "B|C"]);
  });

  it("places every node separately inside the frame", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 32 }), (count) => {
        const places = [
          ...circlePlaces(
            Array.from({ length: count }, (_, i) => `V${i}`),
            700,
            400,
          ).values(),
        ];
        expect(new Set(places.map(String)).size).toBe(count);
        for (const [x, y] of places) expect(x > 0 && x < 700 && y > 0 && y < 400).toBe(true);
      }),
    );
  });
});
