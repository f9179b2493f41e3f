import { describe, expect, it } from "vitest";
import { changedLimits, fullness, quotas } from "../src/data/quota_data";

const rows = quotas([
  { name: "queries", what: "queries", limit: 10, default: 10, used: 9 },
  { name: "feeds", what: "feeds", limit: 3, default: 5, used: 6 },
  { name: "rows", what: "rows a second over HTTP", limit: 100, default: 100, used: null },
]);

describe("quotas", () => {
  it("sends what was changed alone, and null for what is the server's again", () => {
    expect(changedLimits(rows, { queries: "", feeds: "3", rows: "" })).toEqual({});
    expect(changedLimits(rows, { queries: "10", feeds: "", rows: " 50 " })).toEqual({ feeds: null, rows: 50 });
  });
  it("leaves what is no number to the server, which says so", () => {
    expect(changedLimits(rows, { queries: "many", feeds: "3", rows: "" })).toEqual({ queries: "many" });
  });
  it("says how full they are, a smaller quota than what is there too", () => {
    expect(rows.map(fullness)).toEqual([0.9, 1, null]);
  });
});
