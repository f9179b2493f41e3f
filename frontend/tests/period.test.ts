import { describe, expect, it } from "vitest";

import { lastWords, periodsOf, tryAddress, trialRequestOf } from "../src/data/period";
import { fromWall, toWall } from "../src/lib/time";

const MIN = 60_000;

describe("periods that explain an answer", () => {
  it("contain the answer and the rules' window before it", () => {
    expect(periodsOf({ start: 100 * MIN, end: 103 * MIN }, 5 * MIN, "ms")).toEqual([
      { about: "whole", at: 100 * MIN, period: { from: 95 * MIN, to: 103.5 * MIN } },
    ]);
    expect(periodsOf({ start: 100 * MIN, end: 100 * MIN }, null, "ms")[0]!.period).toEqual({ from: 90 * MIN, to: 101 * MIN });
    expect(periodsOf({ start: 680_000, end: 700_000 }, 86_400, "ticks")[0]!.period).toEqual({ from: 593_600, to: 708_640 });
  });

  it("are two for a long answer, and one for an open one", () => {
    const long = periodsOf({ start: 1000 * MIN, end: 5000 * MIN }, 10 * MIN, "ms");
    expect(long.map(({ about, at, period }) => [about, at / MIN, period.from / MIN, period.to / MIN])).toEqual([
      ["beginning", 1000, 990, 1011],
      ["end", 5000, 4990, 5001],
    ]);
    expect(periodsOf({ start: 1000 * MIN, end: null }, 10 * MIN, "ms").map(({ about }) => about)).toEqual(["beginning"]);
  });

  it("extend after a beginning by the rules' window, as conditions may have durations", () => {
    expect(periodsOf({ start: 1000 * MIN, end: null }, 10 * MIN, "ms")[0]!.period.to).toBe(1011 * MIN);
  });

  it("are bounded for rules with long windows on a busy feed, never on one of ticks", () => {
    expect(periodsOf({ start: 0, end: null }, 2 * 1440 * MIN, "ms")[0]!.period.from).toBe(-15 * MIN);
    expect(periodsOf({ start: 0, end: null }, 1_007_000, "ticks")[0]!.period.from).toBe(-1_007_000);
    expect(periodsOf({ start: 0, end: null }, 1000, "ms")[0]!.period.from).toBe(-MIN);
  });

  it("are read from an address that is valid", () => {
    const answer = { what: "near", args: ["a b", "c&d"], at: 7 };
    const asked = (version: number | null) =>
      trialRequestOf(new URL(tryAddress("7", { from: -5, to: 12 }, answer, version), "http://x").search);
    expect(asked(null)).toEqual({ from: -5, to: 12, answer, version: null });
    expect(asked(3)).toEqual({ from: -5, to: 12, answer, version: 3 });
    expect(trialRequestOf("?from=1&to=2&at=x&what=near&version=0")).toEqual({ from: 1, to: 2, answer: null, version: null });
    expect(["", "?from=file", "?from=5", "?from=5&to=5", "?from=1.5&to=9", "?from=1&to=1e99"].map(trialRequestOf)).toEqual([
      null,
      null,
      null,
      null,
      null,
      null,
    ]);
  });

  it("are labelled in the feed's unit", () => {
    expect([lastWords(10, "ms"), lastWords(10, "ticks")]).toEqual(["last 10 min", "last 15,000 ticks"]);
    expect([lastWords(60, "ms"), lastWords(60, "ticks")]).toEqual(["last hour", "last 90,000 ticks"]);
  });
});

describe("fields for date and time", () => {
  it("round-trip in any zone, also at changes of daylight saving time", () => {
    for (const zone of ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]) {
      for (let t = Date.UTC(2026, 2, 28); t < Date.UTC(2026, 2, 31); t += 20 * MIN) expect(fromWall(toWall(t, zone), zone)).toBe(t);
    }
    const twice = Date.UTC(2026, 9, 25, 0, 30);
    expect(toWall(twice, "Europe/Berlin")).toBe("2026-10-25T02:30:00");
    expect(fromWall("2026-10-25T02:30:00", "Europe/Berlin")).toBe(twice);
    expect(fromWall("2026-11-22T07:12", "UTC")).toBe(Date.UTC(2026, 10, 22, 7, 12));
  });

  it("give null for an invalid date", () => {
    expect(["", "noon", "2026-13-40T99:99"].map((text) => fromWall(text, "UTC"))).toEqual([null, null, null]);
  });
});
