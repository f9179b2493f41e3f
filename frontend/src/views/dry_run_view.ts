/** Where alerts of the last day would have gone. */

import type { DryRun } from "../data/rule_data";
import { h } from "../lib/dom";
import { t } from "../lib/texts";

/** Where a dry run says that alerts would go. */
export function outcome(found: DryRun): HTMLElement {
  if (found.alerts === 0) return h("p", { class: "muted" }, t("There was no alert in the last day."));
  return h(
    "div",
    { class: "stack dry-run" },
    h(
      "p",
      {},
      found.unreached === 0
        ? t("{alerts} alerts in the last day; each reaches someone.", { alerts: found.alerts })
        : t("{alerts} alerts in the last day; {unreached} reach nobody.", { alerts: found.alerts, unreached: found.unreached }),
    ),
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
            one.rule === null ? t("by itself") : t("by the rule “{rule}”", { rule: one.rule }),
            one.after_minutes === 0 ? "" : t(", if nobody acknowledged within {afterminutes} min", { afterminutes: one.after_minutes }),
          ),
          h(
            "div",
            { class: "small faint" },
            one.messages < one.count ? t("in {messages} messages · ", { messages: one.messages }) : "",
            one.alerts.map((alert) => [alert.query_name, ...alert.entities].join(" ")).join(" · "),
          ),
        ),
        h("span", { class: "badge" }, String(one.count)),
      ),
    ),
  );
}
