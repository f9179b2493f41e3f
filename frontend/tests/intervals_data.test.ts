import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fluentName, pair, type Interval } from "../src/data/interval";
import { IntervalsData } from "../src/data/intervals_data";
import { detection, type Detection } from "../src/lib/shapes";
import { density, firstReaching, itemAt, keptScroll, makeRows, merge, outOfSight, type TimelineRow } from "../src/data/timeline_rows";
import { detections } from "./strategies";

function crossing(id: string, kind: string, start: number): Detection {
  return detection({ id, query: 1, kind, entities: ["a"], value: null, start, end: start, evidence: [], detected_at: 0 });
}

function brief(one: Interval): string {
  return `${one.kind} ${one.start}..${one.end ?? "open"} ${one.detections.join("+")}`;
}

const store = (rows: Iterable<Detection>): IntervalsData => {
  const data = new IntervalsData();
  for (const row of rows) data.put(row);
  return data;
};

describe("stays from in and out", () => {
  it("pairs each in with the next out and leaves the last one open", () => {
    expect(pair([crossing("1", "in", 3), crossing("2", "out", 7), crossing("3", "in", 9)]).map(brief)).toEqual([
      "stay 3..7 1+2",
      "stay 9..open 3",
    ]);
  });

  it("keeps an out whose in is older than the history as a mark", () => {
    expect(pair([crossing("1", "out", 4), crossing("2", "in", 6)]).map(brief)).toEqual(["out 4..4 1", "stay 6..open 2"]);
  });

  it("orders an in and an out at one moment as the state before allows", () => {
    expect(pair([crossing("1", "in", 5), crossing("2", "out", 5)]).map(brief)).toEqual(["stay 5..5 1+2"]);
    expect(pair([crossing("1", "in", 2), crossing("2", "in", 5), crossing("3", "out", 5)]).map(brief)).toEqual([
      "stay 2..5 1+3",
      "stay 5..open 2",
    ]);
  });

  it("uses every detection exactly once", () => {
    fc.assert(
      fc.property(fc.uniqueArray(detections, { selector: (row) => row.id }), (rows) => {
        const lane = rows.map((row) => ({ ...row, query: "1", entities: ["a"] }));
        expect(
          pair(lane)
            .flatMap((one) => one.detections)
            .sort(),
        ).toEqual(lane.map((row) => row.id).sort());
      }),
    );
  });
});

describe("the interval store", () => {
  it("does not depend on the order of changes", () => {
    fc.assert(
      fc.property(fc.array(detections, { maxLength: 14 }), (changes) => {
        const grown = new IntervalsData();
        const last = new Map<string, Detection>();
        for (const row of changes) {
          if (row.weight > 0) {
            grown.put(row);
            last.set(row.id, row);
          } else {
            grown.remove(row.id);
            last.delete(row.id);
          }
          // Read in between, so that something is there to be out of date.
          grown.of(row.query);
        }
        const fresh = store(last.values());
        for (const query of ["1", "2"]) {
          expect(grown.of(query).intervals.map(brief).sort()).toEqual(fresh.of(query).intervals.map(brief).sort());
          expect([...grown.of(query).start]).toEqual([...fresh.of(query).start]);
        }
        for (const id of last.keys()) expect(grown.find(id)?.detections).toContain(id);
      }),
    );
  });
});

