/**
 * The editor of constraint queries: the short form, the graph, and the text,
 * three views of one query.
 */

import {
  faultOfMutual,
  freshName,
  fromDocument,
  MOST_VARIABLES,
  mutualOf,
  newConstraint,
  renamed,
  toDocument,
  withMutual,
  without,
  type ConstraintEntries,
  type ConstraintEntry,
  type Mutual,
} from "../../data/constraint_data";
import { closureAnswer, graphEdges, nodeLines, type Closure, type GraphEdge } from "../../data/constraint_graph";
import type { Detection } from "../../lib/shapes";
import { post, reason, type Fault } from "../../lib/api";
import { button, h, icon, replace } from "../../lib/dom";
import { Latest } from "../../lib/latest";
import { isReference } from "../../lib/regions";
import { section } from "../query_form/section";
import { toast } from "../shell_view";
import type { EditorContext, FamilyEditor, MapShape, OpenEditor } from "./editor";
import { GraphView } from "./constraint/graph_view";
import { mutualForm } from "./constraint/mutual_form";
import { optionSections } from "./constraint/option_sections";
import { ConstraintForm, variableForm } from "./constraint/part_forms";
import { betterProposal, firstProposal } from "./constraint/proposal";
import { eventShapes, FoundView } from "./parts/found_view";
import { PlacedTextView } from "./parts/placed_text_view";
import { t } from "../../lib/texts";

const VIEWS = [
  ["short", t("A number of events close together"), "shapes"],
  ["graph", t("Graph"), "waypoints"],
  ["text", t("Text"), "list"],
] as const;
type View = (typeof VIEWS)[number][0];
type Chosen = { kind: "variable"; name: string } | { kind: "constraint"; id: number } | null;
const CLOSURE_AFTER_MS = 250;

export const open: OpenEditor = (document, context) => new ConstraintEditor(document, context);

class ConstraintEditor implements FamilyEditor {
  readonly element = h("div");
  readonly stage = h("div", { class: "constraint-stage" });
  private entries: ConstraintEntries;
  private view: View;
  private chosen: Chosen = null;
  private closure: Closure | null = null;
  private form: ConstraintForm | null = null;
  private detection: Detection | null = null;
  private isClosed = false;
  /** Whether the request was caused by a change of the text, which must then not be replaced. */
  private readonly question = new Latest<[isTyped: boolean]>(
    (signal, isTyped) => this.closed(signal, isTyped),
    (error) => this.unknown(error),
  );
  private readonly tabs = h("div", { class: "segmented", role: "group", "aria-label": t("How to write it") });
  private readonly body = h("div", { class: "constraint-body" });
  private readonly side = h("div", { class: "constraint-side" });
  private readonly list = h("div", { class: "constraint-list" });
  private readonly detail = h("div", { class: "constraint-detail" });
  private readonly note = h("div", { role: "status", "aria-live": "polite" });
  private readonly graph: GraphView;
  private readonly text = new PlacedTextView({
    id: "trigger-text",
    label: t("The query as text"),
    pointer: "/trigger",
    onChange: () => this.textChanged(),
  });
  private readonly found: FoundView;
  private readonly options = h("div", { class: "stack" });

  constructor(
    document: Record<string, unknown>,
    private readonly context: EditorContext,
  ) {
    const trigger = document["trigger"];
    this.entries = fromDocument(document);
    const isNew = this.entries.variables.length === 0;
    // One answer for each event: each set of three cars in a jam would be millions.
    if (isNew) this.entries = withMutual({ ...this.entries, report: "first" }, firstProposal(context.feed));
    this.view = typeof trigger === "string" ? "text" : mutualOf(this.entries) === null ? "graph" : "short";
    if (typeof trigger === "string") this.text.show(trigger);
    delete this.entries.others["trigger"];
    const { constraints } = this.entries;
    if (this.view === "graph" && constraints.length === 1) this.chosen = { kind: "constraint", id: constraints[0]!.id };
    this.graph = new GraphView({ onNode: (name) => this.choose({ kind: "variable", name }), onEdge: (edge) => this.chooseEdge(edge) });
    this.found = new FoundView(context, (row) => {
      this.detection = row;
      this.showMap(row !== null);
    });
    replace(this.side, this.list, this.detail);
    replace(
      this.stage,
      h("div", { class: "row spread row-wrap" }, h("h2", {}, t("Which events belong together?")), this.tabs),
      this.note,
      this.body,
    );
    replace(this.element, this.options, this.found.element);
    this.render();
    this.showMap(true);
    this.ask(0);
    if (isNew) void this.suggest();
  }

