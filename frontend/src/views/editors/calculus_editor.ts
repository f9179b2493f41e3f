/** The editor of rule programs: templates, the rules' text, inputs and outputs, and a sandbox. */

import "../../styles/calculus.css";
import { faultInForm, fromCalculus, outputsOf, toCalculus, withInputs, type CalculusEntries } from "../../data/calculus_document_data";
import { namesOf, placed, quoted } from "../../data/calculus_program_data";
import { trialRequestOf } from "../../data/period";
import type { Fault } from "../../lib/api";
import { button, h, icon, replace } from "../../lib/dom";
import { asGeometry, isReference } from "../../lib/regions";
import { DurationField } from "../query_form/duration_field";
import { section } from "../query_form/section";
import { GalleryView, type Filled } from "./calculus/gallery_view";
import { InputsView } from "./calculus/inputs_view";
import { RuleEditor } from "./calculus/rule_editor";
import { SandboxView } from "./calculus/sandbox_view";
import type { EditorContext, FamilyEditor, OpenEditor } from "./editor";
import { t } from "../../lib/texts";

export const open: OpenEditor = (document, context) => new CalculusEditor(document, context);

class CalculusEditor implements FamilyEditor {
  readonly stage = h("div", { class: "calculus-stage" });
  readonly element = h("div", {});
  private entries: CalculusEntries;
  private readonly rules: RuleEditor;
  private readonly sandbox: SandboxView;
  private readonly inputs: InputsView;
  private readonly outputs = h("div", { class: "calculus-outputs", "data-pointer": "/outputs", role: "group", "aria-label": t("Answers") });
  private readonly areas = h("div", { class: "stack", "data-pointer": "/areas" });
  private readonly times = h("div", { class: "stack" });
  private readonly sentence = h("p", { class: "small muted", hidden: true });
  /** What a template generated last: another program is the reader's own work. */
  private generated = "";
  /** Of the template that generated the rules. */
  private templateTitle: string | null = null;
  /** The reader's own entries that a template replaced. */
  private own: CalculusEntries | null = null;
  private window!: DurationField;
  private step!: DurationField;
  private shownOutputs = "";
  private shownAreas = "";

  constructor(
    document: Record<string, unknown>,
    private readonly context: EditorContext,
  ) {
    const { feed, regions, timeZone } = context;
    this.entries = fromCalculus(document, feed);
    this.rules = new RuleEditor({
      text: this.entries.program,
      known: () => ({ regions: regions.map((row) => row.name), inputs: this.entries.inputs }),
      onChange: (program) => this.change({ program }),
    });
    this.sandbox = new SandboxView({
      feed,
      zone: timeZone,
      specification: () => ({ ...this.specification(), ...context.common() }),
      onPoint: (lines) => this.rules.point(lines, true),
      onFaults: (error) => this.faults(error.faults.map((fault) => ({ ...fault, pointer: fault.pointer.replace(/^\/specification/, "") }))),
    });
    this.inputs = new InputsView(feed, (inputs) => this.change({ inputs }));
    const gallery = new GalleryView({ feed, regions, onFilled: (filled) => this.take(filled) }, this.entries.program === "");
    const text = h(
      "section",
      { class: "panel calculus-rules", "data-pointer": "/program" },
      h(
        "div",
        { class: "panel-head" },
        h("h2", {}, t("Rules")),
        h("span", { class: "hint" }, t("RTEC’s notation; Ctrl+Space lists what can be written here.")),
      ),
      this.sentence,
      this.rules.element,
    );
    this.stage.append(gallery.element, h("div", { class: "calculus-work" }, text, this.sandbox.element));
    this.element.append(
      section(t("What does it answer?"), this.outputs),
      section(t("How far does it look?"), this.times),
      section(t("What goes in?"), this.inputs.element),
      section(t("Which areas?"), this.areas),
    );
    this.showTimes();
    this.show();
    const request = trialRequestOf(location.search);
    if (request !== null) this.sandbox.tryRequested(request);
  }

  specification(): Record<string, unknown> {
    return toCalculus({ ...this.entries, window: this.window.value(), step: this.step.value() });
  }

  kinds(): string[] {
    return outputsOf(this.entries, namesOf(this.entries.program));
  }

  title(): string | null {
    return this.templateTitle;
  }

  explained(fault: Fault): Fault {
    return faultInForm(fault);
  }

  faults(faults: readonly Fault[]): void {
    this.rules.setFaults(faults.flatMap((fault) => placed(fault) ?? []));
  }

  close(): void {
    this.sandbox.close();
    this.rules.close();
  }

  /**
   * A template's specification replaces the document; keys that the form does not show are kept.
   */
  private take({ specification, sentence, title }: Filled): void {
    this.templateTitle = title;
    const { others, distributed, program } = this.entries;
    if (program.trim() !== "" && program !== this.generated) this.own = this.entries;
    const taken = fromCalculus({ ...others, distributed, ...specification }, this.context.feed);
    this.generated = taken.program;
    const { own } = this;
    const back =
      own === null
        ? null
        : button(t("Bring back my own rules"), { icon: "undo-2", kind: "button-quiet button-sm", onClick: () => this.giveBack(own) });
    replace(this.sentence, icon("layers"), ` ${sentence} `, back);
    this.sentence.hidden = false;
    this.begin(taken);
  }

