import { describe, expect, it } from "vitest";
import { changedLimits, fullness, quotas } from "../src/data/quota_data";

const rows = quotas([
  { name: "queries", what: "queries", limit: 10, default: 10, used: 9 },
  { name: "feeds", what: "feeds", limit: 3, default: 5, used: 6 },
  { name: "rows", what: "rows a second over HTTP", limit: 100, default: 100, used: null },
]);

describe("quotas", () => {
  it("sends only changed quotas, and null for the server's default", () => {
    expect(changedLimits(rows, { queries: "", feeds: "3", rows: "" })).toEqual({});
    expect(changedLimits(rows, { queries: "10", feeds: "", rows: " 50 " })).toEqual({ feeds: null, rows: 50 });
  });
  it("leaves invalid numbers to the server", () => {
    expect(changedLimits(rows, { queries: "many", feeds: "3", rows: "" })).toEqual({ queries: "many" });
  });
  it("computes the share in use, also above the quota", () => {
    expect(rows.map(fullness)).toEqual([0.9, 1, null]);
  });
});
