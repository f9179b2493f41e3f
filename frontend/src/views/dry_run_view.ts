/** Where alerts of the last day would have been sent. */

import type { DryRun } from "../data/rule_data";
import { h } from "../lib/dom";
import { warningNotice } from "./warning_view";
import { formatNumber, t, tn } from "../lib/texts";

/** The targets of a dry run. */
export function outcome(found: DryRun): HTMLElement {
  const warning = found.warning === "" ? null : warningNotice(found.warning);
  if (found.alerts === 0)
    return h("div", { class: "stack" }, h("p", { class: "muted" }, t("There was no alert in the last day.")), warning);
  return h(
    "div",
    { class: "stack dry-run" },
    h("p", {}, `${lookedAt(found)}${found.matched === null ? reach(found) : ruleReach(found, found.matched)}`),
    warning,
    ...found.results.map((one) =>
      h(
        "div",
        { class: "channel" },
        h(
          "div",
          { class: "grow" },
          h("strong", {}, one.channel.name),
          h("span", { class: "small muted" }, t(" of {owner}", { owner: one.channel.owner })),
          h(
            "div",
            { class: "small muted" },
            one.rule === null ? t("by the channel's own settings") : t("by the rule “{rule}”", { rule: one.rule }),
            one.after_minutes === 0 ? "" : t(", if nobody acknowledged within {afterminutes} min", { afterminutes: one.after_minutes }),
          ),
          h(
            "div",
            { class: "small faint" },
            one.messages < one.count ? tn("in one message · ", "in {count} messages · ", one.messages) : "",
            one.alerts.map((alert) => [alert.query_name, ...alert.entities].join(" ")).join(" · "),
          ),
        ),
        h("span", { class: "badge" }, formatNumber(one.count)),
      ),
    ),
  );
}

function lookedAt(found: DryRun): string {
  return found.alerts < found.opened
    ? t("The newest {alerts} of {opened} alerts in the last day; ", {
        alerts: formatNumber(found.alerts),
        opened: formatNumber(found.opened),
      })
    : tn("One alert in the last day; ", "{count} alerts in the last day; ", found.alerts);
}

function reach(found: DryRun): string {
  const words = found.unreached === 0 ? t("each reaches someone.") : tn("one reaches nobody.", "{count} reach nobody.", found.unreached);
  return found.unseen === 0
    ? words
    : `${words} ${tn("One reaches only channels that you do not see.", "{count} reach only channels that you do not see.", found.unseen)}`;
}

/** A rule that matches nothing and one whose recipients have no channel need different remedies. */
function ruleReach(found: DryRun, matched: number): string {
  if (matched === 0) return t("the rule matches none of them.");
  if (found.unreached === 0 && found.unseen === 0) return t("each reaches someone.");
  const matches = tn("the rule matches one of them", "the rule matches {count} of them", matched);
  if (found.results.length > 0 || found.warning !== "") return `${matches}.`;
  return found.reached !== null && found.reached > 0
    ? t("{matches}, and sends to channels that you do not see.", { matches })
    : t("{matches}, but it reaches nobody: its recipients may not see the query. Share it with their team.", { matches });
}
