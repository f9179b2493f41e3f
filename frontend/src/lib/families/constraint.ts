import { numericColumns } from "../columns";
import type { Feed } from "../shapes";
import { t } from "../texts";
import { ABOUT_SEVERAL, type Family } from "./family";

export const constraint: Family = {
  name: t("Events close together"),
  card: { icon: "target", text: t("Several readings close together in space and time.") },
  variants: [
    {
      key: "sums",
      icon: "sigma",
      title: t("Differences and sums"),
      text: t("One reading exceeds another by a given amount, or is twice as high."),
      begin: sums,
    },
  ],
  isAboutPlaces: true,
  kinds: { match: { name: t("Match"), clause: null } },
  columns: ABOUT_SEVERAL,
  isDeriving: true,
  measure: null,
  moment: null,
  isFluents: false,
};

/**
 * A reading of an entity after another one of it, with a minimum growth of a column; one
 * answer for each later reading.
 */
function sums(feed: Feed): Record<string, unknown> {
  const column = numericColumns(feed).find((name) => name in feed.columns) ?? "x";
  const compare = [
    ["A.entity", "=", "B.entity"],
    [`B.${column} - A.${column}`, ">", 10],
  ];
  const constraint = { between: ["A", "B"], dt: [0, feed.time === "ms" ? "PT20S" : 100], compare };
  return { variables: { A: {}, B: {} }, constraints: [constraint], report: "first" };
}