describe("fluents, and what later events change", () => {
  const fluent = (id: string, kind: string, value: unknown, entities: string[], start: number, end: number | null): Detection =>
    detection({ id, query: 7, kind, value, entities, start, end, evidence: [], detected_at: 0 });

  it("has one lane for each value and grounding", () => {
    const data = new IntervalsData((query) => query === "7");
    data.put(fluent("1", "activity", "walking", ["a"], 0, 5));
    data.put(fluent("2", "activity", "running", ["a"], 5, 9));
    data.put(fluent("3", "activity", "walking", ["b"], 1, 2));
    data.put(fluent("4", "activity", "walking", ["a"], 9, null));
    data.put(fluent("5", "in", "true", ["a", "b"], 3, 8));
    const columns = data.of("7");
    const lanes = columns.lanes.map((name, lane) => [name, [...columns.lane].filter((one) => one === lane).length]);
    expect(lanes).toEqual([
      ["activity(a) = walking", 2],
      ["activity(a) = running", 1],
      ["activity(b) = walking", 1],
      ["in(a, b)", 1],
    ]);
    expect(data.find("5")).toMatchObject({ kind: "in", end: 8 });
  });

  it("names a value only if it is informative", () => {
    expect([fluentName("moving", true, ["a", "b"]), fluentName("level", 3, ["a"]), fluentName("alarm", "true", [])]).toEqual([
      "moving(a, b)",
      "level(a) = 3",
      "alarm",
    ]);
  });

  it("shows a retracted interval without counting it, until it is asserted again", () => {
    const data = new IntervalsData(() => true);
    const row = fluent("1", "moving", "true", ["a"], 0, 5);
    data.put(row);
    data.retract("1", 9);
    expect([data.of("7").intervals[0]?.isRetracted, data.of("7").count, data.find("1")?.isRetracted]).toEqual([true, 0, true]);
    data.put(row);
    expect([data.of("7").intervals.map((one) => one.isRetracted), data.of("7").count]).toEqual([[false], 1]);
    data.retract("1", 9);
    data.remove("1");
    expect(data.of("7").intervals).toEqual([]);
  });

  it("ends an open interval where it was retracted", () => {
    const data = new IntervalsData(() => true);
    data.put(fluent("1", "moving", "true", ["a"], 3, null));
    expect(data.retract("1", 9)).toMatchObject({ id: "1", end: 9 });
    expect(data.find("1")).toMatchObject({ start: 3, end: 9, isRetracted: true });
    expect([data.retract("1", 10), data.retract("unknown", 10)]).toEqual([null, null]);
  });

  it("adds earlier retractions, unless the answer holds again or is a crossing", () => {
    const data = new IntervalsData((query) => query === "7");
    data.put(fluent("1", "moving", "true", ["a"], 0, 5));
    data.putRetracted(fluent("1", "moving", "true", ["a"], 0, 5));
    data.putRetracted(fluent("2", "moving", "true", ["a"], 7, 8));
    data.putRetracted(crossing("3", "in", 2));
    expect([data.find("1")?.isRetracted, data.find("2")?.isRetracted, data.find("3")]).toEqual([false, true, null]);
    expect(data.of("7").count).toBe(1);
    data.put(fluent("2", "moving", "true", ["a"], 7, 9));
    expect(data.of("7").intervals.map((one) => [one.start, one.end, one.isRetracted])).toEqual([
      [0, 5, false],
      [7, 9, false],
    ]);
  });

  it("takes a retracted crossing out of its stay", () => {
    const data = store([crossing("1", "in", 2), crossing("2", "out", 6)]);
    data.retract("2", 9);
    expect(data.of("1").intervals.map(brief)).toEqual(["stay 2..open 1"]);
  });

  it("remembers the end that was reported before, but not that an open interval ended", () => {
    const data = new IntervalsData(() => true);
    data.put(fluent("1", "moving", "true", ["a"], 0, null));
    data.put(fluent("1", "moving", "true", ["a"], 0, 8));
    expect(data.find("1")?.revisedFrom).toBeNull();
    data.put(fluent("1", "moving", "true", ["a"], 0, 5));
    expect(data.find("1")).toMatchObject({ end: 5, revisedFrom: 8 });
  });
});