  /** A better proposal, unless the reader has started: it replaces the form. */
  private async suggest(): Promise<void> {
    const { entries } = this;
    const proposal = await betterProposal(this.context.feed);
    const hasBegun = this.entries !== entries || this.body.contains(document.activeElement);
    if (proposal === null || this.isClosed || hasBegun) return;
    this.entries = withMutual(entries, proposal);
    this.render();
    this.context.onProposal();
    this.ask(0);
  }

  specification(): Record<string, unknown> {
    return this.view === "text"
      ? { ...this.entries.others, family: "constraint", version: 1, trigger: this.text.text }
      : toDocument(this.entries);
  }

  explained(fault: Fault): Fault {
    return this.view === "short" ? faultOfMutual(fault, this.entries) : fault;
  }

  kinds(): string[] {
    return ["match"];
  }

  answers(rows: readonly Detection[]): void {
    this.found.show(rows);
  }

  close(): void {
    this.isClosed = true;
    this.question.drop();
  }

  // ---- Changes

  private changed(entries: ConstraintEntries): void {
    this.entries = entries;
    this.drawGraph();
    this.context.onChange();
    this.ask();
  }

  private textChanged(): void {
    this.context.onChange();
    this.question.after(CLOSURE_AFTER_MS, true);
  }

  /**
   * The server's analysis: the graph's closure, the other form, the cycle that cannot be satisfied.
   */
  private ask(after = CLOSURE_AFTER_MS): void {
    this.question.after(after, false);
  }

  private async closed(signal: AbortSignal, isTyped: boolean): Promise<void> {
    const answer = await post(
      "queries/closure",
      { feed: this.context.feed.name, specification: this.specification() },
      closureAnswer,
      signal,
    );
    this.closure = answer;
    if (this.view === "text") {
      this.text.showFaults(answer.faults);
      if (answer.document !== null) this.entries = { ...fromDocument(answer.document), others: this.entries.others };
      if (!isTyped) this.showOptions();
    }
    this.drawGraph();
    this.showConflict(answer);
  }

  private unknown(error: unknown): void {
    this.closure = null;
    replace(this.note, h("p", { class: "notice notice-high" }, icon("circle-alert"), h("span", {}, reason(error))));
  }

  private showConflict({ conflict }: Closure): void {
    replace(
      this.note,
      conflict === null
        ? null
        : h(
            "p",
            { class: "notice notice-critical" },
            icon("triangle-alert"),
            h("span", {}, t("No events can satisfy this: "), conflict.reason, "."),
          ),
    );
  }

  // ---- The three views

  private render(): void {
    const isMutual = mutualOf(this.entries) !== null;
    const tabs = VIEWS.map(([view, text, name]) =>
      h(
        "button",
        { type: "button", "aria-pressed": String(view === this.view), "data-view": view, onClick: () => this.turn(view) },
        icon(name),
        text,
      ),
    );
    const hadFocus = this.tabs.contains(document.activeElement);
    replace(this.tabs, ...tabs);
    if (hadFocus) this.tabs.querySelector<HTMLElement>('[aria-pressed="true"]')?.focus();
    this.body.dataset["view"] = this.view;
    if (this.view === "text") replace(this.body, this.text.element);
    else if (this.view === "short" && isMutual) replace(this.body, this.short(), this.graph.element);
    else replace(this.body, this.graph.element, this.side);
    this.showOptions();
    this.showDetail();
    this.drawGraph();
  }

