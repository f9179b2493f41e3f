/** Frames of the live socket, checked on arrival. */

import { alert, detection, moment, position, type Alert, type Detection, type Position } from "../lib/shapes";
import { anything, id, integer, isObject, list, nullable, number, otherwise, ParseFault, record, string, type Parser } from "../lib/parse";

export interface SnapshotFrame {
  type: "snapshot";
  feed: string;
  /** The outbox number of this state. */
  seq: number;
  detections: Detection[];
  alerts: Alert[];
  positions: Position[];
  /** The greatest event time of the feed. */
  clock: number | null;
  /** The detections contain all answers that began at or after it; null: all answers. */
  since: number | null;
}
export interface ChangesFrame {
  type: "changes";
  feed: string;
  /** Covers the numbers from..seq, both ends included. */
  from: number;
  seq: number;
  detections: Detection[];
  alerts: Alert[];
  /** Queries of which another version, or none, runs from now on. */
  queries: string[];
}
export interface PositionsFrame {
  type: "positions";
  feed: string;
  t: number | null;
  entities: Position[];
}
/** New queries that read the feed's history: how many rows, of how many. */
export interface CatchingUp {
  queries: string[];
  read: number;
  rows: number;
}
export interface StatusFrame {
  type: "status";
  feed: string;
  watermark: number | null;
  max_t: number | null;
  rate: number | null;
  job: unknown;
  catching_up: CatchingUp | null;
  /** When the newest rows were processed, by the wall clock; null before any. */
  updated_at: number | null;
  stalled_at: number | null;
  /** The names of connectors of the feed that keep failing or do not run. */
  failing_connectors: string[];
}
export interface ResyncFrame {
  type: "resync";
  feed: string;
}
export interface ErrorFrame {
  type: "error";
  code: string;
  message: string;
}
export type Frame = SnapshotFrame | ChangesFrame | PositionsFrame | StatusFrame | ResyncFrame | ErrorFrame;
export type FrameOf<T extends Frame["type"]> = Extract<Frame, { type: T }>;

const is =
  <T extends string>(name: T): Parser<T> =>
  () =>
    name;

const catchingUp: Parser<CatchingUp> = record({ queries: list(id), read: integer, rows: integer });
const positions = otherwise(list(position), []);
export const FRAMES: { [T in Frame["type"]]: Parser<FrameOf<T>> } = {
  snapshot: record({
    type: is("snapshot"),
    feed: string,
    seq: integer,
    detections: list(detection),
    alerts: list(alert),
    positions,
    clock: nullable(number),
    since: otherwise(nullable(number), null),
  }),
  changes: record({
    type: is("changes"),
    feed: string,
    from: integer,
    seq: integer,
    detections: list(detection),
    alerts: list(alert),
    queries: otherwise(list(id), []),
  }),
  positions: record({ type: is("positions"), feed: string, t: nullable(number), entities: positions }),
  status: record({
    type: is("status"),
    feed: string,
    watermark: nullable(number),
    max_t: nullable(number),
    rate: nullable(number),
    job: anything,
    catching_up: otherwise(nullable(catchingUp), null),
    updated_at: nullable(moment),
    stalled_at: nullable(moment),
    failing_connectors: otherwise(list(string), []),
  }),
  resync: record({ type: is("resync"), feed: string }),
  error: record({ type: is("error"), code: (value) => String(value), message: otherwise(string, "") }),
};

/** Parses the text of a message; throws ParseFault if it is not a valid frame. */
export function parseFrame(text: string): Frame {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ParseFault("", "JSON");
  }
  const type = isObject(value) ? value["type"] : undefined;
  if (typeof type !== "string" || !Object.hasOwn(FRAMES, type)) throw new ParseFault("/type", `one of ${Object.keys(FRAMES).join(", ")}`);
  return FRAMES[type as Frame["type"]](value);
}

export interface SubscribeMessage {
  type: "subscribe";
  feed: string;
  queries: string[] | null;
  bbox: [number, number, number, number] | null;
  since: number | null;
  from: number | null;
}
export type ClientMessage =
  | SubscribeMessage
  | { type: "view"; feed: string; bbox: [number, number, number, number] | null }
  | { type: "unsubscribe"; feed: string }
  | { type: "ack"; feed: string; seq: number };
