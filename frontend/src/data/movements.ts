/**
 * A span of the past for playback: samples of all entities in columns, in order of time. Times
 * are in the feed's unit.
 */

export interface Movements {
  /** Valid for instants t with from <= t < to. */
  from: number;
  to: number;
  /** The oldest time in the log; null if it is empty. */
  begin: number | null;
  entities: string[];
  /** Sorted; samples before `from` give the positions at `from`. */
  t: Float64Array;
  x: Float64Array;
  y: Float64Array;
  /** Index into `entities`. */
  entity: Int32Array;
  /**
   * Indices of samples: those of entity e, in order of time, are at `starts[e]` to
   * `starts[e + 1]`, the end exclusive.
   */
  order: Int32Array;
  starts: Int32Array;
}

/** Decodes the binary answer of docs/api.md. Throws RangeError if it is truncated. */
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

/** How many samples have times up to and including `t`. */
export function countUpTo({ t: times }: Movements, t: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Indices of samples by entity, in order of time: `order` and `starts` of Movements. */
function byEntity(entity: Int32Array, entities: number): [Int32Array, Int32Array] {
  const starts = new Int32Array(entities + 1);
  for (const e of entity) starts[e + 1]! += 1;
  for (let e = 0; e < entities; e++) starts[e + 1]! += starts[e]!;
  const [next, order] = [starts.slice(), new Int32Array(entity.length)];
  entity.forEach((e, n) => (order[next[e]!++] = n));
  return [order, starts];
}

/**
 * Indices of entity `e`'s last samples among the first `count`: as many as give `places` positions,
 * each different from the previous.
 */
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
