import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  boundsWords,
  evaluation,
  freshName,
  fromDocument,
  isName,
  leavesById,
  primitiveWords,
  toDocument,
  undefinedNames,
  withPrimitive,
  withRead,
  withRenamed,
  withRoot,
} from "../src/data/composite_data";
import {
  canGroup,
  canMove,
  fromTree,
  grouped,
  joined,
  leaf,
  linked,
  moved,
  named,
  namesIn,
  outline,
  patternText,
  removed,
  rowOf,
  toTree,
  turned,
  withSpan,
  OPERATORS,
  type PatternNode,
} from "../src/data/composite_tree";
import { feed } from "../src/lib/shapes";
import { isObject } from "../src/lib/parse";

const WAREHOUSE = feed({ name: "warehouse", crs: "planar", time: "ms", columns: { reader: "string", weight: "float" } });
const NAMES = ["A", "B", "C_1", "SHELF"];
const length = fc.oneof(fc.integer({ min: 0, max: 9_000_000 }), fc.constantFrom("PT5M", "P2D", "PT0.5S"));

/** Trees as the engine writes them: two operands each. */
const { tree } = fc.letrec<{ tree: unknown }>((tie) => {
  const two = fc.tuple(tie("tree"), tie("tree"));
  return {
    tree: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.constantFrom(...NAMES),
      two.map((and) => ({ and })),
      two.map((or) => ({ or })),
      fc.record(
        { sequence: two, without: tie("tree"), bounds: fc.tuple(fc.option(length), fc.option(length)) },
        { requiredKeys: ["sequence"] },
      ),
      fc.record({ interval: two, span: length }),
      fc.record({ absence: two, span: length }),
      fc.record({ before: two, span: length }),
      fc.record({ around: two, span: length }),
    ),
  };
});
const roots = tree.map((value) => fromTree(value)!);
const row = fc.nat({ max: 40 });

/** The grammar of docs/specification.md 5.5, read as plainly as can be. */
function parsed(text: string): unknown {
  const words = text.match(/\w+(?:\.\w+)?|[():;![\],]/g) ?? [];
  let at = 0;
  const next = (word?: string): string => {
    const found = words[at++];
    if (found === undefined || (word !== undefined && found !== word)) throw new Error(`"${text}": ${word ?? "a word"} expected at ${at}`);
    return found;
  };
  const spanOf = (word: string): unknown => (word === "null" ? null : /^\d/.test(word) ? Number(word) : word);
  const boxed = (): unknown => {
    next("[");
    const span = spanOf(next());
    next("]");
    return span;
  };
  const bounds = (): Record<string, unknown> => {
    if (words[at] !== "[") return {};
    next();
    const low = spanOf(next());
    next(",");
    const high = spanOf(next());
    next("]");
    return { bounds: [low, high] };
  };
  const atom = (): unknown => {
    if (words[at] !== "(") return next();
    next();
    const inner = either();
    next(")");
    return inner;
  };
  const notBefore = (): unknown => {
    next("!");
    const without = atom();
    const span = boxed();
    next(":");
    return { before: [without, atom()], span };
  };
  const chain = (): unknown => {
    let left = words[at] === "!" ? notBefore() : atom();
    for (;;) {
      if (words[at] === ";") {
        next();
        const span = boxed();
        left = { interval: [left, atom()], span };
      } else if (words[at] === ":") {
        next();
        if (words[at] !== "!") {
          const said = bounds();
          left = { sequence: [left, atom()], ...said };
          continue;
        }
        next();
        const without = atom();
        if (words[at] === "[") left = { absence: [left, without], span: boxed() };
        else {
          next(":");
          const said = bounds();
          left = { sequence: [left, atom()], without, ...said };
        }
      } else return left;
    }
  };
  const listOf = (word: string, key: string, inner: () => unknown): unknown => {
    let left = inner();
    while (words[at] === word) {
      next();
      const part = inner();
      // `p AND !q[D]`: the part names only what must not come.
      left = isObject(part) && "not" in part ? { around: [left, part["not"]], span: part["span"] } : { [key]: [left, part] };
    }
    return left;
  };
  /**
   * `!q[D]` at the end of an AND is what must not come around; before a `:` it
   * is the head of a sequence.
   */
  const conjunct = (): unknown => {
    const from = at;
    if (words[at] !== "!") return chain();
    next();
    const without = atom();
    const span = boxed();
    if (words[at] !== ":") return { not: without, span };
    at = from;
    return chain();
  };
  const both = (): unknown => listOf("AND", "and", conjunct);
  const either = (): unknown => listOf("OR", "or", both);
  const found = either();
  if (at < words.length) throw new Error(`"${text}" goes on at ${at}`);
  return found;
}

