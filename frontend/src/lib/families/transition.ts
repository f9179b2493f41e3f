import { t } from "../texts";
import { CROSSING } from "./crossing";
import { ABOUT_ONE, something, type Family } from "./family";

export const transition: Family = {
  name: t("Passing or staying"),
  card: { icon: "timer", text: t("It leaves again in time, or stays too long.") },
  kinds: {
    passed: { name: t("Passed through"), clause: something(t("passes through in time")) },
    returned: { name: t("Left and came back"), clause: something(t("comes back in time")), isPale: true },
    stayed_in: { name: t("Stayed in"), clause: something(t("stays in too long")), isLimit: true },
    stayed_out: { name: t("Stayed out"), clause: something(t("stays out too long")), isPale: true, isLimit: true },
  },
  columns: ABOUT_ONE,
  isDeriving: false,
  measure: null,
  moment: null,
  isFluents: false,
  ...CROSSING,
};
