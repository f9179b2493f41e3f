import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { answerCounts, countWithin } from "../src/data/answer_counts";
import { Coverage } from "../src/data/coverage";

describe("the loaded periods", () => {
  it("has as gaps exactly the instants that were never added", () => {
    const period = fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 12 }));
    fc.assert(
      fc.property(fc.array(period, { maxLength: 8 }), period, (added, [from, length]) => {
        const coverage = new Coverage();
        for (const [a, l] of added) coverage.add(a, a + l);
        const gaps = coverage.gaps(from, from + length);
        for (let t = from; t < from + length; t++) {
          const isKnown = added.some(([a, l]) => a <= t && t < a + l);
          expect([coverage.has(t), gaps.filter(([a, b]) => a <= t && t < b).length]).toEqual([isKnown, isKnown ? 0 : 1]);
        }
      }),
    );
  });
});

describe("counts of answers", () => {
  const counts = answerCounts({
    from: 0,
    to: 100,
    width: 10,
    counts: {
      "1": {
        in: [
          [0, 3],
          [5, 2],
        ],
        out: [[1, 3]],
      },
      "2": { match: [[9, 4]] },
    },
  });

  it("count a stay once and every other answer", () => {
    expect([counts.total, [...counts.byQuery.get("1")!], counts.byQuery.get("2")![9]]).toEqual([12, [3, 0, 0, 0, 0, 2, 0, 0, 0, 0], 4]);
  });

  it("are added up where single answers are not loaded", () => {
    expect(countWithin(counts, "1", [[0, 50]], 0, 100)).toBe(3);
    expect(countWithin(counts, "1", [[0, 100]], 40, 100)).toBe(2);
    expect(countWithin(counts, "3", [[0, 100]], 0, 100)).toBe(0);
  });
});
