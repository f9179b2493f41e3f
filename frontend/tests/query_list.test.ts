import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { byFolder, copyName, foldersOf, freeName, matching, tagsOf, tagsOfText } from "../src/data/query_list";
import { queryRow } from "../src/lib/shapes";

const row = (id: string, more: Record<string, unknown> = {}) =>
  queryRow({ id, feed: "city", name: `q${id}`, family: "border", specification: {}, ...more });
const rows = [
  row("1", { folder: "Night", tags: ["weekly"], owner: { id: 7, name: "ann" } }),
  row("2", { sentence: "Cars in the yard" }),
  row("3", { folder: "Harbour", tags: ["customs", "weekly"], feed: "strait" }),
];
const all = { text: "", feed: "", tag: "", owner: null };

describe("the list of queries", () => {
  it.each([
    [{}, "123"],
    [{ text: "YARD" }, "2"],
    [{ text: "night" }, "1"],
    [{ tag: "weekly" }, "13"],
    [{ tag: "weekly", feed: "strait" }, "3"],
    [{ owner: "7" }, "1"],
    [{ text: "nothing" }, ""],
  ])("%o leaves %s", (wanted, left) => {
    expect(
      matching(rows, { ...all, ...wanted })
        .map(({ id }) => id)
        .join(""),
    ).toBe(left);
  });

  it("is grouped into folders by name, queries without one last", () => {
    expect(byFolder(rows).map(([folder, inside]) => [folder, inside.length])).toEqual([
      ["Harbour", 1],
      ["Night", 1],
      ["", 1],
    ]);
    expect(foldersOf(rows)).toEqual(["Harbour", "Night"]);
    expect(tagsOf(rows)).toEqual(["customs", "weekly"]);
  });

  it("has each row in one folder", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("", "a", "b/c")), (folders) => {
        const made = folders.map((folder, i) => ({ folder, tags: [], i }));
        const found = byFolder(made).flatMap(([folder, inside]) => inside.map((one) => [folder, one.i]));
        expect(found.sort((x, y) => Number(x[1]) - Number(y[1]))).toEqual(folders.map((folder, i) => [folder, i]));
      }),
    );
  });

  it("reads comma-separated tags", () => {
    expect(tagsOfText(" a b, c,,a b ,")).toEqual(["a b", "c"]);
    expect(tagsOfText("")).toEqual([]);
  });

  it("gives a copy a free name", () => {
    expect(copyName("x", [])).toBe("x (copy)");
    expect(copyName("x (copy)", ["x (copy)", "x (copy 2)"])).toBe("x (copy 3)");
    expect(copyName("y".repeat(100), []).length).toBeLessThanOrEqual(100);
  });

  it("gives a query without a name a free one", () => {
    expect(freeName("Crossing a border", [])).toBe("Crossing a border");
    expect(freeName("Crossing a border", ["Crossing a border", "Crossing a border 2"])).toBe("Crossing a border 3");
    expect(freeName("y".repeat(100), ["y".repeat(100)]).length).toBeLessThanOrEqual(100);
  });
});
