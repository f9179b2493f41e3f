import type { Feed } from "../shapes";
import { t } from "../texts";
import { ABOUT_SEVERAL, type Family } from "./family";

export const composite: Family = {
  name: t("Composite event"),
  card: { icon: "git-branch", text: t("One event after another, or an event that is missing.") },
  variants: [
    {
      key: "absence",
      icon: "circle-slash",
      title: t("What did not happen"),
      text: t("One event occurs without another before or after it."),
      begin: absence,
    },
    {
      key: "derive",
      icon: "workflow",
      title: t("Answers of other queries"),
      text: t("Answers of another query are events here: they can be counted, ordered, or be missing."),
      // The form adds the first event, once it knows the other queries of the feed.
      begin: () => ({ derive: {} }),
    },
  ],
  kinds: { detection: { name: t("Detected"), clause: t("the pattern occurs") } },
  columns: ABOUT_SEVERAL,
  isDeriving: true,
  measure: null,
  moment: null,
  isFluents: false,
};

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
