import fc from "fast-check";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as composite from "../src/data/composite_data";
import * as constraint from "../src/data/constraint_data";
import { kept } from "../src/data/document_data";
import * as encounter from "../src/data/encounter_data";
import * as motion from "../src/data/motion_data";
import * as occupancy from "../src/data/occupancy_data";
import { fromSpecification, toSpecification } from "../src/data/query_form_data";
import { feed, type Feed } from "../src/lib/shapes";

type Document = Record<string, unknown>;
const FORMS: Record<string, (document: Document, feed: Feed) => Document> = {
  border: (document, { time }) => toSpecification(fromSpecification(document, time)),
  transition: (document, { time }) => toSpecification(fromSpecification(document, time)),
  motion: (document, of) => motion.toDocument(motion.fromDocument(document, of)),
  occupancy: (document, of) => occupancy.toDocument(occupancy.fromDocument(document, of)),
  encounter: (document, of) => encounter.toDocument(encounter.fromDocument(document, of)),
  constraint: (document) => constraint.toDocument(constraint.fromDocument(document)),
  composite: (document, of) => composite.toDocument(composite.fromDocument(document, of)),
};
const CITY = feed({ name: "city", crs: "geographic", time: "ms", columns: { speed: "float", kind: "string" } });
const SPOT = { center: [11.5, 48.1], radius: 300 };
/**
 * All keys that a document of each family may have, also those that a form leaves out because they
 * change nothing.
 */
const WHOLE: Document[] = [
  { family: "border", version: 1, name: "n", where: [], region: SPOT, segments: false, first: "ignore", hysteresis: 0 },
  {
    family: "transition",
    version: 1,
    name: "n",
    where: [["speed", "<", 1]],
    ranges: { speed: [0, null] },
    within: 1000,
    types: ["stayed_out"],
    dwell: null,
  },
  {
    family: "motion",
    version: 1,
    name: "n",
    where: [],
    predicates: [
      { inside: SPOT, window: ["PT30M", 0], quantifier: "total", at_least: "PT20M", gap: null },
      { outside: SPOT, window: [9, 0], quantifier: "total", at_most: 0, gap: "PT1M" },
    ],
    theta: null,
    every: "PT10S",
    horizon: null,
  },
  { family: "occupancy", version: 1, name: "n", where: [], region: SPOT, count: [">=", 5], stale: null, lasting: "PT10M" },
  { family: "occupancy", version: 1, ranges: { speed: [null, 5] }, count: ["<=", 0], stale: 60_000, lasting: null },
  {
    family: "encounter",
    version: 1,
    name: "n",
    where: [],
    a: {},
    b: { where: [["kind", "=", "tug"]] },
    distance: 100,
    every: "PT10S",
    gap: "PT1M",
    position: "last",
    inside: null,
    lasting: null,
  },
  { family: "encounter", version: 1, distance: 0, every: 1, gap: 5, position: "interpolated", inside: { region: "port" }, lasting: "PT5M" },
  {
    family: "constraint",
    version: 1,
    name: "n",
    where: [],
    variables: { A: { where: [] }, B: {} },
    constraints: [{ between: ["A", "B"], dt: [0, 5], distance: { max: 5, open: false }, compare: [["A.speed - B.speed", "<", 3]] }],
    symmetric: [],
    report: "all",
    expiration: "tight",
    derive: { arrival: { query: "port", kind: "in", at: "end" } },
  },
  {
    family: "composite",
    version: 1,
    name: "n",
    where: [],
    pattern: { before: ["A", "B"], span: "PT1M" },
    primitives: { A: { where: [] }, B: {}, C: { prefix: { kind: "x" } } },
    per: null,
    within: "PT5M",
    derive: { a: { query: "1", kind: "in", at: "end" } },
  },
];
const SCENARIOS = new URL("../../fixtures/scenarios/", import.meta.url);
const DEMO = readdirSync(SCENARIOS)
  .filter((name) => name.endsWith(".json"))
  .flatMap((name) => {
    const scenario = JSON.parse(readFileSync(new URL(name, SCENARIOS), "utf8")) as {
      feed: unknown;
      queries: { name: string; specification?: Document }[];
    };
    return scenario.queries.flatMap(({ name: called, specification }) =>
      specification === undefined ? [] : [{ called, specification, of: feed(scenario.feed) }],
    );
  });

describe("a stored document that is opened", () => {
  it.each(WHOLE.map((document) => [document["family"], document] as const))(
    "is saved as it was when nothing is changed: %s",
    (family, document) => {
      const written = FORMS[String(family)]!(document, CITY);
      expect(kept(document, written, written)).toEqual(document);
    },
  );

  it.each(WHOLE.map((document) => [document["family"], document] as const))(
    "loses no meaning in the form itself: %s",
    (family, document) => {
      const form = FORMS[String(family)]!;
      const written = form(document, CITY);
      expect(meaning(written)).toEqual(meaning(document));
      expect(form(written, CITY)).toEqual(written);
    },
  );

  it.each(DEMO.map((query) => [query.called, query] as const))("of the demo loses nothing: %s", (_, { specification, of }) => {
    const form = FORMS[String(specification["family"])];
    if (form === undefined) return;
    const written = form(specification, of);
    expect(meaning(written)).toEqual(meaning(specification));
    expect(kept(specification, written, written)).toEqual(specification);
  });

  it("keeps each key but the changed ones", () => {
    const value = fc.oneof(fc.integer(), fc.constant(null), fc.array(fc.integer()));
    const keys = fc.constantFrom("a", "b", "c");
    fc.assert(
      fc.property(fc.dictionary(keys, value), fc.dictionary(keys, value), fc.dictionary(keys, value), (stored, opened, now) => {
        const saved = kept(stored, opened, now);
        for (const key of ["a", "b", "c"]) {
          const isChanged = JSON.stringify(opened[key]) !== JSON.stringify(now[key]);
          expect(saved[key]).toEqual(isChanged ? now[key] : stored[key]);
        }
      }),
    );
  });
});

/**
 * A point as its pair, and without redundant parts: empty lists, nulls, and default values.
 */
function meaning(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(meaning);
  if (typeof value !== "object" || value === null) return value;
  if ("type" in value && value.type === "Point" && "coordinates" in value) return value.coordinates;
  const DEFAULTS: Record<string, unknown> = {
    report: "all",
    expiration: "tight",
    position: "last",
    first: "ignore",
    open: false,
    segments: false,
  };
  const said = Object.entries(value).flatMap(([key, one]): [string, unknown][] => {
    const inner = meaning(one);
    const isSilent =
      inner === null ||
      inner === DEFAULTS[key] ||
      (key === "hysteresis" && inner === 0) ||
      (key !== "region" && typeof inner === "object" && Object.keys(inner).length === 0 && key !== "types");
    return isSilent ? [] : [[key, inner]];
  });
  return Object.fromEntries(said);
}
