/** Was an alert right? Verdicts are stored with its answer, so that its query can be tuned. */

import { post } from "../lib/api";
import { h } from "../lib/dom";
import { anything } from "../lib/parse";
import type { Alert, AlertDetail } from "../lib/shapes";
import { t } from "../lib/texts";
import { inSentence } from "../lib/words";
import { fail } from "./shell_view";

const VERDICTS: Record<string, string> = { right: t("Right"), false: t("False alarm"), not_useful: t("Not useful") };

/** All verdicts, and the reader's own, which can be changed; `onSent` is called when it is stored. */
export function feedbackForm(
  { id, editable }: Alert,
  feedback: AlertDetail["feedback"],
  reader: string,
  onSent: () => unknown,
): HTMLElement {
  const verdictList = h(
    "ul",
    { class: "small" },
    ...feedback.map((one) =>
      h(
        "li",
        {},
        h("strong", {}, one.author),
        ` ${inSentence(VERDICTS[one.verdict] ?? one.verdict)}${one.reason === "" ? "" : `: ${one.reason}`}`,
      ),
    ),
  );
  const mine = feedback.find((one) => one.author === reader);
  const reason = h("input", {
    class: "input",
    "aria-label": t("Reason"),
    placeholder: t("Why (optional)"),
    maxlength: 500,
    value: mine?.reason ?? "",
  });
  const buttons = Object.entries(VERDICTS).map(([verdict, text]) =>
    h(
      "button",
      {
        type: "button",
        disabled: !editable,
        "aria-pressed": String(verdict === mine?.verdict),
        onClick: () => post(`alerts/${id}/feedback`, { verdict, reason: reason.value.trim() }, anything).then(onSent, fail),
      },
      text,
    ),
  );
  return h(
    "div",
    { class: "stack" },
    h("h3", { class: "section-title" }, t("Was it right?")),
    verdictList,
    reason,
    h("div", { class: "segmented verdicts", role: "group", "aria-label": t("Was it right?") }, ...buttons),
  );
}
