import type { Feed } from "../shapes";
import { t } from "../texts";
import { ABOUT_ONE, distance, type Family } from "./family";

export const motion: Family = {
  name: t("Motion pattern"),
  card: { icon: "route", text: t("It was here, then there, and never close to that.") },
  variants: [
    {
      key: "total",
      icon: "hourglass",
      title: t("How long in all"),
      text: t("It was there for a total time within the last minutes, or for hardly any."),
      begin: total,
    },
  ],
  kinds: { match: { name: t("Match"), clause: null } },
  columns: ABOUT_ONE,
  isDeriving: false,
  measure: distance(t("Distance")),
  moment: null,
  isFluents: false,
  detail: "progress",
};

/** At least one of the last ten minutes in total. */
function total({ time }: Feed): Record<string, unknown> {
  const [from, least] = time === "ms" ? ["PT10M", "PT1M"] : [1000, 100];
  return { predicates: [{ window: [from, 0], quantifier: "total", at_least: least }], every: time === "ms" ? "PT10S" : 25 };
}
