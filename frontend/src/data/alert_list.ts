/** The alerts that the page knows, newest first. Pure. */

import type { Alert } from "./shapes";

export class AlertList {
  private readonly rows = new Map<string, Alert>();
  private readonly waiting = new Set<string>();
  private sorted: Alert[] | null = null;

  /** `fits`: whether the reader's filters let a row through; `refresh` after they change. */
  constructor(private readonly fits: (row: Alert) => boolean) {}

  get(id: string): Alert | undefined {
    return this.rows.get(id);
  }

  /** `isHeld`: one that is new waits for `release`, so that no row moves while somebody points at the list. */
  put(row: Alert, isHeld = false): void {
    if (isHeld && !this.rows.has(row.id)) this.waiting.add(row.id);
    this.rows.set(row.id, row);
    this.sorted = null;
  }

  clear(): void {
    this.rows.clear();
    this.waiting.clear();
    this.sorted = null;
  }

  release(): void {
    this.waiting.clear();
    this.sorted = null;
  }

  refresh(): void {
    this.sorted = null;
  }

  /** New ones that `release` would show. */
  get waitingCount(): number {
    let count = 0;
    for (const id of this.waiting) if (this.fits(this.rows.get(id)!)) count += 1;
    return count;
  }

  /** Those on show, the one that was opened last first. */
  shown(): readonly Alert[] {
    this.sorted ??= [...this.rows.values()].filter((row) => this.fits(row) && !this.waiting.has(row.id)).sort((a, b) => b.opened_at - a.opened_at || b.id.localeCompare(a.id, "en", { numeric: true }));
    return this.sorted;
  }
}
