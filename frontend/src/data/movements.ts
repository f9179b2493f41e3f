/**
 * A span of the past as the server sends it for playback: samples of all entities in columns, in order of time. Times
 * are in the feed's unit.
 */

export interface Movements {
  /** Holds for instants t with from <= t < to. */
  from: number;
  to: number;
  /** The oldest time in the log; null in an empty one. */
  begin: number | null;
  entities: string[];
  /** Sorted; samples before `from` say where things were then. */
  t: Float64Array;
  x: Float64Array;
  y: Float64Array;
  /** Index into `entities`. */
  entity: Int32Array;
}

/** The parts of docs/api.md's binary answer. Throws RangeError when it is cut off. */
export function parseMovements(data: ArrayBuffer): Movements {
  const length = new DataView(data).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length))) as {
    from: number;
    to: number;
    begin: number | null;
    entities: string[];
    count: number;
  };
  const { count } = header;
  const at = (column: number): number => 4 + length + 8 * count * column;
  return {
    from: header.from,
    to: header.to,
    begin: header.begin,
    entities: header.entities,
    t: new Float64Array(data, at(0), count),
    x: new Float64Array(data, at(1), count),
    y: new Float64Array(data, at(2), count),
    entity: new Int32Array(data, at(3), count),
  };
}

/** How many samples have times up to `t`. */
export function countUpTo({ t: times }: Movements, t: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}
