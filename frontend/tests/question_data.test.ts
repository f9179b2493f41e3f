import { describe, expect, it } from "vitest";
import * as composite from "../src/data/composite_data";
import * as constraint from "../src/data/constraint_data";
import { readDerive } from "../src/data/derive_data";
import * as motion from "../src/data/motion_data";
import { plainQuestion, questionsOf } from "../src/data/question_data";
import { feed } from "../src/lib/shapes";

const PLAZA = feed({ name: "plaza", crs: "planar", time: "ms", columns: { colour: "string", speed: "float" } });
const TICKS = feed({ name: "ticks", crs: "planar", time: "ticks", columns: {} });

describe("the questions for a new query", () => {
  it("offers each family, followed by its variants", () => {
    const questions = questionsOf(["border", "motion", "constraint", "composite"]);
    expect(questions.map(({ key, family }) => [key, family])).toEqual([
      ["border", "border"],
      ["motion", "motion"],
      ["total", "motion"],
      ["constraint", "constraint"],
      ["sums", "constraint"],
      ["composite", "composite"],
      ["absence", "composite"],
      ["derive", "composite"],
    ]);
    expect(new Set(questions.map(({ key }) => key)).size).toBe(questions.length);
    expect(plainQuestion("border").begin(PLAZA)).toEqual({});
  });

  it("begin with documents that their editors round-trip", () => {
    const [, total, , sums, , absence, derive] = questionsOf(["motion", "constraint", "composite"]);
    for (const where of [PLAZA, TICKS]) {
      const added = { family: "motion", version: 1, ...total!.begin(where) };
      expect(motion.toDocument(motion.fromDocument(added, where))).toEqual(added);
      expect(motion.fromDocument(added, where).steps.map((step) => step.total?.bound)).toEqual(["at_least"]);
      const summed = { family: "constraint", version: 1, ...sums!.begin(where) };
      expect(constraint.toDocument(constraint.fromDocument(summed))).toEqual(summed);
      const none = { family: "composite", version: 1, ...absence!.begin(where) };
      expect(composite.toDocument(composite.fromDocument(none, where))).toEqual(none);
    }
    const column = (where: typeof PLAZA): unknown =>
      constraint.fromDocument(sums!.begin(where)).constraints.flatMap(({ compare }) => compare.slice(1).map(({ left }) => left));
    expect([column(PLAZA), column(TICKS)]).toEqual([["B.speed - A.speed"], ["B.x - A.x"]]);
    expect(readDerive(derive!.begin(PLAZA)["derive"])).toEqual([]);
    // Any two readings of a busy feed would be more answers than a job stores.
    expect(sums!.begin(PLAZA)).toMatchObject({
      report: "first",
      constraints: [{ compare: [["A.entity", "=", "B.entity"], expect.anything()] }],
    });
  });
});
