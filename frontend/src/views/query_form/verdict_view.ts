/** The server's result for the document: the query as a sentence, or the missing parts. */

import { reason, type Fault } from "../../lib/api";
import { checked } from "../../lib/answers";
import { h, icon, replace } from "../../lib/dom";
import { t } from "../../lib/texts";
import { formatNumber } from "../../lib/time";

/** `placement`: how the query's work is partitioned, if worth mentioning. */
export type Verdict = Pick<ReturnType<typeof checked>, "faults" | "sentence" | "notices" | "placement">;

export class VerdictView {
  readonly element = h("div", { class: "sentence", role: "status", "aria-live": "polite" });

  /**
   * The result for an earlier document is out of date, even while the check of this one takes long.
   */
  checking(): void {
    replace(this.element, h("span", { class: "muted" }, t("Checking…")));
  }

  failed(error: unknown): void {
    replace(this.element, h("p", { class: "muted" }, reason(error)));
  }

  /**
   * `unclaimed`: faults that no field shows; null while faults are not shown at fields, because the
   * reader has not tried to continue.
   */
  show({ faults, sentence, notices, placement }: Verdict, unclaimed: readonly Fault[] | null): void {
    if (sentence !== null && faults.length === 0) {
      const spread = placement === null ? null : h("p", { class: "small muted placement" }, placement);
      replace(this.element, h("p", { class: "sentence-text" }, sentence), noticesAbout(notices), spread);
    } else {
      const shown = unclaimed ?? faults;
      const title =
        faults.length === 0
          ? t("Nothing is wrong with it.")
          : unclaimed?.length === 0
            ? t("Not yet: see the marked fields.")
            : t("Still to do:");
      replace(
        this.element,
        h("p", { class: "muted" }, title),
        h("ul", { class: "todo" }, ...shown.map((fault) => h("li", {}, fault.message))),
      );
    }
  }
}

/** One is shown at once, because it may be that the query has no answers; of several their number. */
function noticesAbout(notices: readonly string[]): HTMLElement | null {
  if (notices.length === 0) return null;
  if (notices.length === 1) return h("p", { class: "notice notice-high" }, icon("triangle-alert"), h("span", {}, notices[0]));
  return h(
    "details",
    { class: "notices" },
    h("summary", { class: "small muted" }, t("{count} notices about what is written", { count: formatNumber(notices.length) })),
    h("ul", { class: "small" }, ...notices.map((notice) => h("li", {}, notice))),
  );
}