  private async turn(view: View): Promise<void> {
    if (view === this.view) return;
    // The analysis, from which the other form comes, follows the last change
    // by a pause and a request.
    await this.question.settled(this.view === "text");
    if (this.isClosed) return;
    if (this.view === "text" && (this.closure === null || this.closure.document === null)) {
      toast(t("Correct the text first: the graph shows its content."), "critical");
      return;
    }
    if (view === "text") {
      if (this.closure?.text === null || this.closure === null) {
        toast(t("It can be written as text once nothing is missing."), "critical");
        return;
      }
      this.text.show(this.closure.text);
    }
    if (view === "short" && mutualOf(this.entries) === null) {
      this.entries = withMutual(this.entries, {
        k: Math.max(2, this.entries.variables.length),
        within: this.context.feed.time === "ms" ? "PT5M" : 100,
        distance: "",
        where: this.entries.variables[0]?.where ?? [],
        isDifferent: false,
      });
      toast(t("The short form has the same constraints for all events: the graph's other constraints are removed."));
    }
    this.view = view;
    this.chosen = null;
    this.render();
    this.context.onChange();
    this.ask(0);
  }

  private short(): HTMLElement {
    const mutual: Mutual = mutualOf(this.entries) ?? { k: 2, within: null, distance: "", where: [], isDifferent: false };
    return mutualForm(mutual, this.context, (changed) => {
      const before = this.entries.variables.length;
      this.changed(withMutual(this.entries, changed));
      if (this.entries.variables.length !== before) this.showOptions();
    });
  }

  private drawGraph(): void {
    const { entries, context } = this;
    const nodes = entries.variables.map(({ name }) => ({ name, lines: nodeLines(entries, name, context.feed) }));
    const edges = graphEdges(entries, this.closure, context.feed);
    const id = this.chosen?.kind === "constraint" ? this.chosen.id : null;
    const chosen =
      this.chosen?.kind === "variable"
        ? this.chosen.name
        : (edges.find((edge) => id !== null && edge.constraints.includes(id))?.key ?? null);
    this.graph.show(nodes, edges, chosen);
    this.showList();
  }

  // ---- Next to the graph

  private showList(): void {
    const { entries } = this;
    const item = (text: string, isChosen: boolean, chosen: Chosen, isWrong = false): HTMLElement =>
      h(
        "button",
        {
          type: "button",
          class: `button button-sm${isWrong ? " button-danger" : ""}`,
          "aria-pressed": String(isChosen),
          onClick: () => this.choose(isChosen ? null : chosen),
        },
        text,
      );
    const wrong = new Set(this.closure?.conflict?.constraints);
    const isName = (name: string): boolean => this.chosen?.kind === "variable" && this.chosen.name === name;
    replace(
      this.list,
      h("h3", {}, t("Events")),
      h(
        "div",
        { class: "row row-wrap" },
        ...entries.variables.map(({ name }) => item(name, isName(name), { kind: "variable", name })),
        button(t("Add"), {
          icon: "plus",
          kind: "button-sm button-quiet",
          id: "add-variable",
          disabled: entries.variables.length >= MOST_VARIABLES,
          onClick: () => this.addVariable(),
        }),
      ),
      h("h3", {}, t("Constraints")),
      h(
        "div",
        { class: "row row-wrap", "data-pointer": "/constraints" },
        ...entries.constraints.map(({ id, between }, i) =>
          item(
            `${i + 1}: ${between.join(", ")}`,
            this.chosen?.kind === "constraint" && this.chosen.id === id,
            { kind: "constraint", id },
            wrong.has(i),
          ),
        ),
        button(t("Add"), {
          icon: "plus",
          kind: "button-sm button-quiet",
          id: "add-constraint",
          onClick: () => this.addConstraint(entries.variables.slice(0, 2).map(({ name }) => name)),
        }),
        button(t("Arrange"), { icon: "rotate-ccw", kind: "button-sm button-quiet", onClick: () => this.graph.arrange() }),
      ),
    );
  }

  private choose(chosen: Chosen): void {
    if (this.view === "short") this.view = "graph";
    this.chosen = chosen;
    this.render();
    this.showMap(false);
  }

  private chooseEdge({ constraints }: GraphEdge): void {
    const [first] = constraints;
    if (first !== undefined) this.choose({ kind: "constraint", id: first });
    else toast(t("This edge follows from the others: there is nothing to write."));
  }

