import { t } from "../texts";
import { ABOUT_ONE, distance, type Family } from "./family";

export const motion: Family = {
  name: t("Motion pattern"),
  card: { icon: "route", text: t("It was here, then there, and never close to that.") },
  kinds: { match: { name: t("Match"), clause: null } },
  columns: ABOUT_ONE,
  isDeriving: false,
  measure: distance(t("Distance")),
  moment: null,
  isFluents: false,
  detail: "progress",
};
