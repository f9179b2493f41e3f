import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fromDocument, isOrdered, isScored, moved, newStep, placeBefore, toDocument } from "../src/data/motion_data";
import { faultWords, timeWords } from "../src/data/motion_words";
import { distanceWords } from "../src/lib/units";
import { isHalfDone, missingSteps, ofDetection, progressWords, stateOf } from "../src/data/motion_progress";
import { detection, feed } from "../src/lib/shapes";

const CITY = feed({ name: "city", crs: "geographic", time: "ms", columns: { speed: "float" } });
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

const span = fc.oneof(fc.integer({ min: 0, max: 5_000_000 }), fc.constantFrom("PT10M", "PT90S", "P1D", "PT1.5S", "P2W"));
const region = fc.constantFrom<object>(REGION, { region: "bank 1" }, { center: [11.5, 48.1], radius: 30 });
const point = fc.tuple(fc.double({ noNaN: true, min: -180, max: 180 }), fc.double({ noNaN: true, min: -90, max: 90 }));
const quantifier = fc.constantFrom("exists", "forall");
const windowed = fc.record({ window: fc.tuple(span, span), quantifier });
const total = fc
  .record({ window: fc.tuple(span, span), bound: fc.constantFrom("at_least", "at_most"), time: span, gap: fc.option(span) })
  .map(({ window, bound, time, gap }) => ({ window, quantifier: "total", [bound]: time, ...(gap === null ? {} : { gap }) }));
const binary = fc.tuple(fc.constantFrom("inside", "outside"), region).map(([sense, place]) => ({ [sense]: place }));
const predicate = fc.oneof(
  binary,
  fc.tuple(binary, total).map(([place, window]) => ({ ...place, ...window })),
  fc.tuple(binary, windowed).map(([place, window]) => ({ ...place, ...window })),
  fc.tuple(fc.oneof(region, point), windowed).map(([distance, window]) => ({ distance, ...window })),
);
const theta = fc.oneof(
  fc.record({ op: fc.constantFrom("min", "max") }),
  fc.record({ op: fc.constantFrom("<=", ">="), value: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0) }),
  fc.record({ op: fc.constant("top"), k: fc.integer({ min: 1, max: 1000 }), order: fc.constantFrom("min", "max") }),
);
const documents = fc
  .record({
    predicates: fc.array(predicate, { minLength: 1, maxLength: 6 }),
    theta,
    every: span,
    horizon: span,
    where: fc.constantFrom([], [["speed", ">", 3]]),
    name: fc.constantFrom("", "Tour"),
  })
  .map(({ predicates, theta: scoring, every, horizon, where, name }) => ({
    ...(name === "" ? {} : { name }),
    family: "motion",
    version: 1,
    predicates,
    ...(predicates.some((one) => "distance" in one) ? { theta: scoring } : {}),
    every,
    ...(predicates.some((one) => !("window" in one)) ? { horizon } : {}),
    ...(where.length > 0 ? { where } : {}),
  }));

describe("a motion pattern's steps", () => {
  it("write back every document they are read from", () => {
    fc.assert(
      fc.property(documents, (document) => {
        expect(toDocument(fromDocument(document, CITY))).toEqual(document);
      }),
    );
  });

  it("read short and long forms alike", () => {
    const long = {
      family: "motion",
      predicates: [
        { inside: REGION, window: null, quantifier: "exists" },
        { distance: { type: "Point", coordinates: [1, 2] }, window: [5, 0] },
      ],
      theta: null,
      every: 1,
      horizon: 9,
    };
    const written = toDocument(fromDocument(long, CITY));
    expect(written["predicates"]).toEqual([{ inside: REGION }, { distance: [1, 2], window: [5, 0], quantifier: "exists" }]);
    expect(toDocument(fromDocument(written, CITY))).toEqual(written);
  });

  it("leave out missing parts, so that the server reports them", () => {
    const written = toDocument(fromDocument({ family: "motion", version: 1 }, CITY));
    expect(written).toMatchObject({ family: "motion", predicates: [{}, {}], every: "PT10S", horizon: "PT30M" });
    expect(written).not.toHaveProperty("theta");
  });

  it("keep all steps when one is moved", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.nat(5), fc.integer({ min: -2, max: 8 }), (count, which, to) => {
        const steps = Array.from({ length: count }, () => newStep(CITY, false));
        const step = steps[which % count]!;
        const after = moved(steps, step.id, to);
        expect(new Set(after)).toEqual(new Set(steps));
        expect(after.indexOf(step)).toBe(Math.max(0, Math.min(to, count - 1)));
        expect(after.filter((one) => one !== step)).toEqual(steps.filter((one) => one !== step));
      }),
    );
  });

  it("know which step each comes after", () => {
    const entries = fromDocument(
      {
        predicates: [
          { inside: REGION },
          { distance: [0, 0], window: [5, 0] },
          { inside: REGION, window: [9, 5] },
          { outside: REGION, window: [5, 0] },
        ],
      },
      CITY,
    );
    expect(entries.steps.map((_, i) => placeBefore(entries.steps, i))).toEqual([null, null, 0, null]);
    expect([isOrdered(entries), isScored(entries)]).toEqual([true, true]);
  });

  it("do not count accumulated time as part of the order", () => {
    const total = { window: [9, 0], quantifier: "total", at_least: 5 };
    const { steps } = fromDocument({ predicates: [{ inside: REGION }, { inside: REGION, ...total }, { inside: REGION }] }, CITY);
    expect(steps.map((_, i) => placeBefore(steps, i))).toEqual([null, null, 0]);
    expect(timeWords(steps, 2, "ms")).toBe("after step 1");
  });
});

