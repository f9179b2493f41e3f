import { describe, expect, it } from "vitest";
import { dispatch, type Handlers } from "../src/live/dispatch";
import { parseFrame, type Frame } from "../src/live/frames";
import { ParseFault } from "../src/lib/parse";

const DETECTION = {
  id: "9f86",
  query: 3,
  version: 2,
  kind: "stayed_in",
  entities: ["car-1"],
  value: null,
  start: 5,
  end: null,
  evidence: [{ variable: null, entity: "car-1", t: 5, x: 11.5, y: 48.1 }],
  weight: 1,
  backfill: false,
  detected_at: 9,
};
const ALERT = {
  id: 11,
  query: 3,
  kind: "stayed_in",
  entities: ["car-1"],
  start: 5,
  end: null,
  severity: "low",
  state: "new",
  opened_at: "2026-11-21T10:00:00Z",
  detection: "9f86",
  acknowledged_by: null,
};
const GOOD: Record<Frame["type"], object> = {
  snapshot: {
    type: "snapshot",
    feed: "city",
    seq: 4,
    detections: [DETECTION],
    alerts: [ALERT],
    positions: [["car-1", 11.5, 48.1, 7]],
    clock: 7,
  },
  changes: { type: "changes", feed: "city", from: 5, seq: 6, detections: [], alerts: [] },
  positions: { type: "positions", feed: "city", t: 8, entities: [["car-1", 11.5, 48.1, 8]] },
  status: {
    type: "status",
    feed: "city",
    watermark: 6,
    max_t: 8,
    rate: 900.5,
    job: "running",
    catching_up: { queries: [3], read: 10, rows: 20 },
    updated_at: "2026-11-27T14:05:00+00:00",
    stalled_at: null,
    failing_connectors: ["mast"],
  },
  resync: { type: "resync", feed: "city" },
  error: { type: "error", code: "bad-frame", message: "no" },
};

describe("frames", () => {
  it.each(Object.values(GOOD))("takes %j", (frame) => {
    expect(parseFrame(JSON.stringify(frame))).toMatchObject({ type: (frame as { type: string }).type });
  });

  it("gives ids as text, whatever their type", () => {
    const frame = parseFrame(JSON.stringify(GOOD.snapshot));
    expect(frame.type === "snapshot" && [frame.detections[0]?.query, frame.alerts[0]?.id]).toEqual(["3", "11"]);
  });

  it.each([
    ["no JSON", "{"],
    ["an unknown type", '{"type":"party"}'],
    ["a name of every object", '{"type":"constructor"}'],
    ["a missing number", '{"type":"changes","feed":"city","from":1,"detections":[],"alerts":[]}'],
    ["a fraction for a number", '{"type":"changes","feed":"city","from":1,"seq":1.5,"detections":[],"alerts":[]}'],
    ["a detection without a start", JSON.stringify({ ...GOOD.changes, detections: [{ ...DETECTION, start: null }] })],
    ["an unknown severity", JSON.stringify({ ...GOOD.changes, alerts: [{ ...ALERT, severity: "meh" }] })],
  ])("refuses %s", (_what, text) => {
    expect(() => parseFrame(text)).toThrow(ParseFault);
  });

  it("says where the fault is", () => {
    const text = JSON.stringify({ ...GOOD.changes, detections: [{ ...DETECTION, evidence: [{ ...DETECTION.evidence[0], t: "soon" }] }] });
    expect(() => parseFrame(text)).toThrow("/detections/0/evidence/0/t");
  });

  it("are passed only to the handler of their type", () => {
    const seen: string[] = [];
    const note = (frame: Frame): unknown => seen.push(frame.type);
    const handlers: Handlers = { snapshot: note, changes: note, positions: note, status: note, resync: note, error: note };
    for (const frame of Object.values(GOOD)) dispatch(handlers, parseFrame(JSON.stringify(frame)));
    expect(seen).toEqual(Object.keys(GOOD));
  });
});
