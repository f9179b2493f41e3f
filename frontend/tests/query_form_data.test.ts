import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  emptyEntries,
  fromConditions,
  fromDuration,
  fromSpecification,
  hasOptions,
  OPERATORS,
  SPAN_UNITS,
  toConditions,
  toDuration,
  faultInForm,
  toSpecification,
  TRANSITIONS,
  unitName,
  type SpanUnit,
} from "../src/data/query_form_data";
import { barHeights, scaleOf, shareOf, valueAt } from "../src/data/histogram_data";
import { decimal } from "../src/data/document_data";
import { regionsOf } from "../src/data/query_shapes";
import { feed } from "../src/lib/shapes";
import { parseDuration } from "../src/lib/time";

const CITY = feed({ name: "city", crs: "geographic", time: "ms", columns: { speed: "float", kind: "string", empty: "bool" } });
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

const place = fc.oneof(
  fc.constantFrom<object>({ region: REGION }, { region: { region: "harbour" } }, { region: { center: [11.5, 48.1], radius: 30 } }),
  fc.record({ low: fc.option(fc.integer()), high: fc.option(fc.integer()) }).map(({ low, high }) => ({ ranges: { speed: [low, high] } })),
);
const where = fc.array(
  fc.oneof(
    fc.tuple(fc.constant("speed"), fc.constantFrom(...OPERATORS.slice(0, 6)), fc.integer()),
    fc.tuple(fc.constant("kind"), fc.constant("in"), fc.array(fc.constantFrom("car", "bus"), { minLength: 1, maxLength: 2 })),
    fc.tuple(fc.constant("empty"), fc.constant("="), fc.boolean()),
  ),
  { maxLength: 3 },
);
/** Each key of a document, or none. */
const optional = <T>(values: Record<string, fc.Arbitrary<T>>): fc.Arbitrary<Partial<Record<string, T>>> =>
  fc.record(values, { requiredKeys: [] });
const anywhere = optional<unknown>({
  first: fc.constant("enter"),
  dwell: fc.constantFrom<unknown>("PT10S", 5000),
  while: where.filter((rows) => rows.length > 0),
});
const inRegions = optional<unknown>({ hysteresis: fc.integer({ min: 0, max: 500 }), accuracy: fc.constant("accuracy_m") });
const specifications = fc
  .record({
    family: fc.constantFrom("border", "transition"),
    place,
    where,
    within: fc.constantFrom<unknown>("PT3M", "PT90S", 1500),
    types: fc.subarray([...TRANSITIONS], { minLength: 1 }),
    anywhere,
    inRegions,
    segments: fc.boolean(),
  })
  .map(({ family, place: at, where: conditions, within, types, anywhere: options, inRegions: more, segments }) => ({
    family,
    version: 1,
    ...at,
    ...options,
    ...("region" in at ? more : {}),
    ...(family === "transition" ? { within, types } : "region" in at && segments ? { segments } : {}),
    ...(conditions.length > 0 ? { where: conditions } : {}),
  }));

