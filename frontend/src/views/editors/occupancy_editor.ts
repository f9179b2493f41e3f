/**
 * The editor of occupancy: where, how many, for how long, and which entities; the count over time
 * as a stepped line over the region.
 */

import {
  COUNTINGS,
  countedAnswer,
  fromDocument,
  toDocument,
  faultInForm,
  type Counting,
  type OccupancyEntries,
} from "../../data/occupancy_data";
import type { PeriodRequest } from "../../data/period";
import type { Detection } from "../../lib/shapes";
import { post, type Fault } from "../../lib/api";
import { h } from "../../lib/dom";
import { Latest } from "../../lib/latest";
import { countLine } from "../count_line_view";
import { ConditionsField } from "../query_form/conditions_field";
import { DurationField } from "../query_form/duration_field";
import { section } from "../query_form/section";
import { fail } from "../shell_view";
import type { EditorContext, FamilyEditor, OpenEditor } from "./editor";
import { WatchedField } from "./parts/watched_field";
import { t } from "../../lib/texts";

const COUNTING_TEXTS: Record<Counting, string> = { ">=": t("At least"), "<=": t("At most") };

export const open: OpenEditor = (document, context) => new OccupancyEditor(document, context);

class OccupancyEditor implements FamilyEditor {
  readonly element = h("div");
  readonly stage = null;
  private readonly entries: OccupancyEntries;
  private readonly watched: WatchedField;
  private readonly question = new Latest<[period: PeriodRequest]>((signal, period) => this.counted(signal, period), fail);

  constructor(
    document: Record<string, unknown>,
    private readonly context: EditorContext,
  ) {
    this.entries = fromDocument(document, context.feed);
    const { feed } = context;
    this.watched = new WatchedField(this.entries, context, () => this.changed());
    const lasting: DurationField = new DurationField({
      id: "lasting",
      label: t("For this long, or longer"),
      time: feed.time,
      value: this.entries.lasting,
      pointer: "/lasting",
      placeholder: t("any time"),
      onChange: () => this.set({ lasting: lasting.value() }),
    });
    const stale: DurationField = new DurationField({
      id: "stale",
      label: t("A report counts for"),
      time: feed.time,
      value: this.entries.stale,
      pointer: "/stale",
      placeholder: t("ever"),
      hint: t("An entity without a report for this long no longer counts. Empty: it counts until its next report."),
      onChange: () => this.set({ stale: stale.value() }),
    });
    const where: ConditionsField = new ConditionsField({
      feed,
      value: this.entries.where,
      pointer: "/where",
      id: "where",
      texts: {
        none: t("Everything that is there counts."),
        some: t("Only reports that meet all of these count; the others are ignored."),
      },
      onChange: () => this.set({ where: where.value() }),
    });
    this.element.append(
      section(t("Where?"), this.watched.element),
      section(t("How many at once?"), this.count(), lasting.element, stale.element),
      section(t("Who counts?"), where.element),
    );
  }

  specification(): Record<string, unknown> {
    return toDocument(this.entries);
  }

  kinds(): string[] {
    return ["occupied"];
  }

  explained(fault: Fault): Fault {
    return faultInForm(fault, this.entries);
  }

  /** The count over the same period is drawn over the region. */
  answers(_: readonly Detection[], period: PeriodRequest): void {
    void this.question.now(period);
  }

  close(): void {
    this.question.drop();
  }

  private set(change: Partial<OccupancyEntries>): void {
    Object.assign(this.entries, change);
    this.changed();
  }

  /** The line of an earlier query would be misleading. */
  private changed(): void {
    this.question.drop();
    this.watched.showPicture(null);
    this.context.onChange();
  }

  private async counted(signal: AbortSignal, period: PeriodRequest): Promise<void> {
    const { feed, timeZone: zone } = this.context;
    const answer = await post(
      "queries/occupancy",
      { feed: feed.name, specification: this.specification(), ...period },
      countedAnswer,
      signal,
    );
    this.watched.showPicture(countLine(answer, { feed, zone, asked: this.entries }));
  }

  private count(): HTMLElement {
    const { counting, count } = this.entries;
    const select = h(
      "select",
      { class: "select", id: "occupancy-counting", "aria-label": t("At least or at most") },
      ...COUNTINGS.map((one) => h("option", { value: one, selected: one === counting }, COUNTING_TEXTS[one])),
    );
    select.addEventListener("change", () => this.set({ counting: select.value as Counting }));
    const input = h("input", {
      class: "input num",
      id: "occupancy-count",
      inputmode: "numeric",
      value: count,
      "aria-label": t("How many"),
      autocomplete: "off",
    });
    input.addEventListener("input", () => this.set({ count: input.value }));
    return h("div", { class: "field", "data-pointer": "/count" }, h("div", { class: "within", "data-pointer": "/count/1" }, select, input));
  }
}
