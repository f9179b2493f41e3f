/**
 * On a demo feed: how much of the simulated ground truth the queries found, and how many
 * of their answers are right.
 */

import { t } from "../lib/texts";
import { get, query } from "../lib/api";
import { scores, type Score } from "../lib/answers";
import { h, replace } from "../lib/dom";
import { familyName, inSentence } from "../lib/words";

const MINUTES = 30;
const EVERY_MS = 15_000;

export class TruthView {
  /** Hidden while there is nothing to show: on every feed that is not a demo. */
  readonly element = h("section", { class: "truth", hidden: true, "aria-label": t("Answers against what truly happened") });
  private timer: ReturnType<typeof setInterval> | null = null;

  constructor(private readonly feed: string) {}

  /** Polls until closed; may be called again. */
  open(): void {
    if (this.timer !== null) return;
    this.timer = setInterval(() => void this.refresh(), EVERY_MS);
    void this.refresh();
  }

  close(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }

  private async refresh(): Promise<void> {
    if (document.hidden) return;
    try {
      this.show((await get(query("detections/scores", { feed: this.feed, minutes: MINUTES }), scores)).scores);
    } catch {
      // This is an extra of the demo: the page works without it.
      this.element.hidden = true;
    }
  }

  private show(rows: Score[]): void {
    this.element.hidden = rows.length === 0;
    replace(
      this.element,
      h("h3", {}, t("Simulated truth, last {MINUTES} minutes", { MINUTES })),
      h(
        "table",
        { class: "truth-table num" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, t("What happened")),
            h("th", { scope: "col", title: t("Recall: of what happened, how much was found") }, t("Found")),
            h("th", { scope: "col", title: t("Precision: of the answers, how many are right") }, t("Right")),
          ),
        ),
        h(
          "tbody",
          {},
          ...rows.map((row) =>
            h(
              "tr",
              { class: isPerfect(row) ? "" : "truth-off" },
              h("th", { scope: "row" }, words(row, rows)),
              h("td", {}, share(row.found, row.happened)),
              h("td", {}, share(row.right, row.reported)),
            ),
          ),
        ),
      ),
    );
  }
}

function isPerfect(row: Score): boolean {
  return row.found === row.happened && row.right === row.reported;
}

/** "5 of 5"; a dash if nothing happened. */
function share(part: number, whole: number): string {
  return whole === 0 ? "–" : t("{part} of {whole}", { part, whole });
}

/** The kind of event, with the family if two families report it. */
function words({ kind, family }: Score, rows: readonly Score[]): string {
  const text = kind.replaceAll("-", " ");
  const isOne = rows.filter((row) => row.kind === kind).length === 1;
  return text.charAt(0).toUpperCase() + text.slice(1) + (isOne ? "" : ` (${inSentence(familyName(family))})`);
}
