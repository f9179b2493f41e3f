import { t } from "../texts";
import { distance, something, type Family } from "./family";

export const encounter: Family = {
  name: t("Who meets whom"),
  card: { icon: "handshake", text: t("Two come near each other and stay: a transfer at sea, a convoy, a contact.") },
  isAboutPlaces: true,
  kinds: { met: { name: t("Met"), clause: something(t("meets another")), isBetweenTwo: true } },
  columns: t("entity and entity2 are the two; value is the least distance"),
  isDeriving: false,
  measure: distance(t("Nearest")),
  moment: null,
  isFluents: false,
  isKnownLate: (specification) => specification["position"] === "interpolated",
};
