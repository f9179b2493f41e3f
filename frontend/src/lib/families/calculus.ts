import { t } from "../texts";
import type { Family } from "./family";

export const calculus: Family = {
  name: t("Rules over time"),
  card: { icon: "layers", text: t("Rules define what begins and ends a situation, and how long it holds.") },
  kinds: {},
  columns: null,
  isDeriving: true,
  measure: null,
  moment: null,
  isFluents: true,
  isRevising: true,
  detail: "rules",
};
