/**
 * Templates to begin with: choose one, fill in the parameters in its sentence,
 * and its rules are generated.
 */

import {
  grouped,
  sentenceParts,
  shown,
  filledSentence,
  templateList,
  type Parameter,
  type Template,
} from "../../../data/calculus_template_data";
import { fromDuration, toDuration, type SpanUnit } from "../../../data/query_form_data";
import type { Feed, RegionRow } from "../../../lib/shapes";
import { ApiError, get, post, query as address, reason } from "../../../lib/api";
import { filledTemplate } from "../../../lib/answers";
import { button, h, icon, replace } from "../../../lib/dom";
import { Latest } from "../../../lib/latest";
import { isReference } from "../../../lib/regions";
import { valuesOf } from "../../query_form/frequent_values";
import { unitSelect } from "../../query_form/unit_select";
import { t } from "../../../lib/texts";

/** A program generated from a template: the template's title, and the sentence with its values. */
export interface Filled {
  specification: Record<string, unknown>;
  title: string;
  sentence: string;
}

export interface GalleryOptions {
  feed: Feed;
  regions: readonly RegionRow[];
  onFilled: (filled: Filled) => void;
}

export class GalleryView {
  readonly element: HTMLDetailsElement;
  private readonly list = h("div", { class: "calculus-templates" }, h("div", { class: "skeleton" }));
  private readonly detail = h("div", { class: "calculus-template", hidden: true });
  private readonly question = new Latest<[template: Template, values: Record<string, unknown>]>(
    (signal, template, values) => this.filled(signal, template, values),
    (error) => this.refused(error),
  );
  private template: Template | null = null;

  constructor(
    private readonly options: GalleryOptions,
    isOpen: boolean,
  ) {
    this.element = h(
      "details",
      { class: "panel calculus-gallery", open: isOpen },
      h(
        "summary",
        { class: "calculus-summary" },
        icon("layers"),
        h("strong", {}, t("Begin with a template")),
        h("span", { class: "hint" }, t("Choose a situation, fill in the numbers, and edit its rules.")),
      ),
      this.list,
      this.detail,
    );
    if (isOpen) void this.load();
    else this.element.addEventListener("toggle", () => void this.load(), { once: true });
  }

  private async load(): Promise<void> {
    try {
      const { templates } = await get(address("queries/gallery", { feed: this.options.feed.name }), templateList);
      replace(this.list, ...grouped(templates).map(([group, ones]) => this.group(group, ones)));
    } catch (error) {
      replace(this.list, h("p", { class: "notice notice-critical" }, icon("circle-alert"), reason(error)));
    }
  }

  private group(title: string, templates: readonly Template[]): HTMLElement {
    const card = (one: Template): HTMLElement => {
      const input = h("input", {
        type: "radio",
        name: "calculus-template",
        value: one.name,
        class: "visually-hidden",
        disabled: one.unsuited !== null,
        onChange: () => this.choose(one),
      });
      const note = one.unsuited ?? (one.events.length > 0 ? t("Needs the events {events}.", { events: one.events.join(", ") }) : "");
      return h(
        "label",
        { class: "calculus-card", title: note },
        input,
        h("span", {}, one.title),
        one.events.length > 0 || one.unsuited !== null ? icon("info") : null,
      );
    };
    return h("fieldset", { class: "calculus-group" }, h("legend", { class: "hint" }, title), ...templates.map(card));
  }

  private choose(template: Template): void {
    const values = Object.fromEntries(template.parameters.map((one) => [one.name, one.value]));
    this.template = template;
    const fill = (): void => void this.question.now(template, values);
    const parts = sentenceParts(template).map((part) =>
      "text" in part ? h("span", {}, part.text) : this.field(part.parameter, values, fill),
    );
    const note =
      template.events.length === 0
        ? null
        : h(
            "p",
            { class: "small muted row" },
            icon("info"),
            t("The feed's rows must contain the events {events}.", { events: template.events.join(", ") }),
          );
    const done = button(t("Continue with these rules"), { icon: "check", kind: "button-sm", onClick: () => (this.element.open = false) });
    replace(this.detail, h("p", { class: "calculus-sentence" }, ...parts), note, h("div", { class: "row" }, this.state, done));
    this.detail.hidden = false;
    fill();
  }

  private readonly state = h("span", { class: "small grow", role: "status" });

