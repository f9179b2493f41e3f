import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { closestNotes, freeSide, hasPlaces, marksOf, numbersText, orderedEvidence, participants, reach } from "../src/data/evidence";
import type { EvidenceItem } from "../src/lib/shapes";

const item = (t: number, more: Partial<EvidenceItem> = {}): EvidenceItem => ({ variable: "", entity: "a", t, x: t, y: 0, ...more });
const items = fc.array(
  fc.record({
    variable: fc.constantFrom("", "V1", "V2"),
    entity: fc.constantFrom("a", "b"),
    t: fc.integer({ min: 0, max: 6 }),
    x: fc.option(fc.integer({ min: 0, max: 3 })),
    y: fc.constant(0),
  }),
  { maxLength: 8 },
);

describe("the events behind an answer", () => {
  it("come by time, numbered from 1, each once", () => {
    // An in ends with the event that the out begins with.
    const points = orderedEvidence([{ evidence: [item(1), item(4)] }, { evidence: [item(4), item(2)] }]);
    expect(points.map(({ number, t }) => [number, t])).toEqual([
      [1, 1],
      [2, 2],
      [3, 4],
    ]);
  });

  it("are on a map if something of the alert has a place", () => {
    const evidence = { detection: null, closing: null, tracks: [{ entity: "a", points: [] }] };
    const nowhere = [item(1, { x: null, y: null })];
    expect(hasPlaces({ shapes: [], evidence }, nowhere)).toBe(false);
    expect(hasPlaces({ shapes: [], evidence }, [...nowhere, item(2)])).toBe(true);
    expect(hasPlaces({ shapes: [{}], evidence }, nowhere)).toBe(true);
    expect(hasPlaces({ shapes: [], evidence: { ...evidence, tracks: [{ entity: "a", points: [[1, 2, 3]] }] } }, nowhere)).toBe(true);
  });

  it("are within the period that is shown, also those long before the answer", () => {
    expect(reach(10, 20, [{ evidence: [item(3), item(12)] }])).toEqual([3, 20]);
    expect(reach(10, 20, [])).toEqual([10, 20]);
  });

  it("keep both roles of an event that is in two variables", () => {
    expect(orderedEvidence([{ evidence: [item(1, { variable: "V1" }), item(1, { variable: "V2" })] }])).toHaveLength(2);
  });

  it("belong to exactly one mark each, if they have a position", () => {
    fc.assert(
      fc.property(items, fc.integer({ min: 1, max: 3 }), (list, reach) => {
        const points = orderedEvidence([{ evidence: list }]);
        const marks = marksOf(points, ({ x, y }) => (x === null || y === null ? null : [x, y]), reach);
        expect(marks.flatMap((mark) => mark.points.map((point) => point.number)).sort((a, b) => a - b)).toEqual(
          points.filter((point) => point.x !== null).map((point) => point.number),
        );
        for (const mark of marks) for (const { x } of mark.points) expect(Math.abs(x! - mark.x)).toBeLessThan(reach);
      }),
    );
  });

  it("abbreviate their numbers", () => {
    const points = orderedEvidence([{ evidence: [1, 2, 3, 4].map((t) => item(t)) }]);
    expect([numbersText(points), numbersText(points.slice(0, 2)), numbersText([points[0]!, points[1]!, points[3]!])]).toEqual([
      "1–4",
      "1, 2",
      "1, 2, 4",
    ]);
  });

  it("include entities that only the evidence names", () => {
    expect(participants(["a"], [item(1, { entity: "b" }), item(2, { entity: "" }), item(3)])).toEqual(["a", "b"]);
  });
});

describe("captions", () => {
  const window = { x: 0, y: 0, w: 100, h: 40 };
  const box = (x: number, y = 10): { x: number; y: number; w: number; h: number } => ({ x, y, w: 30, h: 16 });

  it("are on the first free side that the window's edge does not cut", () => {
    expect(freeSide([box(80), box(20)], [], window)).toEqual(box(20));
    expect(freeSide([box(60), box(20)], [], window)).toEqual(box(60));
    expect(freeSide([box(60), box(20)], [box(50)], window)).toEqual(box(20));
  });

  it("may be cut by the edge, and are left out rather than overlap", () => {
    expect(freeSide([box(80), box(20)], [box(10)], window)).toEqual(box(80));
    expect(freeSide([box(80), box(20)], [box(90), box(10)], window)).toBeNull();
  });
});

describe("a pair that met", () => {
  const at = (x: number | null) => ({ variable: "a", entity: "a", t: 1, x, y: 2 });

  it("shows the least distance between its two positions, and no other answer does", () => {
    const met = { kind: "met", value: 24.1234, evidence: [at(1), at(3)] };
    expect(closestNotes([met], true)).toEqual([{ text: "24.1 m apart", x: 2, y: 2 }]);
    expect(closestNotes([met], false)[0]?.text).toBe("24.1 apart");
    expect(
      closestNotes(
        [
          { ...met, kind: "match" },
          { ...met, value: null },
          { ...met, evidence: [at(1), at(null)] },
          { ...met, evidence: [at(1)] },
        ],
        true,
      ),
    ).toEqual([]);
  });
});
