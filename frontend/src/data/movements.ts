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
  /** Sorted; samples before `from` give the positions at `from`. */
  t: Float64Array;
  x: Float64Array;
  y: Float64Array;
  /** Index into `entities`. */
  entity: Int32Array;
  /** Positions of samples: those of entity e, in order of time, stand from `starts[e]` up to `starts[e + 1]`. */
  order: Int32Array;
  starts: Int32Array;
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
  const entity = new Int32Array(data, at(3), count);
  const [order, starts] = byEntity(entity, header.entities.length);
  return {
    from: header.from,
    to: header.to,
    begin: header.begin,
    entities: header.entities,
    t: new Float64Array(data, at(0), count),
    x: new Float64Array(data, at(1), count),
    y: new Float64Array(data, at(2), count),
    entity,
    order,
    starts,
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

/** Positions of samples by entity, and in order of time: `order` and `starts` of Movements. */
function byEntity(entity: Int32Array, entities: number): [Int32Array, Int32Array] {
  const starts = new Int32Array(entities + 1);
  for (const e of entity) starts[e + 1]! += 1;
  for (let e = 0; e < entities; e++) starts[e + 1]! += starts[e]!;
  const [next, order] = [starts.slice(), new Int32Array(entity.length)];
  entity.forEach((e, n) => (order[next[e]!++] = n));
  return [order, starts];
}

/** Positions of entity `e`'s last samples among the first `count`: as many as hold `places` places, each unlike the one before. */
export function lastSamples({ x, y, starts, order }: Movements, e: number, count: number, places: number): Int32Array {
  const begin = starts[e]!;
  let end = starts[e + 1]!;
  while (end > begin && order[end - 1]! >= count) end--;
  let first = end;
  for (let known = 0; first > begin; first--) {
    const [one, after] = [order[first - 1]!, order[first]!];
    const isNew = first === end || x[one] !== x[after] || y[one] !== y[after];
    if (isNew && ++known > places) break;
  }
  return order.subarray(first, end);
}
