import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AlertList } from "../src/data/alert_list";
import { alert, type Alert } from "../src/data/shapes";

const one = (id: number, opened_at: number, state: Alert["state"] = "new"): Alert =>
  alert({ id, query: 1, kind: "in", start: 0, end: null, severity: "high", state, opened_at, detection: null, acknowledged_by: null, acknowledged_at: null, resolved_by: null, resolved_at: null });
const ids = (list: AlertList): string[] => list.shown().map((row) => row.id);

describe("the list of alerts", () => {
  it("is what was put last of each, as far as it fits, newest first", () => {
    const step = fc.tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 0, max: 3 }), fc.constantFrom<Alert["state"]>("new", "resolved"));
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const list = new AlertList((row) => row.state === "new");
        const last = new Map<string, Alert>();
        for (const [id, at, state] of steps) {
          list.put(one(id, at, state));
          last.set(String(id), one(id, at, state));
        }
        const wanted = [...last.values()].filter((row) => row.state === "new").sort((a, b) => b.opened_at - a.opened_at || Number(b.id) - Number(a.id));
        expect(ids(list)).toEqual(wanted.map((row) => row.id));
      }),
    );
  });

  it("holds new ones back while somebody points at it, and changes those on show", () => {
    const list = new AlertList((row) => row.state === "new");
    list.put(one(1, 1));
    list.put(one(2, 2), true);
    list.put(one(1, 1, "resolved"), true);
    expect([ids(list), list.waitingCount]).toEqual([[], 1]);
    list.release();
    expect([ids(list), list.waitingCount]).toEqual([["2"], 0]);
  });
});
