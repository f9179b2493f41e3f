/** The whole specification as JSON: the editor of families without their own. */

import { h } from "../../lib/dom";
import { parseText } from "../../data/query_form_data";
import { section } from "../query_form/section";
import type { FamilyEditor, OpenEditor } from "./editor";
import { t } from "../../lib/texts";

export const open: OpenEditor = (document, { onChange }): FamilyEditor => {
  const area = h("textarea", {
    class: "textarea mono document",
    id: "document",
    spellcheck: "false",
    "aria-label": t("Specification as JSON"),
    value: JSON.stringify(document, null, 2),
  });
  const state = h("p", { class: "fault", role: "alert", hidden: true }, t("Invalid JSON; keeping the last valid version."));
  let last = document;
  area.addEventListener("input", () => {
    const read = parseText(area.value);
    state.hidden = read !== null;
    last = read ?? last;
    onChange();
  });
  return {
    element: section(
      t("Specification"),
      h(
        "div",
        { class: "field", "data-pointer": "/" },
        area,
        state,
        h("p", { class: "hint" }, t("The document of the specification, as JSON; it is checked while you write.")),
      ),
    ),
    stage: null,
    specification: () => last,
    kinds: () => [],
  };
};