describe("rows of the timeline", () => {
  const rowsOf = (rows: Detection[]) => {
    const columns = store(rows.filter((row) => row.weight > 0)).of("1");
    return { columns, rows: makeRows([columns], { isExpanded: () => true, label: (query) => query, entities: null }) };
  };

  it("stands for every visible interval in exactly one rectangle", () => {
    fc.assert(
      fc.property(
        fc.array(detections, { maxLength: 14 }),
        fc.integer({ min: 0, max: 20 }),
        fc.integer({ min: 1, max: 40 }),
        (list, t0, span) => {
          const { columns, rows } = rowsOf(list);
          for (const row of rows) {
            let total = 0;
            merge(row, columns, t0, t0 + span, 60, 45, (left, right, _item, count) => {
              expect(right).toBeGreaterThan(left);
              total += count;
            });
            const visible = [...row.items].filter(
              (i) => columns.start[i]! <= t0 + span && Math.max(Math.min(columns.end[i]!, 45), columns.start[i]!) >= t0,
            );
            expect(total).toBe(visible.length);
          }
        },
      ),
    );
  });

  it("counts the intervals over each pixel", () => {
    fc.assert(
      fc.property(fc.array(detections, { maxLength: 14 }), (list) => {
        const { columns, rows } = rowsOf(list);
        const row = rows[0];
        fc.pre(row !== undefined);
        const counts = new Int32Array(41);
        const most = density(row, columns, 0, 40, 45, counts);
        const naive = Array.from(
          { length: 40 },
          (_, x) =>
            [...row.items].filter((i) => Math.floor(columns.start[i]!) <= x && Math.floor(Math.min(columns.end[i]!, 45)) >= x).length,
        );
        expect([...counts.slice(0, 40)]).toEqual(naive);
        expect(most).toBeGreaterThanOrEqual(Math.max(0, ...naive));
      }),
    );
  });

  it("finds what is under the pointer, and nothing that is not", () => {
    fc.assert(
      fc.property(fc.array(detections, { maxLength: 14 }), fc.integer({ min: 0, max: 45 }), (list, t) => {
        const { columns, rows } = rowsOf(list);
        for (const row of rows) {
          const hit = itemAt(row, columns, t, 0, 50);
          const inside = [...row.items].filter((i) => columns.start[i]! <= t && Math.min(columns.end[i]!, 50) >= t);
          if (hit === null) expect(inside).toEqual([]);
          else expect(inside).toContain(hit);
        }
      }),
    );
  });

  it("finds the nearest answer if the window has none", () => {
    fc.assert(
      fc.property(
        fc.array(detections, { maxLength: 14 }),
        fc.integer({ min: -10, max: 60 }),
        fc.integer({ min: 1, max: 20 }),
        (list, t0, span) => {
          const { columns, rows } = rowsOf(list);
          const found = outOfSight(rows, () => columns, t0, t0 + span);
          const all = columns.intervals.map((one) => ({ one, end: one.end ?? Infinity }));
          if (all.length === 0 || all.some(({ one, end }) => one.start <= t0 + span && end >= t0)) {
            expect(found).toBeNull();
          } else if (all.some(({ end }) => end < t0)) {
            expect(found!.end).toBe(Math.max(...all.filter(({ end }) => end < t0).map(({ end }) => end)));
          } else {
            expect(found!.start).toBe(Math.min(...all.map(({ one }) => one.start)));
          }
        },
      ),
    );
  });

  it("starts at the first interval that reaches into the window", () => {
    fc.assert(
      fc.property(fc.array(detections, { maxLength: 14 }), fc.integer({ min: 0, max: 45 }), (list, t) => {
        const { columns, rows } = rowsOf(list);
        for (const row of rows) expect([...row.items].slice(0, firstReaching(row, t)).every((i) => columns.end[i]! < t)).toBe(true);
      }),
    );
  });
});

describe("rows added above the visible ones", () => {
  const row = (query: string, top: number): TimelineRow => ({
    kind: "query",
    query,
    label: query,
    items: new Int32Array(),
    count: 0,
    reach: new Float64Array(),
    top,
    height: 28,
    isExpanded: false,
    hidden: 0,
  });
  const before = [row("a", 0), row("c", 28), row("d", 56), row("e", 84)];
  const after = [row("a", 0), row("b", 28), row("c", 56), row("d", 84), row("dd", 112), row("e", 140)];
  const kept = (scroll: number, query: string | null): number => keptScroll(before, after, { scroll, room: 56, query });

  it("keep the first visible row in place, and the top at the top", () => {
    expect([kept(0, null), kept(30, null), kept(56, null)]).toEqual([0, 58, 84]);
  });

  it("keep the rows of the selected query in place while they are visible", () => {
    expect([kept(30, "d"), kept(40, "e"), kept(0, "c"), kept(0, "e")]).toEqual([58, 96, 28, 0]);
  });

  it("are not affected by removed rows", () => {
    expect(keptScroll(before, [row("x", 0)], { scroll: 30, room: 56, query: "d" })).toBe(30);
  });
});
