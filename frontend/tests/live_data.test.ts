import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyChanges, applyPositions, applySnapshot, emptyLiveData, type LiveData } from "../src/data/live_data";
import { detection, type Alert, type Detection } from "../src/lib/shapes";
import type { ChangesFrame, SnapshotFrame } from "../src/live/frames";
import { alerts, detections } from "./strategies";

interface Step {
  detections: Detection[];
  alerts: Alert[];
}
const steps = fc.array(fc.record({ detections: fc.array(detections, { maxLength: 4 }), alerts: fc.array(alerts, { maxLength: 2 }) }), {
  maxLength: 12,
});

/** The server's side: the state after the first `seq` steps, computed directly. */
function snapshotAt(all: readonly Step[], seq: number): SnapshotFrame {
  const rows = new Map<string, Detection>();
  const opened = new Map<string, Alert>();
  for (const step of all.slice(0, seq)) {
    for (const row of step.detections) {
      if (row.weight > 0) rows.set(row.id, row);
      else rows.delete(row.id);
    }
    for (const row of step.alerts) opened.set(row.id, row);
  }
  return {
    type: "snapshot",
    feed: "city",
    seq,
    detections: [...rows.values()],
    alerts: [...opened.values()],
    positions: [],
    clock: null,
    since: null,
  };
}

function changesOf(all: readonly Step[], from: number, seq: number): ChangesFrame {
  const part = all.slice(from - 1, seq);
  return {
    type: "changes",
    feed: "city",
    from,
    seq,
    detections: part.flatMap((step) => step.detections),
    alerts: part.flatMap((step) => step.alerts),
    queries: [],
  };
}

function facts(data: LiveData): unknown {
  const byId = (a: { id: string }, b: { id: string }): number => a.id.localeCompare(b.id);
  return { seq: data.seq, detections: [...data.detections.values()].sort(byId), alerts: [...data.alerts.values()].sort(byId) };
}

function started(frame: SnapshotFrame): LiveData {
  const data = emptyLiveData("city");
  applySnapshot(data, frame);
  return data;
}

describe("live data", () => {
  it("reaches the later snapshot from an earlier one by frames cut anywhere, repeated and overlapping", () => {
    fc.assert(
      fc.property(steps, fc.nat(12), fc.array(fc.tuple(fc.nat(3), fc.nat(4)), { maxLength: 20 }), (all, at, cuts) => {
        const begin = Math.min(at, all.length);
        const data = started(snapshotAt(all, begin));
        for (const [back, length] of cuts) {
          const from = Math.max(1, data.seq! + 1 - back);
          const to = Math.min(all.length, from + length);
          if (to >= from) applyChanges(data, changesOf(all, from, to));
        }
        if (data.seq! < all.length) applyChanges(data, changesOf(all, data.seq! + 1, all.length));
        expect(facts(data)).toEqual(facts(started(snapshotAt(all, all.length))));
      }),
    );
  });

  it("names the number to resume from if a number is missing, and does not change", () => {
    fc.assert(
      fc.property(steps, (all) => {
        fc.pre(all.length >= 2);
        const data = started(snapshotAt(all, 0));
        const before = structuredClone(facts(data));
        expect(applyChanges(data, changesOf(all, 2, all.length))).toEqual({ kind: "gap", since: 0 });
        expect(facts(data)).toEqual(before);
      }),
    );
  });

  it("reports changes and removals once", () => {
    fc.assert(
      fc.property(steps, (all) => {
        const data = started(snapshotAt(all, 0));
        const seen = new Map<string, Detection>();
        for (let n = 1; n <= all.length; n++) {
          const outcome = applyChanges(data, changesOf(all, n, n));
          if (outcome.kind !== "applied") throw new Error(outcome.kind);
          for (const id of outcome.removed) seen.delete(id);
          for (const row of outcome.changed) seen.set(row.id, row);
        }
        expect(seen).toEqual(data.detections);
      }),
    );
  });

  it("reports the removal of an answer older than its snapshot", () => {
    const data = started(snapshotAt([], 0));
    const row = detection({ id: "old", query: 1, kind: "passed", entities: ["a"], start: 0, end: 4, weight: 0 });
    expect(
      applyChanges(data, { type: "changes", feed: "city", from: 1, seq: 1, detections: [row], alerts: [], queries: [] }),
    ).toMatchObject({ removed: ["old"], changed: [] });
  });

  it("treats an empty response to a resume as already known", () => {
    const data = started(snapshotAt([{ detections: [], alerts: [] }], 1));
    expect(applyChanges(data, { type: "changes", feed: "city", from: 2, seq: 1, detections: [], alerts: [], queries: [] })).toEqual({
      kind: "repeated",
    });
  });

  it("ignores changes before a snapshot and of another feed", () => {
    const data = emptyLiveData("city");
    expect(applyChanges(data, changesOf([{ detections: [], alerts: [] }], 1, 1)).kind).toBe("stray");
    expect(applySnapshot(data, { ...snapshotAt([], 0), feed: "strait" }).kind).toBe("stray");
    expect(data.seq).toBeNull();
  });

  it("drops answers that a new snapshot lacks", () => {
    fc.assert(
      fc.property(steps, fc.nat(12), (all, at) => {
        const data = started(snapshotAt(all, Math.min(at, all.length)));
        const before = new Set(data.detections.keys());
        const outcome = applySnapshot(data, snapshotAt(all, all.length));
        if (outcome.kind !== "applied") throw new Error(outcome.kind);
        expect(new Set(outcome.removed)).toEqual(new Set([...before].filter((id) => !data.detections.has(id))));
      }),
    );
  });

  it("keeps the newest position of an entity and advances the clock", () => {
    const data = emptyLiveData("city");
    applyPositions(data, {
      type: "positions",
      feed: "city",
      t: 9,
      entities: [
        ["a", 1, 1, 9],
        ["b", 2, 2, 8],
      ],
    });
    const taken = applyPositions(data, {
      type: "positions",
      feed: "city",
      t: 7,
      entities: [
        ["a", 5, 5, 7],
        ["b", 3, 3, 8],
      ],
    });
    expect(taken).toEqual([["b", 3, 3, 8]]);
    expect(data.positions.get("a")).toEqual(["a", 1, 1, 9]);
    expect(data.now).toBe(9);
  });
});
