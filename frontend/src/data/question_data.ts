/** The questions for a new query: one for each family, and variants of a family that its empty editor does not show. Pure. */

import { numericColumns } from "./query_form_data";
import type { Feed } from "../lib/shapes";

export interface Question {
  /** Its name in the address, and the key of its draft. */
  readonly key: string;
  readonly family: string;
  /** The initial document, besides family and version. */
  readonly begin: (feed: Feed) => Record<string, unknown>;
}

const FORMS: readonly Question[] = [
  { key: "total", family: "motion", begin: total },
  { key: "sums", family: "constraint", begin: sums },
  { key: "absence", family: "composite", begin: absence },
  // The form adds the first event, once it knows the other queries of the feed.
  { key: "derive", family: "composite", begin: () => ({ derive: {} }) },
];

/** A family with its empty editor. */
export function plainQuestion(family: string): Question {
  return { key: family, family, begin: () => ({}) };
}

/** Each family, followed by its variants. */
export function questionsOf(families: readonly string[]): Question[] {
  return families.flatMap((family) => [plainQuestion(family), ...FORMS.filter((form) => form.family === family)]);
}

/** At least one of the last ten minutes in total. */
function total({ time }: Feed): Record<string, unknown> {
  const [from, least] = time === "ms" ? ["PT10M", "PT1M"] : [1000, 100];
  return { predicates: [{ window: [from, 0], quantifier: "total", at_least: least }], every: time === "ms" ? "PT10S" : 25 };
}

/** A reading of an entity after another one of it, with a minimum growth of a column; one answer for each later reading. */
function sums(feed: Feed): Record<string, unknown> {
  const column = numericColumns(feed).find((name) => name in feed.columns) ?? "x";
  const compare = [
    ["A.entity", "=", "B.entity"],
    [`B.${column} - A.${column}`, ">", 10],
  ];
  const constraint = { between: ["A", "B"], dt: [0, feed.time === "ms" ? "PT20S" : 100], compare };
  return { variables: { A: {}, B: {} }, constraints: [constraint], report: "first" };
}

/** One event without another before or after it. */
function absence({ time }: Feed): Record<string, unknown> {
  const span = time === "ms" ? "PT5M" : 100;
  return {
    pattern: `A AND !B[${span}]`,
    primitives: { A: {}, B: {} },
    per: "entity",
    within: time === "ms" ? "PT10M" : 1000,
  };
}
