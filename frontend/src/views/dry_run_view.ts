/** Where alerts of the last day would have gone. */

import type { DryRun } from "../data/rule_data";
import { h } from "../lib/dom";

/** Where a dry run says that alerts would go. */
export function outcome(found: DryRun): HTMLElement {
  if (found.alerts === 0) return h("p", { class: "muted" }, "There was no alert in the last day.");
  return h(
    "div",
    { class: "stack dry-run" },
    h(
      "p",
      {},
      `${found.alerts} alerts in the last day; ${found.unreached === 0 ? "each reaches somebody" : `${found.unreached} reach nobody`}.`,
    ),
    ...found.results.map((one) =>
      h(
        "div",
        { class: "channel" },
        h(
          "div",
          { class: "grow" },
          h("strong", {}, one.channel.name),
          h("span", { class: "small muted" }, ` of ${one.channel.owner}`),
          h(
            "div",
            { class: "small muted" },
            one.rule === null ? "by itself" : `by the rule “${one.rule}”`,
            one.after_minutes === 0 ? "" : `, if nobody acknowledged within ${one.after_minutes} min`,
          ),
          h(
            "div",
            { class: "small faint" },
            one.messages < one.count ? `in ${one.messages} messages · ` : "",
            one.alerts.map((alert) => [alert.query_name, ...alert.entities].join(" ")).join(" · "),
          ),
        ),
        h("span", { class: "badge" }, String(one.count)),
      ),
    ),
  );
}
