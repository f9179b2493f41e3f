/** Where alerts of the last day would have been sent. */

import type { DryRun } from "../data/rule_data";
import { h } from "../lib/dom";
import { formatNumber, t, tn } from "../lib/texts";

/** The targets of a dry run. */
export function outcome(found: DryRun): HTMLElement {
  if (found.alerts === 0) return h("p", { class: "muted" }, t("There was no alert in the last day."));
  return h(
    "div",
    { class: "stack dry-run" },
    h("p", {}, `${lookedAt(found)}${reach(found)}`),
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
  if (found.matched !== null && found.unreached > 0) return ruleReach(found.matched, found.results.length > 0);
  return found.unreached === 0 ? t("each reaches someone.") : tn("one reaches nobody.", "{count} reach nobody.", found.unreached);
}

/** A rule that matches nothing and one whose people have no channel are mended differently. */
function ruleReach(matched: number, isSent: boolean): string {
  if (matched === 0) return t("the rule matches none of them.");
  const matches = tn("the rule matches one of them", "the rule matches {count} of them", matched);
  return isSent ? `${matches}.` : t("{matches}, but it reaches nobody: whom it sends to has no channel that may carry them.", { matches });
}