  private async filled(signal: AbortSignal, template: Template, values: Record<string, unknown>): Promise<void> {
    const { specification } = await post(
      "queries/gallery",
      { feed: this.options.feed.name, template: template.name, values },
      filledTemplate,
      signal,
    );
    this.mark([]);
    replace(this.state, t("The rules are written below."));
    const sentence = filledSentence(template, values, this.options.feed.time);
    this.options.onFilled({ specification, title: template.title, sentence });
  }

  private refused(error: unknown): void {
    const faults = error instanceof ApiError ? error.faults : [];
    this.mark(faults.map((fault) => fault.pointer.replace("/values/", "")));
    const labels = new Map(this.template?.parameters.map((one) => [`/values/${one.name}`, one.label]));
    const named = faults.map((fault) => `${labels.get(fault.pointer) ?? ""}: ${fault.message}`);
    replace(this.state, h("span", { class: "fault" }, icon("circle-alert"), named.length > 0 ? named.join(" ") : reason(error)));
  }

  private mark(faulty: readonly string[]): void {
    for (const field of this.detail.querySelectorAll<HTMLElement>("[data-parameter]"))
      field.setAttribute("aria-invalid", String(faulty.includes(field.dataset["parameter"] ?? "")));
  }

  /** The control for a parameter within the sentence. */
  private field(parameter: Parameter, values: Record<string, unknown>, onChange: () => void): HTMLElement {
    const { name, kind, label, unit, options } = parameter;
    const common = { "data-parameter": name, "aria-label": label };
    const set = (value: unknown): void => {
      values[name] = value;
      onChange();
    };
    if (kind === "duration") return this.duration(parameter, common, set);
    if (kind === "column") return select(common, options, values[name], set);
    if (kind === "region") {
      const names = this.options.regions.map((row) => row.name);
      const value = isReference(values[name]) ? values[name].region : "";
      return select(common, names.length === 0 ? [] : names, value, (region) => set({ region }), t("choose an area"));
    }
    const isNumber = kind === "number" || kind === "length";
    const known = h("datalist", { id: `calculus-known-${name}` });
    const input = h("input", {
      class: "input input-sm calculus-value",
      inputmode: isNumber ? "decimal" : "text",
      value: shown(values[name]),
      autocomplete: "off",
      ...(isNumber ? {} : { list: known.id }),
      ...common,
    });
    input.addEventListener("input", () => set(isNumber ? numeric(input.value) : input.value));
    if (!isNumber) input.addEventListener("focus", () => void this.offer(values, known));
    return h("span", { class: "calculus-field" }, input, known, unit === "" ? null : unit);
  }

  /** A text is a value of the template's column. */
  private async offer(values: Record<string, unknown>, known: HTMLElement): Promise<void> {
    const column = this.template?.parameters.find(({ kind }) => kind === "column");
    const name = column === undefined ? undefined : values[column.name];
    const offered = typeof name === "string" ? await valuesOf(this.options.feed, name) : [];
    replace(known, ...offered.map((value) => h("option", { value })));
  }

  private duration({ value, label }: Parameter, common: Record<string, string>, set: (value: unknown) => void): HTMLElement {
    const { time } = this.options.feed;
    const { amount, unit } = fromDuration(value, time);
    const input = h("input", {
      class: "input input-sm calculus-value",
      inputmode: "decimal",
      value: amount,
      autocomplete: "off",
      ...common,
    });
    const choice = unitSelect(input, { time, unit, label, kind: "select select-sm" });
    const changed = (): void => set(toDuration(input.value, choice.value as SpanUnit) ?? input.value);
    input.addEventListener("input", changed);
    choice.addEventListener("change", changed);
    return h("span", { class: "calculus-field" }, input, choice);
  }
}

function select(
  common: Record<string, string>,
  options: readonly string[],
  value: unknown,
  set: (value: string) => void,
  missing = "none",
): HTMLSelectElement {
  const chosen = typeof value === "string" ? value : "";
  const blank = options.includes(chosen) ? [] : [h("option", { value: "", selected: true }, missing)];
  const element = h(
    "select",
    { class: "select select-sm", ...common },
    ...blank,
    ...options.map((one) => h("option", { value: one, selected: one === chosen }, one)),
  );
  element.addEventListener("change", () => set(element.value));
  return element;
}

function numeric(text: string): number | string {
  const value = Number(text.trim().replace(",", "."));
  return text.trim() === "" || !Number.isFinite(value) ? text : value;
}
