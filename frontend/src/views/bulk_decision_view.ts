/**
 * One decision about many alerts: those selected one by one, or all that match, which the
 * server handles in chunks.
 */

import { t, tn } from "../lib/texts";
import { post } from "../lib/api";
import { changedAlerts } from "../lib/answers";
import { button, h, replace } from "../lib/dom";
import { formatNumber } from "../lib/time";
import { fail, toast } from "./shell_view";

export interface BulkHandlers {
  /** The filters of the current view, in the form of the API. */
  matching: () => string;
  total: () => number | null;
  done: () => void;
}

const DONE = {
  acknowledge: (count: number) => tn("One alert acknowledged.", "{count} alerts acknowledged.", count),
  resolve: (count: number) => tn("One alert resolved.", "{count} alerts resolved.", count),
  reopen: (count: number) => tn("One alert reopened.", "{count} alerts reopened.", count),
};
type Action = keyof typeof DONE;

export class BulkDecisionView {
  readonly element = h("div", { class: "row bulk", hidden: true, role: "status" });
  readonly chosen = new Set<string>();
  /** All matching alerts, including those that are not loaded. */
  isAll = false;
  private isStopped = false;
  private isBusy = false;
  /** The state for which the buttons were made: new buttons would lose focus and pointer. */
  private shown = "";

  constructor(private readonly handlers: BulkHandlers) {}

  clear(): void {
    this.chosen.clear();
    this.isAll = false;
  }

  has(one: string): boolean {
    return this.isAll || this.chosen.has(one);
  }

  show(isResolved: boolean): void {
    if (this.isBusy) return;
    const count = this.isAll ? (this.handlers.total() ?? 0) : this.chosen.size;
    this.element.hidden = count === 0;
    const shown = JSON.stringify([count, this.isAll, isResolved]);
    if (count === 0 || shown === this.shown) return;
    this.shown = shown;
    const actions: Action[] = isResolved ? ["reopen"] : ["acknowledge", "resolve"];
    const names = {
      acknowledge: [t("Acknowledge"), "check"],
      resolve: [t("Resolve"), "check-check"],
      reopen: [t("Reopen"), "rotate-ccw"],
    } as const;
    replace(
      this.element,
      h(
        "span",
        { class: "small num" },
        this.isAll ? t("All {count} that match", { count: formatNumber(count) }) : t("{count} chosen", { count: formatNumber(count) }),
      ),
      ...actions.map((action) =>
        button(names[action][0], { icon: names[action][1], kind: "button-sm", onClick: () => this.run(action, count) }),
      ),
    );
  }

  /** All alerts that match these filters of the API. */
  async decideAll(action: Action, matching: string, count: number): Promise<void> {
    await this.work(action, (changed) => this.runAll(action, matching, count, changed));
  }

  private async run(action: Action, count: number): Promise<void> {
    if (this.isAll) return this.decideAll(action, this.handlers.matching(), count);
    const ids = [...this.chosen].map(Number);
    await this.work(action, async (changed) => {
      for (let i = 0; i < ids.length; i += PIECE)
        for (const one of (await post("alerts/bulk", { ids: ids.slice(i, i + PIECE), action }, changedAlerts)).changed) changed.add(one);
    });
  }

  private async work(action: Action, run: (changed: Set<string>) => Promise<void>): Promise<void> {
    const changed = new Set<string>();
    this.isBusy = true;
    this.isStopped = false;
    try {
      await run(changed);
      toast(DONE[action](changed.size), "good");
    } catch (error) {
      fail(error);
    }
    this.isBusy = false;
    this.shown = "";
    this.clear();
    this.handlers.done();
  }

  private async runAll(action: Action, matching: string, count: number, changed: Set<string>): Promise<void> {
    const bar = h("i", {});
    const text = h("span", { class: "small num" });
    this.element.hidden = false;
    replace(
      this.element,
      text,
      h("span", { class: "progress bulk-progress", role: "progressbar", "aria-label": t("Progress") }, bar),
      button(t("Stop"), {
        kind: "button-sm",
        onClick: () => {
          this.isStopped = true;
        },
      }),
    );
    let below: number | null = null;
    let looked = 0;
    do {
      text.textContent = t("{part} of {whole}", { part: formatNumber(looked), whole: formatNumber(count) });
      bar.style.setProperty("--w", `${Math.min(100, (100 * looked) / Math.max(1, count))}%`);
      const piece: ReturnType<typeof changedAlerts> = await post("alerts/bulk", { matching, action, below }, changedAlerts);
      for (const one of piece.changed) changed.add(one);
      looked += piece.looked_at;
      below = piece.below;
    } while (below !== null && !this.isStopped);
  }
}

/** The maximum of alerts per request. */
const PIECE = 1000;
