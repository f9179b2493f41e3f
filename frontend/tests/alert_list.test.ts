import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AlertList, compare, type Order } from "../src/data/alert_list";
import { addressOf, filtersOf, fitsView, viewFrom, type DeskView } from "../src/data/desk_view";
import { alert, type Alert } from "../src/lib/shapes";

const one = (id: number, start: number, state: Alert["state"] = "new"): Alert =>
  alert({
    id,
    query: 1,
    kind: "in",
    start,
    end: null,
    severity: start % 2 === 0 ? "high" : "low",
    state,
    opened_at: 0,
    detection: null,
    acknowledged_by: null,
    acknowledged_at: null,
    resolved_by: null,
    resolved_at: null,
  });
const ids = (list: AlertList): string[] => list.shown().map((row) => row.id);
const ORDERS: Order[] = ["newest", "oldest", "severity", "event", "-event"];

describe("the list of alerts", () => {
  it("has the last version of each matching alert, in the order of the desk", () => {
    const step = fc.tuple(fc.integer({ min: 1, max: 6 }), fc.constantFrom<Alert["state"]>("new", "resolved"));
    fc.assert(
      fc.property(fc.array(step), fc.constantFrom(...ORDERS), (steps, order) => {
        const list = new AlertList((row) => row.state === "new");
        list.clear(order);
        const last = new Map<string, Alert>();
        for (const [id, state] of steps) {
          const row = one(id, id % 3, state);
          list.put(row);
          last.set(row.id, row);
        }
        const wanted = [...last.values()].filter((row) => row.state === "new").sort((a, b) => compare(a, b, order));
        expect(ids(list)).toEqual(wanted.map((row) => row.id));
      }),
    );
  });

  it("moves no row while the pointer is on it, and updates rows in place", () => {
    const list = new AlertList((row) => row.state === "new");
    list.put(one(1, 1));
    list.put(one(2, 2), true);
    list.put(one(1, 1, "resolved"), true);
    expect([ids(list), list.shown()[0]?.state, list.waitingCount]).toEqual([["1"], "resolved", 1]);
    list.release();
    expect([ids(list), list.waitingCount, list.isHeld]).toEqual([["2"], 0, false]);
  });

  it("ignores alerts beyond the last loaded row, as others may be between them", () => {
    const list = new AlertList(() => true);
    list.append([one(9, 0), one(8, 0)], false);
    list.put(one(3, 0));
    list.put(one(10, 0));
    expect(ids(list)).toEqual(["10", "9", "8"]);
    list.append([one(7, 0), one(3, 0)], true);
    list.put(one(2, 0));
    expect(ids(list)).toEqual(["10", "9", "8", "7", "3", "2"]);
    expect([list.indexOf("7"), list.indexOf("99")]).toEqual([3, -1]);
  });
});

describe("a view of the desk", () => {
  it("survives a round trip through the address", () => {
    const address =
      "state=mine&order=severity&search=a+b&feed=city&query=3&region=5&entity=car&severity=high&since=24&muted=all&group=query";
    expect(addressOf(viewFrom(address)).split("&").sort()).toEqual(address.split("&").sort());
    expect(addressOf(viewFrom("state=nonsense&order=best&severity=x&since=9"))).toBe("");
    const between = "since=between&from=2026-11-20T08%3A00%3A00.000Z&until=2026-11-21T08%3A00%3A00.000Z";
    expect(addressOf(viewFrom(between))).toBe(between);
    expect(addressOf(viewFrom("since=between&from=yesterday"))).toBe("since=between");
    expect(addressOf(viewFrom("since=24&from=2026-11-20T08%3A00%3A00.000Z"))).toBe("since=24");
  });

  it("can have a span of time, open at a missing end", () => {
    const view = viewFrom("since=between&from=1970-01-01T00:00:02Z&until=1970-01-01T00:00:05Z");
    const search = filtersOf(view, 0);
    expect([search.get("opened_from"), search.get("opened_to")]).toEqual(["1970-01-01T00:00:02.000Z", "1970-01-01T00:00:05.000Z"]);
    const passing = (from: DeskView): number[] =>
      [1000, 2000, 4999, 5000].filter((opened_at) => fitsView({ ...one(1, 1), opened_at }, from, "ada", new Set(), 0));
    expect(passing(view)).toEqual([2000, 4999]);
    expect(passing(viewFrom("since=between&until=1970-01-01T00:00:02Z"))).toEqual([1000]);
    expect(filtersOf(viewFrom("since=between"), 0).get("opened_from")).toBe(null);
  });

  it("requests the same alerts from the server as it filters", () => {
    const view = viewFrom("state=ended&severity=low&search=CAR+1&since=1");
    const search = filtersOf(view, 7_200_000);
    expect([search.get("over"), search.get("severity"), search.get("search"), search.get("opened_from")]).toEqual([
      "true",
      "low",
      "CAR 1",
      "1970-01-01T01:00:00.000Z",
    ]);
    const row = { ...one(1, 1), entities: ["car 1"], over_at: 5, opened_at: 7_000_000 };
    const fits = (change: Partial<Alert>): boolean => fitsView({ ...row, ...change }, view, "ada", new Set(), 7_200_000);
    expect([
      fits({}),
      fits({ over_at: null }),
      fits({ state: "resolved" }),
      fits({ entities: ["car 2"] }),
      fits({ opened_at: 0 }),
      fits({ severity: "high" }),
    ]).toEqual([true, false, false, false, false, false]);
    expect(fitsView({ ...row, assignee: "ada" }, viewFrom("state=mine"), "ada", new Set(), 0)).toBe(true);
    expect(fitsView(row, viewFrom("region=4"), "ada", new Set(["2"]), 0)).toBe(false);
  });
});
