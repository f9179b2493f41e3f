import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { emptyEntries, fromDuration, fromSpecification, OPERATORS, SPAN_UNITS, toDuration, toSpecification, TRANSITIONS, type SpanUnit } from "../src/data/query_form_data";
import { spokenRegions } from "../src/data/query_shapes";
import { feed } from "../src/data/shapes";
import { parseDuration } from "../src/lib/time";

const CITY = feed({ name: "city", crs: "geographic", time: "ms", columns: { speed: "float", kind: "string", empty: "bool" } });
const REGION = { type: "Polygon", coordinates: [[[0, 0], [1, 0], [1, 1], [0, 0]]] };

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
const specifications = fc
  .record({ family: fc.constantFrom("border", "transition"), place, where, within: fc.constantFrom("PT3M", "PT90S", "PT2H", "P1D"), types: fc.subarray([...TRANSITIONS], { minLength: 1 }) })
  .map(({ family, place: at, where: conditions, within, types }) => ({ family, version: 1, ...at, ...(family === "transition" ? { within, types } : {}), ...(conditions.length > 0 ? { where: conditions } : {}) }));

describe("the query form", () => {
  it("writes back every specification it can read", () => {
    fc.assert(
      fc.property(specifications, (document) => {
        const again = toSpecification(fromSpecification(document, "ms"), CITY);
        const { within, ...rest } = again;
        const { within: wanted, ...wantedRest } = document as Record<string, unknown>;
        expect(rest).toEqual(wantedRest);
        // PT90S may come back as another text of the same length.
        if (wanted !== undefined) expect(parseDuration(within as string)).toBe(parseDuration(wanted as string));
      }),
    );
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

  it("leaves out what is not filled in, so that the server can name it", () => {
    const entries = emptyEntries("transition", "ms");
    expect(toSpecification({ ...entries, amount: "" }, CITY)).toEqual({ family: "transition", version: 1, types: ["passed", "stayed_in"] });
  });

  it("lets a value that is no number through, for the server to refuse", () => {
    const entries = { ...emptyEntries("border", "ms"), place: "ranges" as const, ranges: [{ column: "speed", low: "fast", high: "" }] };
    expect(toSpecification(entries, CITY)["ranges"]).toEqual({ speed: ["fast", null] });
  });

  it("asks for segments only where they exist", () => {
    const entries = { ...emptyEntries("border", "ms"), segments: true, reference: "harbour" };
    expect(toSpecification(entries, CITY)["segments"]).toBe(true);
    expect(toSpecification({ ...entries, place: "ranges" }, CITY)).not.toHaveProperty("segments");
    expect(toSpecification({ ...entries, family: "transition" }, CITY)).not.toHaveProperty("segments");
  });
});

describe("regions a specification speaks of", () => {
  it("finds drawn and stored ones, wherever they stand", () => {
    const found = spokenRegions({ family: "motion", predicates: [{ inside: { region: "a" } }, { outside: REGION }, { distance: { center: [0, 0], radius: 1 } }] });
    expect(found.names).toEqual(["a"]);
    expect(found.geometries).toHaveLength(2);
    expect(spokenRegions({ family: "border", version: 1, region: { region: "b" } }).names).toEqual(["b"]);
    expect(spokenRegions({ family: "border", version: 1, region: REGION }).geometries).toEqual([REGION]);
  });
});
