import { expect, test } from "vitest";
import { families, familyOf, kindOf } from "../src/lib/families";
import { border } from "../src/lib/families/border";
import type { Family } from "../src/lib/families/family";
import { EDITORS } from "../src/views/editors/registry";

test("each family has an editor", () => {
  expect(Object.keys(EDITORS).sort()).toEqual(Object.keys(families).sort());
});

test("a family without one of its parts does not compile", () => {
  const { name, card, kinds, ...rest } = border;
  // @ts-expect-error without a name
  const unnamed: Family = { card, kinds, ...rest };
  // @ts-expect-error without a card
  const cardless: Family = { name, kinds, ...rest };
  // @ts-expect-error without the words of its answers
  const wordless: Family = { name, card, ...rest };
  const { motion, ...others } = EDITORS;
  // @ts-expect-error without an editor
  const registry: typeof EDITORS = others;
  expect([unnamed, cardless, wordless, registry, motion]).toHaveLength(5);
});

test("unknown families are undefined", () => {
  expect([familyOf("newer"), familyOf(undefined), familyOf("toString"), kindOf("illegalFishing")]).toEqual(Array(4).fill(undefined));
});
