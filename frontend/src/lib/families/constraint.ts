import { t } from "../texts";
import { ABOUT_SEVERAL, type Family } from "./family";

export const constraint: Family = {
  name: t("Events close together"),
  card: { icon: "target", text: t("Several readings close together in space and time.") },
  kinds: { match: { name: t("Match"), clause: null } },
  columns: ABOUT_SEVERAL,
  isDeriving: true,
  measure: null,
  moment: null,
  isFluents: false,
};