describe("the form for borders and transitions", () => {
  it("writes back every specification it can read", () => {
    fc.assert(
      fc.property(specifications, (document) => {
        expect(toSpecification(fromSpecification(document, "ms"))).toEqual(document);
      }),
    );
  });

  it("writes back conditions in the types of their columns", () => {
    fc.assert(
      fc.property(where, (conditions) => {
        expect(toConditions(fromConditions(conditions), CITY)).toEqual(conditions);
      }),
    );
  });

  it("does not take an empty field for an empty text, unless the document has one", () => {
    const row = { column: "kind", operator: "=", value: " " };
    expect(toConditions([row, { ...row, operator: "in" }], CITY)).toEqual([
      ["kind", "=", null],
      ["kind", "in", null],
    ]);
    const stored = [
      ["kind", "=", ""],
      ["kind", "in", [""]],
    ];
    expect(toConditions(fromConditions(stored), CITY)).toEqual(stored);
  });

  it("reads a decimal comma, but not a number that may have commas between thousands", () => {
    expect(["3,5", "0,500", "-2,25", "1.5"].map(decimal)).toEqual([3.5, 0.5, -2.25, 1.5]);
    expect(["1,000", "-12,000,000", "1,5,5", "", "abc"].map(decimal)).toEqual([NaN, NaN, NaN, NaN, NaN]);
    expect(toDuration("1,000", "min")).toBeNull();
    expect(toConditions([{ column: "speed", operator: "<", value: "2,5" }], CITY)).toEqual([["speed", "<", 2.5]]);
  });

  it("expands the collapsed part if something in it is set", () => {
    const plain = { family: "border", version: 1, region: { region: "harbour" } };
    expect(hasOptions(fromSpecification(plain, "ms"))).toBe(false);
    for (const option of [
      { hysteresis: 5 },
      { accuracy: "a" },
      { first: "enter" },
      { dwell: 5 },
      { while: [["speed", "<", 1]] },
      { segments: true },
    ])
      expect(hasOptions(fromSpecification({ ...plain, ...option }, "ms"))).toBe(true);
  });

  it("begins a new transition with three minutes", () => {
    expect(toSpecification(fromSpecification({ family: "transition", version: 1 }, "ms"))).toEqual({
      family: "transition",
      version: 1,
      within: "PT3M",
      types: ["passed", "stayed_in"],
    });
  });

  it("keeps lengths of time exact", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 500 }), fc.constantFrom(...(Object.keys(SPAN_UNITS) as SpanUnit[])), (amount, unit) => {
        const written = toDuration(String(amount), unit)!;
        expect(parseDuration(written)).toBe(amount * SPAN_UNITS[unit as keyof typeof SPAN_UNITS]);
        const read = fromDuration(written, "ms");
        expect(parseDuration(toDuration(read.amount, read.unit)!)).toBe(parseDuration(written));
      }),
    );
  });

  it("leaves out empty fields, so that the server reports them", () => {
    expect(toSpecification({ ...emptyEntries("transition", "ms"), within: null })).toEqual({
      family: "transition",
      version: 1,
      types: ["passed", "stayed_in"],
    });
  });

  it("passes an invalid number on, for the server to refuse", () => {
    const entries = { ...emptyEntries("border", "ms"), place: "ranges" as const, ranges: [{ column: "speed", low: "fast", high: "" }] };
    expect(toSpecification(entries)["ranges"]).toEqual({ speed: ["fast", null] });
    expect(toSpecification({ ...emptyEntries("border", "ms"), hysteresis: "much" })["hysteresis"]).toBe("much");
  });

  it("offers options of regions only if there is one", () => {
    const entries = { ...emptyEntries("border", "ms"), segments: true, hysteresis: "5", accuracy: "a", region: { region: "harbour" } };
    expect(toSpecification(entries)).toMatchObject({ segments: true, hysteresis: 5, accuracy: "a" });
    expect(Object.keys(toSpecification({ ...entries, place: "ranges" }))).toEqual(["family", "version", "ranges"]);
    expect(toSpecification({ ...entries, family: "transition" })).not.toHaveProperty("segments");
  });
});

