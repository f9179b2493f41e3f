/** The alerts that the page knows, in the order of the desk. Pure. */

import { SEVERITIES, type Alert } from "../lib/shapes";

export type Order = "newest" | "oldest" | "severity" | "event" | "-event";

/** The sort keys of the server; they never change for an alert, so a row keeps its place. */
function keys(row: Alert, order: Order): readonly [number, number] {
  const id = Number(row.id);
  if (order === "newest") return [-id, 0];
  if (order === "oldest") return [id, 0];
  if (order === "severity") return [-SEVERITIES.indexOf(row.severity), -id];
  return order === "event" ? [-row.start, -id] : [row.start, id];
}

export function compare(a: Alert, b: Alert, order: Order): number {
  const [first, second] = [keys(a, order), keys(b, order)];
  return first[0] - second[0] || first[1] - second[1];
}

export class AlertList {
  private readonly rows = new Map<string, Alert>();
  /** Waiting rows by id, with whether `release` would make each visible. */
  private readonly held = new Map<string, boolean>();
  private waiting = 0;
  private sorted: Alert[] = [];
  private order: Order = "newest";
  /** The last row loaded without a gap; null: all matching rows are loaded. */
  private horizon: Alert | null = null;

  /** `fits`: whether a row passes the reader's filters; call `clear` when they change. */
  constructor(private readonly fits: (row: Alert) => boolean) {}

  get(id: string): Alert | undefined {
    return this.rows.get(id);
  }

  /**
   * `isHeld`: the list does not change until `release`, so that no row moves while the pointer is
   * on it; visible rows are updated in place.
   */
  put(row: Alert, isHeld = false): void {
    this.rows.set(row.id, row);
    const at = this.place(row);
    const isShown = this.sorted[at]?.id === row.id;
    const isWanted = this.fits(row);
    if (isShown && (isWanted || isHeld)) this.sorted[at] = row;
    else if (isShown) this.sorted.splice(at, 1);
    else if (isWanted && !isHeld && this.isLoaded(row)) this.sorted.splice(at, 0, row);
    if (this.held.has(row.id) || (isHeld && isShown !== isWanted)) this.hold(row.id, isHeld && !isShown && isWanted && this.isLoaded(row));
  }

  clear(order: Order = this.order): void {
    this.rows.clear();
    this.forgetHeld();
    this.sorted = [];
    this.order = order;
    this.horizon = null;
  }

  /** `isLast`: there are no further matching rows. */
  append(rows: readonly Alert[], isLast: boolean): void {
    this.horizon = null;
    for (const row of rows) this.put(row);
    this.horizon = isLast ? null : (rows.at(-1) ?? null);
    for (const id of this.held.keys())
      this.hold(id, this.indexOf(id) < 0 && this.fits(this.rows.get(id)!) && this.isLoaded(this.rows.get(id)!));
  }

  release(): void {
    const ids = [...this.held.keys()];
    this.forgetHeld();
    for (const id of ids) this.put(this.rows.get(id)!);
  }

  /**
   * The number of new rows that `release` would show. Counted on arrival, because thousands may
   * wait while the pointer is on a row.
   */
  get waitingCount(): number {
    return this.waiting;
  }

  /** Whether changes are held back because the pointer is on the list. */
  get isHeld(): boolean {
    return this.held.size > 0;
  }

  shown(): readonly Alert[] {
    return this.sorted;
  }

  indexOf(id: string): number {
    const row = this.rows.get(id);
    if (row === undefined) return -1;
    const at = this.place(row);
    return this.sorted[at]?.id === id ? at : -1;
  }

  private hold(id: string, isNews: boolean): void {
    this.waiting += Number(isNews) - Number(this.held.get(id) ?? false);
    this.held.set(id, isNews);
  }

  private forgetHeld(): void {
    this.held.clear();
    this.waiting = 0;
  }

  private isLoaded(row: Alert): boolean {
    return this.horizon === null || compare(row, this.horizon, this.order) <= 0;
  }

  /**
   * The index of the row, or where it would be inserted: a binary search, because thousands arrive
   * while the reader scrolls.
   */
  private place(row: Alert): number {
    let low = 0;
    let high = this.sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compare(this.sorted[middle]!, row, this.order) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