  private giveBack(own: CalculusEntries): void {
    this.own = this.templateTitle = null;
    this.sentence.hidden = true;
    this.begin(own);
  }

  private begin(entries: CalculusEntries): void {
    this.entries = entries;
    this.rules.setText(entries.program);
    this.showTimes();
    this.changed();
  }

  private change(change: Partial<CalculusEntries>): void {
    this.entries = { ...this.entries, ...change };
    this.changed();
  }

  private changed(): void {
    this.show();
    this.sandbox.changed();
    this.context.onChange();
  }

  private show(): void {
    const names = namesOf(this.entries.program);
    this.entries = withInputs(this.entries, names, this.context.feed);
    this.inputs.show(this.entries, names);
    this.showOutputs();
    this.showAreas(names.regions);
  }

  private showTimes(): void {
    const { time } = this.context.feed;
    const onChange = (): void => this.change({ window: this.window.value(), step: this.step.value() });
    this.window = new DurationField({
      id: "calculus-window",
      label: t("Window length"),
      time,
      value: this.entries.window,
      pointer: "/window",
      hint: t("Events later than this no longer revise answers. What holds continues to hold."),
      onChange,
    });
    this.step = new DurationField({
      id: "calculus-step",
      label: t("Evaluate every"),
      time,
      value: this.entries.step,
      pointer: "/step",
      onChange,
    });
    replace(this.times, this.window.element, this.step.element, this.distribution());
  }

  private distribution(): HTMLElement {
    const box = h("input", { type: "checkbox", id: "calculus-distributed", checked: this.entries.distributed });
    box.addEventListener("change", () => this.change({ distributed: box.checked }));
    return h(
      "label",
      { class: "check", "data-pointer": "/distributed" },
      box,
      h(
        "span",
        {},
        t("Several executors share its work"),
        h("span", { class: "hint" }, t(" for a program that compares very many pairs; the answers are the same")),
      ),
    );
  }

  private showOutputs(): void {
    const names = namesOf(this.entries.program);
    const chosen = outputsOf(this.entries, names);
    const key = JSON.stringify([names.defined, chosen]);
    if (key === this.shownOutputs) return;
    this.shownOutputs = key;
    const boxes = names.defined.map(({ name, kind, args }) => {
      const box = h("input", { type: "checkbox", id: `output-${name}`, checked: chosen.includes(name) });
      box.addEventListener("change", () => {
        const now = outputsOf(this.entries, namesOf(this.entries.program));
        this.change({ outputs: box.checked ? [...now, name] : now.filter((one) => one !== name) });
        document.getElementById(box.id)?.focus();
      });
      return h(
        "label",
        { class: "check" },
        box,
        h(
          "span",
          {},
          h("code", { class: "mono" }, args.length > 0 ? `${name}(${args.join(", ")})` : name),
          h("span", { class: "hint" }, kind === "event" ? t(" event") : t(" fluent")),
        ),
      );
    });
    replace(
      this.outputs,
      ...(boxes.length > 0 ? boxes : [h("p", { class: "small muted" }, t("Fluents and events that rules define can be chosen here."))]),
    );
  }

  /** The names of regions in the text: each is one of `areas`, or a stored region of that name. */
  private showAreas(names: readonly string[]): void {
    const { regions, map } = this.context;
    const key = JSON.stringify([names, this.entries.areas]);
    if (key === this.shownAreas) return;
    this.shownAreas = key;
    this.areas.closest("section")?.toggleAttribute("hidden", names.length === 0);
    replace(this.areas, ...names.map((name) => this.area(name)));
    const shapes = names.flatMap((name) => {
      const value = this.entries.areas[name] ?? { region: name };
      const geometry = isReference(value) ? (regions.find((row) => row.name === value.region)?.geometry ?? null) : asGeometry(value);
      return geometry === null ? [] : [{ id: `area-${name}`, geometry, label: name, active: false }];
    });
    map.show(shapes, true);
  }

  private area(name: string): HTMLElement {
    const { regions, map } = this.context;
    const value = this.entries.areas[name];
    const chosen = isReference(value) ? value.region : value === undefined && regions.some((row) => row.name === name) ? name : "";
    const select = h(
      "select",
      { class: "select select-sm", id: `area-${name}`, "aria-label": t("Region of {name}", { name }) },
      h("option", { value: "" }, value !== undefined && !isReference(value) ? t("drawn on the map") : t("Choose a stored region")),
      ...regions.map((row) => h("option", { value: row.name, selected: row.name === chosen }, row.name)),
    );
    const set = (region: unknown): void => this.change({ areas: { ...this.entries.areas, [name]: region } });
    select.addEventListener("change", () => {
      if (select.value !== "") set({ region: select.value });
    });
    const draw = h(
      "button",
      {
        type: "button",
        class: "button button-sm",
        onClick: () => map.ask("region", (geometry) => Array.isArray(geometry) || set(geometry)),
      },
      icon("pentagon"),
      t("Draw"),
    );
    return h("div", { class: "calculus-area", "data-pointer": `/areas/${name}` }, h("code", { class: "mono" }, quoted(name)), select, draw);
  }
}
