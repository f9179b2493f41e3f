import { t } from "../texts";
import { CROSSING } from "./crossing";
import { ABOUT_ONE, something, type Family } from "./family";

export const border: Family = {
  name: t("Crossing a border"),
  card: { icon: "square-dashed-mouse-pointer", text: t("Something enters or leaves an area, or a range of values.") },
  kinds: {
    in: { name: t("Entered"), clause: something(t("enters")), endedBy: "out" },
    out: { name: t("Left"), clause: something(t("leaves")) },
  },
  columns: ABOUT_ONE,
  isDeriving: false,
  measure: null,
  moment: null,
  isFluents: false,
  ...CROSSING,
  isKnownLate: (specification) => specification["segments"] === true,
};
