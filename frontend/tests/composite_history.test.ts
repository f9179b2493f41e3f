import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fromDocument, toDocument, withRoot, type CompositeEntries } from "../src/data/composite_data";
import { CompositeHistory } from "../src/data/composite_history";
import { grouped, moved, named, outline, removed, turned, type PatternNode } from "../src/data/composite_tree";
import { feed } from "../src/lib/shapes";

const YARD = feed({ name: "yard", crs: "planar", time: "ms", columns: { reader: "string" } });
type Change = (root: PatternNode, id: number) => PatternNode;
/** Some of them change nothing, depending on the node. */
const CHANGES: Change[] = [
  (root, id) => moved(root, id, -1),
  (root, id) => moved(root, id, 1),
  (root, id) => grouped(root, id),
  (root, id) => removed(root, id),
  (root, id) => named(root, id, "A"),
  (root, id) => turned(root, id, "and", 10),
  (root) => root,
];

function shown(entries: CompositeEntries): string {
  return JSON.stringify(toDocument(entries));
}

describe("undoing changes of a pattern", () => {
  it("passes over a command that changed nothing", () => {
    const history = new CompositeHistory();
    const first = fromDocument({}, YARD);
    const [, a, b] = outline(first.root!);
    history.remember(first, a!.node.id);
    const second = withRoot(first, moved(first.root!, b!.node.id, -1));
    history.remember(second, b!.node.id);
    const unchanged = withRoot(second, moved(second.root!, b!.node.id, -1));
    expect(history.canUndo(unchanged)).toBe(true);
    expect(history.undo(unchanged)?.entries.root).toBe(first.root);
  });

  it("is not offered when all that was done changed nothing", () => {
    const history = new CompositeHistory();
    const entries = fromDocument({}, YARD);
    const typed = { ...entries, written: "A : B :" };
    history.remember(entries, 0, "text");
    expect(history.canUndo(typed)).toBe(true);
    history.remember(typed, 0, "text");
    expect(history.canUndo(entries)).toBe(false);
    expect(history.undo(entries)).toBeNull();
  });

  it("changes something at each press, back to the beginning", () => {
    fc.assert(
      fc.property(fc.array(fc.record({ change: fc.nat(CHANGES.length - 1), at: fc.nat(20) }), { maxLength: 30 }), (steps) => {
        const history = new CompositeHistory();
        let entries = fromDocument({}, YARD);
        const begun = shown(entries);
        for (const { change, at } of steps) {
          const rows = outline(entries.root!);
          const { id } = rows[at % rows.length]!.node;
          history.remember(entries, id);
          entries = withRoot(entries, CHANGES[change]!(entries.root!, id));
        }
        while (history.canUndo(entries)) {
          const before = shown(entries);
          entries = { ...entries, ...history.undo(entries)!.entries };
          expect(shown(entries)).not.toBe(before);
        }
        expect(shown(entries)).toBe(begun);
      }),
    );
  });
});