  private showDetail(): void {
    this.form = null;
    const { chosen, entries } = this;
    const variable = chosen?.kind === "variable" ? entries.variables.find((one) => one.name === chosen.name) : undefined;
    const constraint = chosen?.kind === "constraint" ? entries.constraints.find((one) => one.id === chosen.id) : undefined;
    if (variable !== undefined) {
      replace(
        this.detail,
        variableForm(entries, variable, this.context, {
          onWhere: (where) =>
            this.changed({
              ...this.entries,
              variables: this.entries.variables.map((one) => (one.name === variable.name ? { ...one, where } : one)),
            }),
          onRename: (to) => this.rename(variable.name, to),
          onConnect: (to) => this.connect(variable.name, to),
          onRemove: () => this.removed(without(this.entries, variable.name)),
        }),
      );
    } else if (constraint !== undefined) {
      this.form = this.constraintForm(constraint);
      replace(this.detail, this.form.element);
    } else {
      replace(
        this.detail,
        h("p", { class: "small muted" }, t("Choose an event or a constraint, here or in the graph. Dotted lines follow from the others.")),
      );
    }
  }

  private constraintForm({ id }: ConstraintEntry): ConstraintForm {
    const now = (): ConstraintEntry => this.entries.constraints.find((one) => one.id === id)!;
    return new ConstraintForm(this.entries, now(), this.context, {
      onChange: (change, isOther) => {
        Object.assign(now(), change);
        this.changed({ ...this.entries });
        if (isOther) this.showDetail();
        if (isOther) this.showMap(false);
      },
      onRegion: (isElsewhere) => this.showMap(isElsewhere),
      onRemove: () => this.removed({ ...this.entries, constraints: this.entries.constraints.filter((one) => one.id !== id) }),
    });
  }

  private addVariable(): void {
    const name = freshName(this.entries);
    this.entries = { ...this.entries, variables: [...this.entries.variables, { name, where: [] }] };
    this.choose({ kind: "variable", name });
    this.changed(this.entries);
  }

  private addConstraint(between: string[]): void {
    const constraint: ConstraintEntry = {
      ...newConstraint(between),
      dt: between.length > 1 ? [0, this.context.feed.time === "ms" ? "PT5M" : 100] : null,
    };
    this.entries = { ...this.entries, constraints: [...this.entries.constraints, constraint] };
    this.choose({ kind: "constraint", id: constraint.id });
    this.changed(this.entries);
  }

  /** The constraint between exactly these two, or a new one. */
  private connect(one: string, other: string): void {
    const found = this.entries.constraints.find(({ between }) => between.length === 2 && between.includes(one) && between.includes(other));
    if (found === undefined) this.addConstraint([one, other]);
    else this.choose({ kind: "constraint", id: found.id });
  }

  private rename(from: string, to: string): void {
    this.graph.rename(from, to);
    this.entries = renamed(this.entries, from, to);
    this.choose({ kind: "variable", name: to });
    this.changed(this.entries);
  }

  private removed(entries: ConstraintEntries): void {
    this.entries = entries;
    this.choose(null);
    this.changed(entries);
  }

  // ---- The form's column

  private showOptions(): void {
    const { entries } = this;
    if (this.view === "text") {
      replace(
        this.options,
        section(
          t("Options"),
          h(
            "p",
            { class: "small muted" },
            t("In the text: REPORT ALL or FIRST, EXPIRATION TIGHT, LOOSE or DOMAINS, SYMMETRIC (A, B), conditions on E for all events."),
          ),
        ),
      );
      return;
    }
    replace(this.options, ...optionSections(entries, this.context, (change) => this.changed({ ...this.entries, ...change })));
  }

  // ---- The map

  private showMap(fit: boolean): void {
    const { regions, map } = this.context;
    map.stop();
    const shapes = this.entries.constraints.flatMap(({ id, between, inside }): MapShape[] => {
      const region = inside?.region ?? null;
      if (region === null) return [];
      const isActive = this.chosen?.kind === "constraint" && this.chosen.id === id;
      const own = isActive ? this.form?.region?.shape(true, between.join(", ")) : undefined;
      if (own !== undefined && own !== null) return [own];
      const geometry = isReference(region) ? regions.find((row) => row.name === region.region)?.geometry : region;
      return geometry === undefined ? [] : [{ id: `inside-${id}`, geometry, label: between.join(", "), active: isActive }];
    });
    if (this.form?.region !== null) this.form?.region.draw(false);
    map.show([...shapes, ...(this.detection === null ? [] : eventShapes(this.detection, this.context, "between all"))], fit);
  }
}
