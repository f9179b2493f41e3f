/** The pattern before each change, to undo the changes one by one. */

import { toDocument, type CompositeEntries } from "./composite_data";
import { patternText } from "./composite_tree";

/** Steps that can be undone. */
const REMEMBERED = 100;

export interface Earlier {
  chosen: number;
  entries: Pick<CompositeEntries, "root" | "primitives" | "written">;
}

interface Step extends Earlier {
  where: string;
  shown: string;
}

export class CompositeHistory {
  private readonly past: Step[] = [];

  /**
   * Called before a change. Changes with the same `where`, one after the other, such as typed
   * letters, are undone together.
   */
  remember(entries: CompositeEntries, chosen: number, where = ""): void {
    if (where !== "" && this.past.at(-1)?.where === where) return;
    const { root, primitives, written } = entries;
    this.past.push({ where, chosen, entries: { root, primitives, written }, shown: shownOf(entries) });
    if (this.past.length > REMEMBERED) this.past.shift();
  }

  canUndo(now: CompositeEntries): boolean {
    const shown = shownOf(now);
    return this.past.some((one) => one.shown !== shown);
  }

  /**
   * The pattern before the last change that left something different; null if there is none. A
   * command may change nothing, and typed letters may be deleted again.
   */
  undo(now: CompositeEntries): Earlier | null {
    const shown = shownOf(now);
    for (let step = this.past.pop(); step !== undefined; step = this.past.pop()) if (step.shown !== shown) return step;
    return null;
  }
}

/** The visible pattern, as text. */
function shownOf(entries: CompositeEntries): string {
  const { pattern, primitives } = toDocument(entries);
  return JSON.stringify([entries.root === null ? null : patternText(entries.root), pattern, primitives]);
}
