/** The upstream and downstream queries of a query, as far as the reader may see them. */

import { get } from "../../lib/api";
import { derivation, type Upstream } from "../../lib/answers";
import { h, replace } from "../../lib/dom";
import { formatNumber } from "../../lib/time";
import { familyName, inSentence, kindName } from "../../lib/words";
import { section } from "./section";
import { t } from "../../lib/texts";

export class DerivationView {
  readonly element = h("div", { hidden: true });

  /** Nothing is shown for a query without any. */
  async load(query: string): Promise<void> {
    const { derives_from: above, derived_by: below, hidden } = await get(`queries/${query}/derivation`, derivation);
    const parts: HTMLElement[] = [];
    if (above.length > 0) parts.push(section(t("Derives from"), h("ul", { class: "derivation" }, ...above.map(sourceRow))));
    if (below.length > 0 || hidden > 0) {
      const rows = below.map((one) =>
        h(
          "li",
          {},
          link(one.id, one.name),
          h("span", { class: "small muted" }, ` ${familyName(one.family)}${one.direct ? "" : t(", through others")}`),
          state(one.runs),
        ),
      );
      if (hidden > 0)
        rows.push(
          h(
            "li",
            { class: "small muted" },
            hidden === 1 ? t("1 query of others") : t("{hidden} queries of others", { hidden: formatNumber(hidden) }),
          ),
        );
      parts.push(
        section(
          t("What derives from it"),
          h("p", { class: "small muted" }, t("A new version of this query restarts these. Switched off or removed, it stops them.")),
          h("ul", { class: "derivation" }, ...rows),
        ),
      );
    }
    replace(this.element, ...parts);
    this.element.hidden = parts.length === 0;
  }
}

function sourceRow(source: Upstream): HTMLElement {
  const name = source.id === null ? h("span", {}, source.name ?? source.called) : link(source.id, source.name ?? source.called);
  const when = source.at === "start" ? t("when it begins") : t("when it ends");
  return h(
    "li",
    {},
    h("code", {}, source.event),
    t(" is "),
    name,
    h("span", { class: "small muted" }, `: ${inSentence(kindName(source.kind))}, ${when}`),
    state(source.runs),
  );
}

function link(query: string, name: string): HTMLElement {
  return h("a", { href: `/queries/${query}` }, name);
}

function state(runs: boolean): HTMLElement | null {
  return runs ? null : h("span", { class: "badge badge-critical" }, t("does not run"));
}