describe("faults", () => {
  it("name the step", () => {
    const { steps } = fromDocument({ predicates: [{}, { inside: { region: "gone" } }] }, CITY);
    const say = (pointer: string): string => faultWords({ pointer, message: "is wrong" }, steps);
    expect([say("/predicates/0"), say("/predicates/1/inside/region"), say("/every")]).toEqual([
      "Step 1: choose its place, on the map or by name.",
      "Step 2: is wrong",
      "is wrong",
    ]);
  });
});

describe("progress", () => {
  const at = { t: 1, x: 0, y: 0, distance: null };
  const row = { entity: "a", matches: false, score: null };

  it("is described in words", () => {
    expect(stateOf({ ...row, done: 3, of: 5, steps: [at, at, at, null, null] })).toBe("Step 3 of 5");
    expect(stateOf({ ...row, done: 1, of: 3, steps: [null, at, null] })).toBe("1 of 3 steps");
    expect(stateOf({ ...row, matches: true, done: 2, of: 2, steps: [at, at] })).toBe("All 2 steps");
    expect(stateOf({ ...row, done: 2, of: 2, steps: [at, at] })).toBe("Not among them");
    expect([progressWords(12, 1, false), progressWords(12, 0, false)]).toEqual([
      "1 matches, 11 more have done some steps.",
      "nobody matches, 12 more have done some steps.",
    ]);
    expect([progressWords(2000, 10, true), progressWords(1, 1, true)]).toEqual([
      "10 of 2,000 that were measured match.",
      "1 of 1 that were measured matches.",
    ]);
  });

  it("rounds distances sensibly", () => {
    expect([31.579, 99.96, 2511.536].map((distance) => distanceWords(distance, true))).toEqual(["31.6 m", "100 m", "2,512 m"]);
    expect([0.012345, 31.579].map((distance) => distanceWords(distance, false))).toEqual(["0.012", "31.58"]);
  });

  it("counts partial matches, and names the missing steps", () => {
    const pattern = fromDocument({ predicates: [{ inside: REGION }, { inside: REGION }, { outside: REGION }] }, CITY).steps;
    const half = (...steps: (typeof at | null)[]): boolean =>
      isHalfDone({ ...row, done: steps.filter((one) => one !== null).length, of: 3, steps }, pattern);
    expect([half(null, null, null), half(at, null, null), half(null, at, at), half(null, null, at), half(at, at, at)]).toEqual([
      false,
      true,
      true,
      false,
      false,
    ]);
    expect(missingSteps({ ...row, done: 2, of: 4, steps: [at, null, at, null] })).toEqual([1, 3]);
  });

  it("takes a match's witnesses by the names of its steps", () => {
    const match = detection({
      id: "1",
      query: "1",
      version: 1,
      kind: "match",
      entities: ["a"],
      value: 12.5,
      start: 5,
      end: null,
      evidence: [
        { variable: "P2", entity: "a", t: 4, x: 1, y: 2 },
        { variable: "P1", entity: "a", t: 3, x: 0, y: 0 },
      ],
      weight: 1,
      backfill: false,
      detected_at: 0,
    });
    const found = ofDetection(match, 2);
    expect(found.steps.map((step) => step?.t)).toEqual([3, 4]);
    expect([found.score, found.done, found.matches]).toEqual([12.5, 2, true]);
  });
});
