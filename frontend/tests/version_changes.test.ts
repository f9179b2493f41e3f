import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { changesBetween, type ChangedLine } from "../src/data/version_changes";

const marks = { added: "+", removed: "-", same: " " };
const shown = (places: ChangedLine[][]): string[][] => places.map((lines) => lines.map(({ kind, text }) => `${marks[kind]}${text.trim()}`));

describe("changes between versions", () => {
  it("are the lines that differ, with lines around them", () => {
    const before = { family: "transition", within: 300, types: ["passed"] };
    expect(shown(changesBetween(before, { ...before, within: 600 }))).toEqual([
      [" {", ' "family": "transition",', '-"within": 300,', '+"within": 600,', ' "types": [', ' "passed"', " ]"],
    ]);
  });

  it("of a program are its changed lines", () => {
    const rules = [
      "initiatedAt(in(P)=true, T) :-",
      "    happensAt(enter(P), T).",
      "% the end",
      'terminatedAt(in(P)=true, T) :- happensAt("leave"(P), T).',
    ];
    const after = rules.map((line) => line.replace("enter", "come"));
    expect(shown(changesBetween({ rules: rules.join("\n"), step: 5 }, { rules: after.join("\n"), step: 5 }))).toEqual([
      [
        " {",
        ' "rules": """',
        " initiatedAt(in(P)=true, T) :-",
        "-happensAt(enter(P), T).",
        "+happensAt(come(P), T).",
        " % the end",
        ' terminatedAt(in(P)=true, T) :- happensAt("leave"(P), T).',
        ' """,',
      ],
    ]);
  });

  it("that are far apart are separate places", () => {
    const before = { a: 1, b: [1, 2, 3, 4, 5, 6, 7, 8, 9], c: 1 };
    expect(changesBetween(before, { ...before, a: 2, c: 2 })).toHaveLength(2);
  });

  it("are none exactly when nothing differs", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (before, after) => {
        expect(changesBetween(before, before)).toEqual([]);
        expect(changesBetween(before, after).length === 0).toBe(JSON.stringify(before) === JSON.stringify(after));
      }),
    );
  });

  it("have the lines of both versions", () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.array(fc.string()), (before, after) => {
        const lines = changesBetween(before, after).flat();
        const added = lines.filter(({ kind }) => kind === "added").length;
        const removed = lines.filter(({ kind }) => kind === "removed").length;
        const count = (texts: string[]): number =>
          texts.length === 0 ? 1 : 2 + texts.reduce((sum, text) => sum + (text.includes("\n") ? 2 + text.split("\n").length : 1), 0);
        expect(added - removed).toBe(count(after) - count(before));
      }),
    );
  });
});