/** Every change of the editor, about the node in some row. */
function change(root: PatternNode, kind: number, at: number): PatternNode {
  const rows = outline(root);
  const { id } = rows[at % rows.length]!.node;
  if (kind < OPERATORS.length) return joined(root, id, OPERATORS[kind]!, leaf("NEW"), "PT1M");
  const others = [
    removed,
    grouped,
    (one: PatternNode, node: number) => moved(one, node, 1),
    (one: PatternNode, node: number) => moved(one, node, -1),
    (one: PatternNode, node: number) => turned(one, node, OPERATORS[at % OPERATORS.length]!, 7),
    (one: PatternNode, node: number) => linked(one, node, { without: leaf("NEW"), bounds: [0, "PT9S"] }),
  ];
  return others[kind - OPERATORS.length]!(root, id);
}
const changes = fc.array(fc.tuple(fc.integer({ min: 0, max: OPERATORS.length + 5 }), row), { maxLength: 8 });

describe("a pattern's tree", () => {
  it("is written as the JSON it was read from", () => {
    fc.assert(
      fc.property(tree, (value) => {
        expect(toTree(fromTree(value)!)).toEqual(value);
      }),
    );
  });

  it("is written as an equivalent text", () => {
    fc.assert(
      fc.property(tree, (value) => {
        expect(parsed(patternText(fromTree(value)!))).toEqual(value);
      }),
    );
  });

  it("can be written in both forms after any change", () => {
    fc.assert(
      fc.property(roots, changes, (root, steps) => {
        const after = steps.reduce((one, [kind, at]) => change(one, kind, at), root);
        expect(parsed(patternText(after))).toEqual(toTree(after));
        expect(patternText(fromTree(toTree(after))!)).toBe(patternText(after));
        const ids = outline(after).map(({ node }) => node.id);
        expect(new Set(ids).size).toBe(ids.length);
        for (const { node } of outline(after)) expect(node.op === "primitive" ? 0 : node.parts.length).not.toBe(1);
      }),
    );
  });

  it("gets a joined part next to the node and loses it again", () => {
    fc.assert(
      fc.property(roots, row, fc.constantFrom(...OPERATORS), (root, at, op) => {
        const rows = outline(root);
        const fresh = leaf("NEW");
        const there = joined(root, rows[at % rows.length]!.node.id, op, fresh, 5);
        expect(rowOf(there, fresh.id)).not.toBeNull();
        expect(patternText(removed(there, fresh.id))).toBe(patternText(root));
      }),
    );
  });

  it("moves a part there and back", () => {
    fc.assert(
      fc.property(roots, row, (root, at) => {
        const rows = outline(root);
        const chosen = rows[at % rows.length]!;
        // Brackets at the beginning have no meaning, so they cannot be restored.
        const isKept = canMove(chosen, 1) && chosen.parent!.parts.every(({ op }) => op !== chosen.parent!.op);
        if (isKept) expect(patternText(moved(moved(root, chosen.node.id, 1), chosen.node.id, -1))).toBe(patternText(root));
        const names = (one: PatternNode): string[] =>
          outline(one)
            .map(({ node }) => node.name)
            .filter((name) => name !== "")
            .sort();
        expect(names(moved(root, chosen.node.id, 1))).toEqual(names(root));
      }),
    );
  });

  it("takes more than two operands from the left", () => {
    expect(patternText(fromTree({ sequence: ["A", "B", "C"] })!)).toBe("A : B : C");
    expect(toTree(fromTree({ and: [{ and: ["A", "B"] }, "C", "D"] })!)).toEqual({ and: [{ and: [{ and: ["A", "B"] }, "C"] }, "D"] });
    expect(fromTree({ and: ["A"] })).toBeNull();
    expect(fromTree(7)).toBeNull();
  });

  it("grows from one event to a theft", () => {
    const shelf = leaf("SHELF");
    const exit = leaf("EXIT");
    const checkout = leaf("CHECKOUT");
    const theft = linked(joined(shelf, shelf.id, "sequence", exit), exit.id, { without: checkout, bounds: [0, "PT10M"] });
    expect(patternText(theft)).toBe("SHELF : !CHECKOUT :[0,PT10M] EXIT");
    expect(outline(theft).map(({ node, role, level }) => [node.name, role, level])).toEqual([
      ["", "root", 1],
      ["SHELF", "first", 2],
      ["CHECKOUT", "without", 2],
      ["EXIT", "then", 2],
    ]);
    expect(patternText(removed(theft, checkout.id))).toBe("SHELF :[0,PT10M] EXIT");
    expect(patternText(removed(theft, exit.id))).toBe("SHELF");
    expect(patternText(named(theft, shelf.id, "EXIT"))).toBe("EXIT : !CHECKOUT :[0,PT10M] EXIT");
    expect(patternText(withSpan(turned(theft, theft.id, "interval", "PT1M"), theft.id, 5))).toBe("SHELF ;[5] EXIT");
  });

  it("groups a part with the next", () => {
    const root = fromTree({ sequence: ["A", "B", "C"] })!;
    const [, a, b] = outline(root);
    expect([canGroup(a!), canGroup(b!)]).toEqual([false, true]);
    expect(patternText(grouped(root, b!.node.id))).toBe("A : (B : C)");
  });
});

