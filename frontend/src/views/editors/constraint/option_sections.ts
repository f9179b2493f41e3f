/** Settings of a constraint query as a whole: which events count, and its answers. */

import { EXPIRATIONS, REPORTS, type ConstraintEntries } from "../../../data/constraint_data";
import { h } from "../../../lib/dom";
import { t } from "../../../lib/texts";
import { ConditionsField } from "../../query_form/conditions_field";
import { more, section } from "../../query_form/section";
import type { EditorContext } from "../editor";
import { symmetricField } from "./symmetric_field";

const REPORT_TEXTS: Record<string, string> = { all: t("every set of events, once"), first: t("one for each event that completes a set") };
const EXPIRATION_TEXTS: Record<string, string> = {
  tight: t("as little as possible (tight)"),
  loose: t("by the longest span (loose)"),
  domains: t("candidates of each variable (domains)"),
};

export function optionSections(
  entries: ConstraintEntries,
  context: EditorContext,
  onChange: (change: Partial<ConstraintEntries>) => void,
): HTMLElement[] {
  const where: ConditionsField = new ConditionsField({
    feed: context.feed,
    value: entries.where,
    pointer: "/where",
    id: "where",
    onChange: () => onChange({ where: where.value() }),
  });
  const select = (id: "report" | "expiration", label: string, names: readonly string[], texts: Record<string, string>): HTMLElement => {
    const element = h(
      "select",
      { class: "select", id: `constraint-${id}` },
      ...names.map((name) => h("option", { value: name, selected: name === (entries[id] ?? names[0]) }, texts[name] ?? name)),
    );
    element.addEventListener("change", () => onChange({ [id]: element.value }));
    return h("div", { class: "field", "data-pointer": `/${id}` }, h("label", { for: `constraint-${id}` }, label), element);
  };
  return [
    section(t("Which events count?"), where.element),
    section(
      t("Answers"),
      select("report", t("Report"), REPORTS, REPORT_TEXTS),
      symmetricField(entries, (symmetric) => onChange({ symmetric })),
      more(t("Memory"), entries.expiration !== null, select("expiration", t("Keep events"), EXPIRATIONS, EXPIRATION_TEXTS)),
    ),
  ];
}
