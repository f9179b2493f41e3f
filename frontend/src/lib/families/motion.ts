import type { Feed } from "../shapes";
import { t } from "../texts";
import { ABOUT_ONE, distance, type Family } from "./family";

export const motion: Family = {
  name: t("Motion pattern"),
  card: { icon: "route", text: t("It was in one region, then in another, and never close to a third.") },
  variants: [
    {
      key: "total",
      icon: "hourglass",
      title: t("How long in all"),
      text: t("It was in a region for at least, or at most, a total time within the last minutes."),
      begin: total,
    },
  ],
  isAboutPlaces: true,
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
