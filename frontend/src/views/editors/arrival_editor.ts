/** The editor of arrivals: where, how far ahead, by which course and speed, and which entities. */

import { fromDocument, toDocument, faultInForm, type ArrivalEntries } from "../../data/arrival_data";
import type { Fault } from "../../lib/api";
import { h } from "../../lib/dom";
import { ConditionsField } from "../query_form/conditions_field";
import { DurationField } from "../query_form/duration_field";
import { section } from "../query_form/section";
import type { EditorContext, FamilyEditor, OpenEditor } from "./editor";
import { WatchedField } from "./parts/watched_field";
import { t } from "../../lib/texts";

type SpanKey = "within" | "over" | "gap";

const SPANS: Record<SpanKey, { label: string; hint: string }> = {
  within: { label: t("Inside within"), hint: t("The query looks this far ahead.") },
  over: {
    label: t("Course and speed over the last"),
    hint: t("From its position this long ago straight to its last report. A longer time is steadier, a shorter one notices turns sooner."),
  },
  gap: { label: t("A report counts for"), hint: t("An entity that is silent for this long is no longer expected.") },
};

export const open: OpenEditor = (document, context) => new ArrivalEditor(document, context);

class ArrivalEditor implements FamilyEditor {
  readonly element = h("div");
  readonly stage = null;
  private readonly entries: ArrivalEntries;

  constructor(
    document: Record<string, unknown>,
    private readonly context: EditorContext,
  ) {
    this.entries = fromDocument(document, context.feed);
    const watched = new WatchedField(this.entries, context, () => context.onChange(), ["region"]);
    const where: ConditionsField = new ConditionsField({
      feed: context.feed,
      value: this.entries.where,
      pointer: "/where",
      id: "where",
      texts: {
        none: t("Everything that moves may be expected."),
        some: t("Only reports that meet all of these count; the others are ignored."),
      },
      onChange: () => this.set({ where: where.value() }),
    });
    this.element.append(
      section(t("Into where?"), watched.element),
      section(t("How far ahead?"), this.span("within"), this.span("over"), this.span("gap")),
      section(t("Who counts?"), where.element),
    );
  }

  specification(): Record<string, unknown> {
    return toDocument(this.entries);
  }

  kinds(): string[] {
    return ["arriving"];
  }

  explained(fault: Fault): Fault {
    return faultInForm(fault);
  }

  private set(change: Partial<ArrivalEntries>): void {
    Object.assign(this.entries, change);
    this.context.onChange();
  }

  private span(key: SpanKey): HTMLElement {
    const field: DurationField = new DurationField({
      id: `arrival-${key}`,
      ...SPANS[key],
      time: this.context.feed.time,
      value: this.entries[key],
      pointer: `/${key}`,
      onChange: () => this.set({ [key]: field.value() }),
    });
    return field.element;
  }
}
