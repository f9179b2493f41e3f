import { t } from "../texts";
import { ABOUT_SEVERAL, type Family } from "./family";

export const composite: Family = {
  name: t("Composite event"),
  card: { icon: "git-branch", text: t("One event after another, or an event that is missing.") },
  kinds: { detection: { name: t("Detected"), clause: null } },
  columns: ABOUT_SEVERAL,
  isDeriving: true,
  measure: null,
  moment: null,
  isFluents: false,
};
