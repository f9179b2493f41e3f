/** The periods that are completely loaded: disjoint, sorted, half-open. Pure. */

export type Period = readonly [from: number, to: number];

export class Coverage {
  private known: Period[] = [];

  clear(): void {
    this.known = [];
  }

  add(from: number, to: number): void {
    if (from >= to) return;
    const apart = this.known.filter(([a, b]) => b < from || a > to);
    const joined = this.known.filter(([a, b]) => b >= from && a <= to);
    apart.push([Math.min(from, ...joined.map(([a]) => a)), Math.max(to, ...joined.map(([, b]) => b))]);
    this.known = apart.sort((one, other) => one[0] - other[0]);
  }

  /** The parts of [from, to) that are not loaded. */
  gaps(from: number, to: number): Period[] {
    const found: Period[] = [];
    let at = from;
    for (const [a, b] of this.known) {
      if (b <= at) continue;
      if (a >= to) break;
      if (a > at) found.push([at, a]);
      at = b;
    }
    if (at < to) found.push([at, to]);
    return found;
  }

  has(t: number): boolean {
    return this.known.some(([a, b]) => a <= t && t < b);
  }
}
