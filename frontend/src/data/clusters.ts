/** Clusters of entities that would overlap on the screen. Pure. */

/**
 * How entities that are close together are drawn: `auto` clusters them where most would overlap.
 */
export const GROUPINGS = ["auto", "each", "clusters"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** Entities drawn as one mark. */
export interface Cluster {
  /** The base coordinates of the mark. */
  px: number;
  py: number;
  /** Indices in EntitiesData. */
  members: number[];
  /** All are at the same point: no zoom separates them. */
  isStack: boolean;
}

export interface Gathered {
  single: Int32Array;
  clusters: Cluster[];
}

interface Places {
  px: Float64Array;
  py: Float64Array;
  isMoving(i: number): boolean;
}

/** CSS pixels: the cell of a cluster, and the cell in which two entities count as overlapping. */
const [CLUSTER_PX, HIDDEN_PX] = [64, 8];
/** Cells with fewer entities are drawn without a cluster. */
const LEAST_MEMBERS = 3;
/** `auto` clusters from this many entities on, if this share of them overlaps another. */
const [CROWD, CROWDED_SHARE] = [200, 0.6];

/** `k`: CSS pixels per unit of base coordinates. */
export function gathered(visible: Int32Array, places: Places, k: number, grouping: Grouping): Gathered {
  const isCrowded = grouping === "clusters" || (grouping === "auto" && isDense(visible, places, k));
  return isCrowded ? cells(visible, places, k) : stacks(visible, places);
}

function isDense(visible: Int32Array, { px, py }: Places, k: number): boolean {
  if (visible.length < CROWD) return false;
  const taken = new Set<number>();
  for (const i of visible) taken.add(cellOf(px[i]! * k, py[i]! * k, HIDDEN_PX));
  return visible.length - taken.size > CROWDED_SHARE * visible.length;
}

/**
 * The grid is fixed to the world, not to the window: clusters do not
 * change while the map is panned.
 */
function cells(visible: Int32Array, { px, py }: Places, k: number): Gathered {
  const found = new Map<number, number[]>();
  for (const i of visible) add(found, cellOf(px[i]! * k, py[i]! * k, CLUSTER_PX), i);
  return divided(found, LEAST_MEMBERS, (members) => ({
    px: members.reduce((sum, i) => sum + px[i]!, 0) / members.length,
    py: members.reduce((sum, i) => sum + py[i]!, 0) / members.length,
    members,
    isStack: members.every((i) => px[i] === px[members[0]!] && py[i] === py[members[0]!]),
  }));
}

/** Entities at exactly the same point, such as tags at a reader. */
function stacks(visible: Int32Array, places: Places): Gathered {
  const { px, py } = places;
  const found = new Map<string | number, number[]>();
  for (const i of visible) add(found, places.isMoving(i) ? -1 - i : `${px[i]!} ${py[i]!}`, i);
  return divided(found, 2, (members) => ({ px: px[members[0]!]!, py: py[members[0]!]!, members, isStack: true }));
}

function divided<Key>(found: Map<Key, number[]>, least: number, make: (members: number[]) => Cluster): Gathered {
  const single: number[] = [];
  const clusters: Cluster[] = [];
  for (const members of found.values()) {
    if (members.length < least) single.push(...members);
    else clusters.push(make(members));
  }
  return { single: Int32Array.from(single), clusters };
}

function add<Key>(found: Map<Key, number[]>, key: Key, i: number): void {
  const members = found.get(key);
  if (members === undefined) found.set(key, [i]);
  else members.push(i);
}

function cellOf(x: number, y: number, size: number): number {
  return Math.floor(x / size) * 0x8000000 + Math.floor(y / size);
}