const where = fc.constantFrom<unknown[]>(
  [["reader", "=", "dock-1"]],
  [
    ["weight", ">", 3],
    ["reader", "in", ["a", "b"]],
  ],
);
const region = fc.constantFrom<object>(
  { region: "Docks" },
  { center: [1, 2], radius: 5 },
  {
    type: "Polygon",
    coordinates: [
      [
        [0, 0],
        [1, 0],
        [1, 1],
        [0, 0],
      ],
    ],
  },
);
const meaning = fc.record(
  {
    where,
    prefix: fc.constantFrom({ entity: "urn:" }, { entity: "a", reader: "" }),
    inside: region,
    outside: region,
    note: fc.constant(1),
  },
  { requiredKeys: [] },
);
const documents = fc
  .record(
    {
      pattern: tree.filter((value) => typeof value === "object"),
      meanings: fc.tuple(meaning, meaning, meaning, meaning),
      per: fc.constantFrom("entity", null),
      within: length,
      where,
      name: fc.constant("Theft"),
    },
    { requiredKeys: ["pattern", "meanings", "per", "within"] },
  )
  .map(({ pattern, meanings, ...rest }) => {
    const used = namesIn(fromTree(pattern)!);
    return {
      family: "composite",
      version: 1,
      pattern,
      primitives: Object.fromEntries(used.map((name) => [name, meanings[NAMES.indexOf(name)]!])),
      ...rest,
    };
  });

describe("a composite query's entries", () => {
  it("write back every document they are read from", () => {
    fc.assert(
      fc.property(documents, (document) => {
        const entries = fromDocument(document, WAREHOUSE);
        expect(toDocument(entries)).toEqual(document);
        expect(toDocument(withRoot(entries, { ...entries.root! }))).toEqual(document);
        const text = patternText(entries.root!);
        const asText = { ...document, pattern: text };
        expect(toDocument({ ...fromDocument(asText, WAREHOUSE), root: fromTree(parsed(text)) })).toEqual(asText);
      }),
    );
  });

  it("follow a primitive to its new name and back", () => {
    fc.assert(
      fc.property(documents, (document) => {
        const entries = fromDocument(document, WAREHOUSE);
        const [first] = namesIn(entries.root!);
        const there = withRenamed(entries, first!, "Z");
        expect(namesIn(there.root!)).not.toContain(first);
        expect(undefinedNames(there)).toEqual([]);
        expect(toDocument(withRenamed(there, "Z", first!))).toEqual(document);
      }),
    );
  });

  it("keep the definition of an unused name", () => {
    const entries = fromDocument(
      {
        family: "composite",
        pattern: { sequence: ["A", "B"] },
        primitives: { A: {}, B: { where: [["reader", "=", "x"]] } },
        per: null,
        within: 5,
      },
      WAREHOUSE,
    );
    const [, , b] = outline(entries.root!);
    const without = withRoot(entries, removed(entries.root!, b!.node.id));
    expect(toDocument(without)).toMatchObject({ pattern: "A", primitives: { A: {} } });
    expect(freshName(without)).toBe("C");
    const again = withRoot(without, joined(without.root!, without.root!.id, "or", leaf("B")));
    expect(toDocument(again)).toMatchObject({ pattern: "A OR B", primitives: { B: { where: [["reader", "=", "x"]] } } });
  });

  it("send what the names of a new text mean before the server has parsed it", () => {
    const entries = fromDocument(
      { family: "composite", pattern: "A : B", primitives: { A: {}, B: { where: [["reader", "=", "x"]] } }, per: null, within: 5 },
      WAREHOUSE,
    );
    const parsed = withRead(entries, fromTree({ sequence: ["A", "B"] })!);
    const [, , b] = outline(parsed.root!);
    const without = withRoot(parsed, removed(parsed.root!, b!.node.id));
    expect(toDocument({ ...without, written: "A : !C : B" })["primitives"]).toEqual({ A: {}, B: { where: [["reader", "=", "x"]] } });
  });

  it("begin with one event after another, of one entity", () => {
    const entries = fromDocument({ family: "composite", version: 1 }, WAREHOUSE);
    expect(toDocument(entries)).toEqual({
      family: "composite",
      version: 1,
      pattern: "A : B",
      primitives: { A: {}, B: {} },
      per: "entity",
      within: "PT10M",
    });
    expect(freshName(entries)).toBe("C");
    expect(undefinedNames({ ...entries, root: leaf("EXIT") })).toEqual(["EXIT"]);
  });
});