describe("what is missing in the form for borders and transitions", () => {
  const say = (pointer: string, message: string, change: Partial<ReturnType<typeof emptyEntries>>) =>
    faultInForm({ pointer, message }, { ...emptyEntries("transition", "ms"), ...change });
  // As engine/border_monitoring/specification.py and engine/specification.py write them.
  const NO_PLACE = "must have either 'region' or 'ranges'";
  const NO_TIME = "the key 'within' is missing";
  const NO_RANGE = 'must be an object from column to [lo, hi], for example {"price": [10, null]}';

  it("is reported in the words of the page, at the field to fill", () => {
    expect(say("", NO_PLACE, {})).toEqual({
      pointer: "/region",
      message: "No region yet: draw one on the map, choose a stored one or import a file.",
    });
    expect(say("", NO_TIME, { within: null })).toEqual({ pointer: "/within", message: "No time yet: enter within what time." });
    expect(say("/ranges", NO_RANGE, { place: "ranges" })).toEqual({
      pointer: "/ranges",
      message: "No range yet: add one, and enter its bounds.",
    });
  });

  it("leaves faults of filled fields to the server", () => {
    const region = { region: "Old harbour" };
    const unknown = { pointer: "/region/region", message: "unknown region 'Old harbour'. Known: none" };
    expect(say(unknown.pointer, unknown.message, { region })).toEqual(unknown);
    expect(say("", "the key 'name' is missing", {})).toEqual({ pointer: "", message: "the key 'name' is missing" });
    expect(
      say("/ranges", "must have at most 9 columns, not 10", { place: "ranges", ranges: [{ column: "v", low: "", high: "" }] }).message,
    ).toBe("must have at most 9 columns, not 10");
  });
});

describe("units of time", () => {
  it("agree with the amount before them", () => {
    expect(["1", "2", "0", "0.5", "", "x"].map((amount) => unitName("min", amount))).toEqual([
      "minute",
      "minutes",
      "minutes",
      "minutes",
      "minutes",
      "minutes",
    ]);
    expect([unitName("d", "1,0"), unitName("h", "-1"), unitName("ticks", " 1 "), unitName("s", "30")]).toEqual([
      "day",
      "hour",
      "tick",
      "seconds",
    ]);
  });
});

describe("the scale of a slider", () => {
  const scales = fc
    .record({
      min: fc.integer({ min: -1e6, max: 1e6 }).map((eighths) => eighths / 8),
      span: fc.integer({ min: 1, max: 1e6 }).map((eighths) => eighths / 8),
      isWhole: fc.boolean(),
    })
    .map(({ min, span, isWhole }) => ({ min, max: min + span, isWhole, scale: scaleOf({ min, max: min + span }, isWhole)! }));

  it("holds all values, on about a hundred steps", () => {
    fc.assert(
      fc.property(scales, ({ min, max, isWhole, scale }) => {
        expect(scale.min).toBeLessThanOrEqual(min + scale.step * 1e-6);
        expect(scale.max).toBeGreaterThanOrEqual(max - scale.step * 1e-6);
        expect((scale.max - scale.min) / scale.step).toBeLessThan(104);
        if (isWhole) expect(Number.isInteger(scale.step)).toBe(true);
      }),
    );
  });

  it("finds a step from its position", () => {
    fc.assert(
      fc.property(scales, fc.double({ min: 0, max: 1, noNaN: true }), ({ scale }, share) => {
        const value = valueAt(scale, share);
        expect(valueAt(scale, shareOf(scale, value))).toBe(value);
      }),
    );
  });

  it("needs at least two different values", () => {
    expect(scaleOf({ min: 3, max: 3 }, false)).toBeNull();
    expect(scaleOf({ min: null, max: null }, false)).toBeNull();
  });

  it("is written without binary rounding errors", () => {
    expect(valueAt({ min: 0, max: 1, step: 0.1 }, 0.3)).toBe(0.3);
    expect(barHeights([0, 1, 100])).toEqual([0, 0.1, 1]);
  });
});

describe("regions of a specification", () => {
  it("are found inline and by name, anywhere in the document", () => {
    const found = regionsOf({
      family: "motion",
      predicates: [{ inside: { region: "a" } }, { outside: REGION }, { distance: { center: [0, 0], radius: 1 } }],
    });
    expect(found.names).toEqual(["a"]);
    expect(found.geometries).toHaveLength(2);
    expect(regionsOf({ family: "border", version: 1, region: { region: "b" } }).names).toEqual(["b"]);
    expect(regionsOf({ family: "border", version: 1, region: REGION }).geometries).toEqual([REGION]);
  });
});
