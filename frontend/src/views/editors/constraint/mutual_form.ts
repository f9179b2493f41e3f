/** The short form: k mutually close events. */

import { eventsOf, MOST_VARIABLES, type Mutual } from "../../../data/constraint_data";
import { h } from "../../../lib/dom";
import { ConditionsField } from "../../query_form/conditions_field";
import type { EditorContext } from "../editor";
import { spanField } from "./span_field";
import { t } from "../../../lib/texts";

export function mutualForm(mutual: Mutual, context: EditorContext, onChange: (mutual: Mutual) => void): HTMLElement {
  let now = mutual;
  const set = (change: Partial<Mutual>): void => onChange((now = { ...now, ...change }));
  const unit = context.feed.crs === "geographic" ? t("metres") : t("units of the plan");
  const count = h("input", { class: "input num", id: "mutual-count", type: "number", min: 2, max: MOST_VARIABLES, value: String(now.k) });
  // "1" may become "12".
  count.addEventListener("input", () => {
    if (String(eventsOf(count.value, now.k)) === count.value.trim()) set({ k: Number(count.value) });
  });
  // The registered values are those shown here.
  count.addEventListener("change", () => {
    set({ k: eventsOf(count.value, now.k) });
    count.value = String(now.k);
  });
  const distance = h("input", {
    class: "input num",
    id: "mutual-distance",
    inputmode: "decimal",
    value: now.distance,
    autocomplete: "off",
  });
  distance.addEventListener("input", () => set({ distance: distance.value }));
  const where: ConditionsField = new ConditionsField({
    feed: context.feed,
    value: now.where,
    pointer: "/variables",
    id: "mutual-where",
    texts: { none: t("Every event of the feed may be one of them."), some: t("Each of them must meet all of these.") },
    onChange: () => set({ where: where.value() }),
  });
  const different = h("input", { type: "checkbox", id: "mutual-different", checked: now.isDifferent });
  different.addEventListener("change", () => set({ isDifferent: different.checked }));
  return h(
    "div",
    { class: "mutual" },
    h(
      "div",
      { class: "mutual-fields" },
      h(
        "div",
        { class: "field" },
        h("label", { for: "mutual-count" }, t("At least")),
        h("div", { class: "row" }, count, h("span", { class: "unit" }, t("events"))),
      ),
      h(
        "div",
        { class: "field", "data-pointer": "/constraints/0/distance" },
        h("label", { for: "mutual-distance" }, t("each within")),
        h("div", { class: "row" }, distance, h("span", { class: "unit" }, unit)),
      ),
      spanField({
        id: "mutual-within",
        label: t("and within"),
        time: context.feed.time,
        value: now.within,
        pointer: "/constraints/0/dt",
        placeholder: "5",
        onChange: (within) => set({ within }),
      }),
    ),
    h("label", { class: "check" }, different, t("each of another entity")),
    h("p", { class: "small muted" }, t("of one another, in any order.")),
    where.element,
  );
}