describe("the text of a pattern", () => {
  it("names the conditions on an event and its time after the previous one", () => {
    const entries = withPrimitive(fromDocument({ family: "composite" }, WAREHOUSE), "A", {
      where: [["reader", "in", ["a", "b"]]],
      prefix: [["entity", "urn:"]],
      inside: { region: "Docks" },
      outside: null,
      others: {},
    });
    expect(primitiveWords(entries.primitives.get("A")!, WAREHOUSE)).toBe("reader in a, b, entity begins urn:, inside Docks");
    expect(primitiveWords(entries.primitives.get("B")!, WAREHOUSE)).toBe("any event");
    expect(
      [
        [0, "PT10M"],
        [60_000, null],
        [null, null],
        ["PT1M", "PT2M"],
      ].map(([low, high]) => boundsWords({ bounds: [low!, high!], without: null }, WAREHOUSE)),
    ).toEqual(["within 10 min", "at least 1 min later", "", "1 min to 2 min later"]);
  });

  it("names the triggers and the events that must have come before", () => {
    const root = fromTree({ sequence: ["SHELF", "EXIT"], without: "A" })!;
    const leaves = [
      { name: "SHELF", kind: "normal" as const, needed: true },
      { name: "A", kind: "negative" as const, needed: false },
      { name: "EXIT", kind: "trigger" as const, needed: true },
    ];
    expect(evaluation(leaves)).toEqual({ triggers: ["EXIT"], needed: ["SHELF"] });
    expect([...leavesById(root, leaves).values()]).toEqual(leaves);
    expect(leavesById(root, leaves.slice(1)).size).toBe(0);
  });

  it("knows which words can be names", () => {
    expect(["A", "_x1", "Ausgang_ü", "and", "NULL", "1a", "a b", ""].map(isName)).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
      false,
      false,
    ]);
  });
});

describe("negated parts", () => {
  it("keep their part when the kind of negation changes", () => {
    const root = fromTree({ absence: ["DOOR", "GUARD"], span: "PT1M" })!;
    const before = turned(root, root.id, "before", "PT5M");
    expect(patternText(before)).toBe("!GUARD[PT1M] : DOOR");
    expect(patternText(turned(before, root.id, "around", "PT5M"))).toBe("DOOR AND !GUARD[PT1M]");
    expect(outline(before).map(({ role }) => role)).toEqual(["root", "never", "first"]);
  });
});

describe("a stored document", () => {
  it("keeps an unused primitive, also after the server has parsed the pattern", () => {
    const document = {
      family: "composite",
      version: 1,
      pattern: "A : B",
      primitives: { A: {}, B: {}, SPARE: { where: [["reader", "=", "x"]] } },
      per: null,
      within: "PT1M",
    };
    const entries = fromDocument(document, WAREHOUSE);
    expect(toDocument(entries)).toEqual(document);
    expect(toDocument(withRead(entries, fromTree({ sequence: ["A", "B"] })!))).toEqual(document);
    expect(toDocument(fromDocument({ ...document, pattern: { sequence: ["A", "B"] } }, WAREHOUSE))["primitives"]).toEqual(
      document.primitives,
    );
  });
});
