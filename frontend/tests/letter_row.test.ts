import { describe, expect, it } from "vitest";
import { fieldsOf, isPlain, textOf, withTexts, type PlainRow } from "../src/data/letter_row";
import { deadLetter, feed as feedParser } from "../src/lib/shapes";

const columns = { sog: "float", moored: "bool", flag: "string" };
const feed = feedParser({ name: "bay", crs: "geographic", time: "ms", columns, plan_image: null, plan_bounds: null, view: null });

function letterOf(row: unknown, source = ""): ReturnType<typeof deadLetter> {
  return deadLetter({ id: 1, reason: "wrong_type", row, line: null, source, received_at: "2026-11-01T00:00:00Z" });
}

function corrected(row: PlainRow, changes: Record<string, string>, source = ""): PlainRow {
  const letter = letterOf(row, source);
  const texts = fieldsOf(letter, row, feed).map((name): [string, string] => [name, changes[name] ?? textOf(row[name])]);
  return withTexts(letter, row, new Map(texts), feed);
}

describe("a refused row that is corrected in fields", () => {
  it("has the types of the feed's columns", () => {
    const row = { entity: 219, t: 1, x: "1.5", y: 2, sog: "12,5", moored: "true", flag: null };
    expect(corrected(row, { sog: "12.5", flag: "7" })).toEqual({ entity: "219", t: 1, x: 1.5, y: 2, sog: 12.5, moored: true, flag: "7" });
  });

  it("keeps a text that is no number, so that the server names the fault", () => {
    expect(corrected({ entity: "a", t: "now", sog: "0x10" }, { sog: "12,5 kn" })).toEqual({ entity: "a", t: "now", sog: "12,5 kn" });
    expect(corrected({ entity: "a", t: 1 }, { t: "9007199254740993" })).toEqual({ entity: "a", t: "9007199254740993" });
  });

  it("loses what was emptied and keeps what was empty", () => {
    expect(corrected({ entity: "a", t: 1, unknown: 5, flag: "", sog: null }, { unknown: "" })).toEqual({
      entity: "a",
      t: 1,
      flag: "",
      sog: null,
    });
  });

  it("can get values that it lacked", () => {
    expect(corrected({ entity: "a" }, { t: "17", x: "1" })).toEqual({ entity: "a", t: 17, x: 1 });
  });

  it("stays as it stood in its file, which has its own names and spelling of numbers", () => {
    const row = { MMSI: "1.234", x: "1.5", Lat: 54.5 };
    expect(corrected(row, { Lat: "55" }, "upload:bay.csv")).toEqual({ MMSI: "1.234", x: "1.5", Lat: 55 });
  });

  it("needs values that fit in fields", () => {
    expect(isPlain({ entity: "a", t: 1 })).toBe(true);
    expect(isPlain({ entity: ["a"] })).toBe(false);
    expect(isPlain("a")).toBe(false);
  });
});
