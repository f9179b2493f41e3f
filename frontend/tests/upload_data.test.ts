import { describe, expect, it } from "vitest";
import {
  afterChange,
  differences,
  feedName,
  feedTitle,
  freeFeedName,
  intervalLabel,
  nameOfAll,
  progress,
  upload,
  utmCrs,
  utmOf,
  type Inspection,
} from "../src/data/upload_data";

const row = upload({
  id: "x",
  name: "a.csv",
  size: 200,
  offset: 50,
  state: "uploading",
  error: "",
  feed: null,
  as_now: false,
  rate: 1,
  read: 0,
  rows: null,
  position: 0,
  late: 0,
  dead: 0,
});

describe("an uploaded file", () => {
  it("says when all its rows are of one thing because no column names things", () => {
    const found = (entity: string[], good: number): Inspection => ({ reading: { entity, thing: "track" }, good }) as unknown as Inspection;
    expect(nameOfAll(found([], 5))).toBe("track");
    expect(nameOfAll(found([], 1))).toBeNull();
    expect(nameOfAll(found(["mmsi"], 5))).toBeNull();
  });

  it("drops choices about columns when the file is parsed differently", () => {
    const chosen = { x: "lon", delimiter: ";", encoding: "utf-16" };
    expect(afterChange(chosen, { delimiter: "," })).toEqual({ delimiter: ",", encoding: "utf-16" });
    expect(afterChange(chosen, { kind: "json" })).toEqual({ kind: "json" });
  });

  it("guesses attributes and the format of times again after a change of entity, time or place columns", () => {
    const attributes = [{ source: "speed", name: "speed", type: "float" as const }];
    expect(afterChange({ attributes, time_format: "iso" }, { time: ["at"] })).toEqual({ time: ["at"] });
    expect(afterChange({ place_format: "e7" }, { x: "pos", y: "" })).toEqual({ x: "pos", y: "" });
    expect(afterChange({ x: "pos" }, { place_format: "wkt", y: "" })).toEqual({ x: "pos", place_format: "wkt", y: "" });
    expect(afterChange({ x: "lon" }, { attributes })).toEqual({ x: "lon", attributes });
  });

  it("keeps no attribute of a column that was chosen as entity just before", () => {
    const stale = ["tag", "reader"].map((source) => ({ source, name: source, type: "string" as const }));
    expect(afterChange({ entity: ["tag"] }, { attributes: stale })).toEqual({ entity: ["tag"], attributes: [stale[1]] });
  });

  it("gives its feed a name that is valid in addresses", () => {
    expect(feedName("Boats of 2026.csv.gz")).toBe("boats-of-2026");
    const into = { feed: "b", title: "B", wall_clock: false, remembered: false, from: 50, ahead: null, missing: [], left_out: [] };
    const said = (more: object, from: number, to: number): string =>
      differences({ into: { ...into, ...more }, from, to, reading: { time: [] } as never }, String).join(" ");
    expect(said({}, 50, 90)).toBe("");
    expect(said({}, 40, 90)).toBe("Rows before 50 are left out: the feed's clock has passed them.");
    expect(said({}, 10, 20)).toContain("Create a new feed for older files.");
    expect(said({ ahead: 5 }, 60, 90)).toContain("dead letters");
    expect(said({ wall_clock: true, missing: ["a", "b"], left_out: ["c"] }, 1, 2)).toMatch(/no values for a and b.*no column for c.*now\./);
    expect(feedTitle("liverpool_route-14.csv.gz")).toBe("Liverpool route 14");
    expect(feedTitle("2026-01-02.gpx")).toBe("2026-01-02");
    expect(feedTitle(".csv")).toBe(".csv");
    expect(freeFeedName("boats", ["boats", "boats-2", "b"])).toBe("boats-3");
    expect(feedName("2026-01-02.gpx")).toBe("feed");
    expect(feedName("_Möwe!.jsonl")).toBe("moewe");
  });

  it("reports its progress", () => {
    expect(progress(row)).toBe(0.25);
    expect(progress({ ...row, state: "reading" })).toBe(0);
    expect(progress({ ...row, state: "sending", rows: 10, position: 4 })).toBe(0.4);
    expect(progress({ ...row, state: "done" })).toBe(1);
  });

  it("knows UTM zones by their codes", () => {
    expect(utmOf("EPSG:32633")).toEqual({ zone: 33, south: false });
    expect(utmOf("EPSG:32761")).toBeNull();
    expect(utmOf(utmCrs(7, true))).toEqual({ zone: 7, south: true });
    expect(utmOf("EPSG:27700")).toBeNull();
  });

  it("names intervals", () => {
    expect([intervalLabel(0.1, null), intervalLabel(300, 60), intervalLabel(null, 86_400)]).toEqual(["to 0.1 s", "to 5 min", "over 1 d"]);
  });
});
