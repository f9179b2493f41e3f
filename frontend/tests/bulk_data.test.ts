import { describe, expect, it } from "vitest";
import { bulkAnswer, bulkRows, bulkSummary } from "../src/data/bulk_data";

const SQUARE = {
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
const answer = bulkAnswer({
  queries: [
    { row: 1, name: "a", id: null, geometry: SQUARE },
    { row: 5, name: "e", id: 7, geometry: { center: [0, 0], radius: 1 } },
  ],
  existing: [
    { row: 2, name: "b", id: 3, same: true },
    { row: 4, name: "d", id: 4, same: false },
  ],
  refused: [
    {
      row: 3,
      name: "c",
      faults: [
        { pointer: "/geometry", message: "It crosses itself." },
        { pointer: "/name", message: "Too long." },
      ],
    },
  ],
  sentence: null,
});

describe("the result for a file of regions", () => {
  it("lists faults first, then changed, new and unchanged queries", () => {
    expect(bulkRows(answer).map(({ row, state }) => [row, state])).toEqual([
      [3, "refused"],
      [4, "other"],
      [1, "new"],
      [5, "new"],
      [2, "same"],
    ]);
    expect(bulkRows(answer)[0]!.text).toBe("It crosses itself. Too long.");
  });

  it("is summed up without empty categories", () => {
    expect(bulkSummary(answer)).toBe("2 new, 2 there already, 1 refused");
    expect(bulkSummary({ ...answer, existing: [], refused: [] })).toBe("2 new");
  });

  it("keeps only valid geometries", () => {
    expect(answer.queries.map((row) => row.geometry === null)).toEqual([false, false]);
    expect(
      bulkAnswer({ queries: [{ row: 1, name: "a", geometry: { type: "Point", coordinates: [0, 0] } }], existing: [], refused: [] })
        .queries[0]!.geometry,
    ).toBeNull();
  });
});
