import { t } from "../texts";
import { ABOUT_ONE, something, type Family } from "./family";

export const arrival: Family = {
  name: t("Who is about to arrive"),
  card: { icon: "navigation", text: t("It is not inside yet, but will be within minutes if it goes straight on.") },
  isAboutPlaces: true,
  kinds: { arriving: { name: t("On its way in"), clause: something(t("is about to enter")) } },
  columns: ABOUT_ONE,
  isDeriving: false,
  measure: null,
  moment: t("Expected"),
  isFluents: false,
};
