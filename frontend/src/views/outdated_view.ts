/** Says since when the figures of a page are old: they are not taken for present ones. */

import { reason } from "../lib/api";
import { h, icon, replace } from "../lib/dom";
import { t } from "../lib/texts";
import { formatClock, type Zone } from "../lib/time";

export class OutdatedView {
  readonly element = h("p", { class: "notice notice-high", role: "alert", hidden: true });
  private refreshedAt = Date.now();

  constructor(private readonly zone: Zone) {}

  /** Of each refresh. */
  async follow(refreshed: Promise<void>): Promise<void> {
    try {
      await refreshed;
      this.refreshedAt = Date.now();
      this.element.hidden = true;
    } catch (error) {
      this.failed(error);
    }
  }

  private failed(error: unknown): void {
    const why = t("Not up to date since {time}. {why}", { time: formatClock(this.refreshedAt, "ms", this.zone), why: reason(error) });
    this.element.hidden = false;
    // What is said already is not read out again.
    if (this.element.textContent !== why) replace(this.element, icon("triangle-alert"), h("span", {}, why));
  }
}
