/**
 * The upstream answers from which an answer was derived; each leads to its own upstream
 * answers, and so to the rows.
 */

import { t } from "../lib/texts";
import { orderedEvidence } from "../data/evidence";
import { queryColour } from "../lib/colours";
import { get } from "../lib/api";
import { answersBehind as behind, type AnswerBehind } from "../lib/answers";
import { h, replace } from "../lib/dom";
import { formatMoment, type TimeUnit, type Zone } from "../lib/time";
import { kindName } from "../lib/words";
import { evidenceList } from "./evidence_list_view";

/** A section that loads itself; hidden if there are none. */
export function answersBehind(key: string, unit: TimeUnit, zone: Zone): HTMLElement {
  const element = h("section", { hidden: true });
  void fill(element, key, unit, zone);
  return element;
}

async function fill(element: HTMLElement, key: string, unit: TimeUnit, zone: Zone): Promise<void> {
  const found = await get(`detections/${key}/answers`, behind).catch(() => ({ answers: [] }));
  if (found.answers.length === 0) return;
  replace(
    element,
    h("h3", { class: "section-title" }, t("Answers it was made from")),
    h("div", { class: "stack" }, ...found.answers.map((one) => row(one, unit, zone))),
  );
  element.hidden = false;
}

/** When opened, it shows its own events and answers. */
function row(one: AnswerBehind, unit: TimeUnit, zone: Zone): HTMLElement {
  const details = h(
    "details",
    { class: "more" },
    h(
      "summary",
      {},
      h("span", { class: "swatch", vars: { "--swatch": queryColour(one.query) } }),
      ` ${one.query_name} `,
      h(
        "div",
        { class: "small muted num" },
        [kindName(one.kind), ...one.entities, formatMoment(one.end ?? one.start, unit, zone)].join(" · "),
      ),
    ),
  );
  const body = h("div", { class: "stack more-body" });
  details.append(body);
  details.addEventListener("toggle", () => {
    if (!details.open || body.childElementCount > 0) return;
    const events = orderedEvidence([one]);
    body.append(h("a", { class: "small", href: `/queries/${one.query}` }, t("Its query")));
    if (events.length > 0) body.append(evidenceList(events, unit, zone));
    body.append(answersBehind(one.id, unit, zone));
  });
  return details;
}
