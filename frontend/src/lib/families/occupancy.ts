import { t } from "../texts";
import { formatNumber } from "../time";
import type { Family } from "./family";

export const occupancy: Family = {
  name: t("How many are there"),
  card: { icon: "users", text: t("At least or at most a number at once in one place: a crowd, an empty post.") },
  isAboutPlaces: true,
  kinds: { occupied: { name: t("Number reached"), clause: t("a number of entities are there") } },
  columns: t("names no entity; value is the count"),
  isDeriving: false,
  // The query decides which extreme it is.
  measure: (number, { count }) => [
    Array.isArray(count) && count[0] === "<=" ? t("Minimum at once") : t("Most at once"),
    formatNumber(number),
  ],
  moment: null,
  isFluents: false,
  detail: "count",
};
