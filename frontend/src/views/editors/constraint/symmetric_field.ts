/**
 * Which variables of a constraint query are interchangeable: each set of events is then one answer.
 */

import type { ConstraintEntries } from "../../../data/constraint_data";
import { h } from "../../../lib/dom";
import { t } from "../../../lib/texts";

type Symmetric = ConstraintEntries["symmetric"];

/** One group can be chosen; several, which a document may have, are only shown. */
export function symmetricField({ symmetric, variables }: ConstraintEntries, onChange: (symmetric: Symmetric) => void): HTMLElement {
  const [group = [], ...others] = symmetric;
  if (others.length > 0)
    return h(
      "p",
      { class: "small", "data-pointer": "/symmetric" },
      t("May be exchanged: {value}", { value: symmetric.map((one) => one.join(", ")).join("; ") }),
    );
  let now = group;
  const boxes = variables.map(({ name }) => {
    const box = h("input", { type: "checkbox", checked: group.includes(name) });
    box.addEventListener("change", () => {
      now = box.checked ? [...now, name] : now.filter((one) => one !== name);
      onChange(now.length > 0 ? [now] : []);
    });
    return h("label", { class: "check" }, box, name);
  });
  return h(
    "div",
    { class: "field", "data-pointer": "/symmetric" },
    h("span", { class: "label" }, t("May be exchanged")),
    h("div", { class: "row row-wrap" }, ...boxes),
    h("span", { class: "hint" }, t("Events that only exchange these variables are one answer, not several.")),
  );
}
