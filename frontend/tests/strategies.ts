/**
 * Small adversarial worlds for properties: few ids and times, so that ties, repeats and retractions
 * happen.
 */

import fc from "fast-check";
import { alert, detection, type Alert, type Detection } from "../src/lib/shapes";

export const detections: fc.Arbitrary<Detection> = fc
  .record({
    n: fc.integer({ min: 1, max: 6 }),
    query: fc.integer({ min: 1, max: 2 }),
    kind: fc.constantFrom("in", "out", "passed"),
    entity: fc.constantFrom("a", "b"),
    start: fc.integer({ min: 0, max: 40 }),
    length: fc.option(fc.integer({ min: 0, max: 9 })),
    weight: fc.constantFrom(1, 1, 0, -1),
  })
  .map(({ n, query, kind, entity, start, length, weight }) =>
    detection({
      id: `d${n}`,
      query,
      version: 1,
      kind,
      entities: [entity],
      value: null,
      start,
      end: length === null ? null : start + length,
      evidence: [],
      weight,
      backfill: false,
      detected_at: 0,
    }),
  );

export const alerts: fc.Arbitrary<Alert> = fc
  .record({ n: fc.integer({ min: 1, max: 3 }), state: fc.constantFrom("new", "acknowledged", "resolved") })
  .map(({ n, state }) =>
    alert({
      id: n,
      query: 1,
      kind: "in",
      entities: ["a"],
      start: 0,
      end: 0,
      severity: "low",
      state,
      opened_at: "2026-11-21T10:00:00Z",
      detection: `d${n}`,
    }),
  );
