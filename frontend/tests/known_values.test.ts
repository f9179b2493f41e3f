import { describe, expect, it } from "vitest";
import { completions, hasKnownValues, knownValues } from "../src/data/known_values";
import { feed } from "../src/lib/shapes";

const SEA = feed({
  name: "sea",
  crs: "geographic",
  time: "ms",
  columns: { type: "string", speed: "float", is_anchored: "bool", crew: "int" },
});

describe("values that occur in a column", () => {
  it("are offered for texts and truth values, not for numbers", () => {
    const columns = ["type", "is_anchored", "event", "entity", "speed", "crew", "x", "nonsense"];
    expect(columns.filter((column) => hasKnownValues(SEA, column))).toEqual(["type", "is_anchored", "event", "entity"]);
  });

  it("are read from the answer as texts", () => {
    const answer = { column: "is_anchored", rows: 3, nulls: 0, values: [[true, 2], [false, 1]] }; // prettier-ignore
    expect(knownValues(answer, "").values).toEqual(["true", "false"]);
  });

  it("complete the last item of a list and leave the others", () => {
    const values = ["tanker", "tug", "cargo", "a, b"];
    expect(completions(values, "=", "ta")).toEqual(values);
    expect(completions(values, "in", "")).toEqual(["tanker", "tug", "cargo"]);
    expect(completions(values, "in", "tanker, t")).toEqual(["tanker, tug", "tanker, cargo"]);
    expect(completions(values, "in", "tanker,cargo,")).toEqual(["tanker,cargo, tug"]);
  });
});
