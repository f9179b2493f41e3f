/**
 * The editor of composite events: the pattern as a tree and as text, its primitives,
 * grouping and time window.
 */

import {
  defaultSpan,
  emptyPrimitive,
  evaluation,
  freshName,
  fromDocument,
  leavesById,
  patternAnswer,
  toDocument,
  undefinedNames,
  withPrimitive,
  withRead,
  withRenamed,
  withRoot,
  type CompositeEntries,
  type PatternAnswer,
} from "../../data/composite_data";
import { CompositeHistory } from "../../data/composite_history";
import "../../styles/composite.css";
import {
  fromTree,
  grouped,
  joined,
  leaf,
  linked,
  moved,
  named,
  namesIn,
  outline,
  patternText,
  removed,
  rowOf,
  turned,
  withSpan,
  type PatternNode,
} from "../../data/composite_tree";
import type { Detection } from "../../lib/shapes";
import { post, reason, type Fault } from "../../lib/api";
import { button, h, icon, replace } from "../../lib/dom";
import { Latest } from "../../lib/latest";
import { isReference, type Geometry } from "../../lib/regions";
import { formatSpan, parseDuration } from "../../lib/time";
import { ConditionsField } from "../query_form/conditions_field";
import { DurationField } from "../query_form/duration_field";
import { section } from "../query_form/section";
import { NodeForm } from "./composite/node_form";
import { PatternTreeView, type Command } from "./composite/tree_view";
import { eventShapes, FoundView } from "./parts/found_view";
import { PlacedTextView } from "./parts/placed_text_view";
import type { EditorContext, FamilyEditor, MapShape, OpenEditor } from "./editor";
import { t } from "../../lib/texts";

const ASK_AFTER_MS = 250;

export const open: OpenEditor = (document, context) => new CompositeEditor(document, context);

class CompositeEditor implements FamilyEditor {
  readonly element = h("div");
  readonly stage = h("div", { class: "composite-stage" });
  private entries: CompositeEntries;
  private chosen: number;
  private answer: PatternAnswer | null = null;
  private faulty: ReadonlySet<string> = new Set();
  private form: NodeForm | null = null;
  private detection: Detection | null = null;
  private readonly history = new CompositeHistory();
  private readonly question = new Latest(
    (signal) => this.asked(signal),
    (error) => replace(this.words, h("p", { class: "muted" }, reason(error))),
  );
  private readonly tree: PatternTreeView;
  private readonly detail = h("div", { class: "panel pattern-detail" });
  private readonly text = new PlacedTextView({
    id: "pattern-text",
    label: t("The pattern as text"),
    pointer: "/pattern",
    onChange: (text) => this.textChanged(text),
  });
  private readonly missing = h("div", { class: "row row-wrap" });
  private readonly words = h("div", { class: "pattern-words", role: "status", "aria-live": "polite" });
  private readonly found: FoundView;

  constructor(
    document: Record<string, unknown>,
    private readonly context: EditorContext,
  ) {
    this.entries = fromDocument(document, context.feed);
    this.chosen = this.entries.root?.id ?? 0;
    this.tree = new PatternTreeView(context.feed, {
      onChoose: (id) => this.choose(id),
      onCommand: (command) => this.run(command),
      onOpen: () => this.form?.focus(),
    });
    this.found = new FoundView(context, (row) => {
      this.detection = row;
      this.showShapes(row !== null);
    });
    replace(
      this.stage,
      h(
        "div",
        { class: "row spread row-wrap" },
        h("h2", {}, t("Which events, and how do they follow?")),
        h(
          "span",
          { class: "small faint" },
          h("kbd", {}, "↑"),
          " ",
          h("kbd", {}, "↓"),
          t(" choose, "),
          h("kbd", {}, "Enter"),
          t(" writes, "),
          h("kbd", {}, "Esc"),
          t(" goes back"),
        ),
      ),
      h("div", { class: "composite-body" }, this.tree.element, this.detail),
      h(
        "div",
        { class: "composite-written" },
        h("div", { class: "stack" }, h("h3", {}, t("As text")), this.text.element, this.missing, written(defaultSpan(context.feed))),
        h("div", { class: "stack" }, h("h3", {}, t("In words")), this.words),
      ),
    );
    replace(this.element, ...this.sections(), this.found.element);
    this.text.show(this.textNow());
    this.showTree();
    this.showDetail();
    this.showShapes(true);
    this.ask(0);
  }

  specification(): Record<string, unknown> {
    return toDocument(this.entries);
  }

  kinds(): string[] {
    return ["detection"];
  }

  faults(faults: readonly Fault[]): void {
    const names = faults.flatMap(({ pointer }) => /^\/primitives\/([^/]+)/.exec(pointer)?.[1] ?? []);
    this.faulty = new Set(names);
    this.showTree();
  }

  answers(rows: readonly Detection[]): void {
    this.found.show(rows);
  }

  close(): void {
    this.question.drop();
  }

  // ---- The form's column

  private sections(): HTMLElement[] {
    const { feed } = this.context;
    const within: DurationField = new DurationField({
      id: "composite-within",
      label: t("From the first event to the last"),
      time: feed.time,
      value: this.entries.within,
      pointer: "/within",
      onChange: () => this.set({ within: within.value() }),
    });
    const where: ConditionsField = new ConditionsField({
      feed,
      value: this.entries.where,
      pointer: "/where",
      id: "where",
      onChange: () => this.set({ where: where.value() }),
    });
    const per = (isPerEntity: boolean, text: string): HTMLElement => {
      const input = h("input", { type: "radio", name: "composite-per", checked: this.entries.isPerEntity === isPerEntity });
      input.addEventListener("change", () => this.set({ isPerEntity }));
      return h("label", { class: "check" }, input, text);
    };
    return [
      section(
        t("Whose events?"),
        h(
          "div",
          { class: "stack", role: "radiogroup", "aria-label": t("Whose events?"), "data-pointer": "/per" },
          per(true, t("All events are of one and the same entity")),
          per(false, t("Events of any entities together")),
        ),
      ),
      section(t("Within what time?"), within.element),
      section(t("Which events count?"), where.element),
    ];
  }

  private set(change: Partial<CompositeEntries>): void {
    this.entries = { ...this.entries, ...change };
    this.context.onChange();
    this.ask();
  }

  // ---- The pattern

  private textNow(): string {
    const { written, root } = this.entries;
    return typeof written === "string" ? written : root === null ? "" : patternText(root);
  }

  /** The tree was changed: the text follows immediately. */
  private changed(entries: CompositeEntries, chosen: number): void {
    this.entries = entries;
    this.chosen = entries.root !== null && rowOf(entries.root, chosen) === null ? entries.root.id : chosen;
    this.text.show(this.textNow());
    this.showTree();
    this.showDetail();
    this.showShapes(false);
    this.context.onChange();
    this.ask();
  }

  private treeChanged(change: (root: PatternNode) => PatternNode, chosen = this.chosen): void {
    const { root } = this.entries;
    if (root !== null) this.changed(withRoot(this.entries, change(root)), chosen);
  }

  /** The text was changed: the tree follows when the server has parsed it. */
  private textChanged(text: string): void {
    this.remember("text");
    this.entries = { ...this.entries, written: text };
    this.context.onChange();
    this.ask();
  }

  private choose(id: number): void {
    if (id === this.chosen) return;
    this.chosen = id;
    this.showTree();
    this.showDetail();
    this.showShapes(false);
  }

  private run(command: Command): void {
    if (command === "undo") {
      this.undo();
      return;
    }
    const { root } = this.entries;
    const row = root === null ? null : rowOf(root, this.chosen);
    if (root === null || row === null) return;
    const { id } = row.node;
    this.remember();
    if (command === "up" || command === "down") this.treeChanged((one) => moved(one, id, command === "up" ? -1 : 1));
    else if (command === "group") this.treeChanged((one) => grouped(one, id));
    else if (command === "remove") this.treeChanged((one) => removed(one, id), neighbour(root, id));
    else this.add(command, id);
    this.tree.focus();
  }

  /** Called before a change. */
  private remember(where = ""): void {
    this.history.remember(this.entries, this.chosen, where);
  }

  private undo(): void {
    const earlier = this.history.undo(this.entries);
    if (earlier === null) return;
    this.changed({ ...this.entries, ...earlier.entries }, earlier.chosen);
    this.tree.focus();
  }

  private add(command: Exclude<Command, "up" | "down" | "group" | "remove" | "undo">, id: number): void {
    const fresh = leaf(freshName(this.entries));
    this.entries = withPrimitive(this.entries, fresh.name, emptyPrimitive());
    this.treeChanged(
      (one) =>
        command === "without" ? linked(one, id, { without: fresh }) : joined(one, id, command, fresh, defaultSpan(this.context.feed)),
      fresh.id,
    );
  }

  private rename(name: string): void {
    const { root, primitives } = this.entries;
    const row = root === null ? null : rowOf(root, this.chosen);
    if (root === null || row === null) return;
    this.remember();
    // The name of another primitive of the pattern: the leaf becomes that one. An unused
    // former name is free again.
    if (namesIn(root).includes(name)) this.treeChanged((one) => named(one, row.node.id, name));
    else if (primitives.has(row.node.name)) this.changed(withRenamed(this.entries, row.node.name, name), this.chosen);
    else this.changed(withPrimitive(withRoot(this.entries, named(root, row.node.id, name)), name, emptyPrimitive()), this.chosen);
  }

  // ---- The server's analysis

  private ask(after = ASK_AFTER_MS): void {
    this.question.after(after);
  }

  private async asked(signal: AbortSignal): Promise<void> {
    const { written } = this.entries;
    const answer = await post(
      "queries/pattern",
      { feed: this.context.feed.name, specification: this.specification() },
      patternAnswer,
      signal,
    );
    if (written === this.entries.written) this.take(answer);
  }

  private take(answer: PatternAnswer): void {
    this.answer = answer;
    this.text.showFaults(answer.faults.filter(({ pointer }) => pointer.startsWith("/pattern")));
    const { root } = this.entries;
    const read = fromTree(answer.tree);
    if (read !== null && (root === null || patternText(read) !== patternText(root))) {
      // The text was rewritten: the selection stays at the same position in the outline.
      const at = root === null ? 0 : outline(root).findIndex(({ node }) => node.id === this.chosen);
      const rows = outline(read);
      this.entries = withRead(this.entries, read);
      this.chosen = rows[Math.min(Math.max(0, at), rows.length - 1)]!.node.id;
      this.showDetail();
      this.showShapes(root === null);
      this.context.onProposal();
    }
    this.showTree();
    this.showWords();
  }

  private showWords(): void {
    const missing = undefinedNames(this.entries);
    const define = (name: string): HTMLElement =>
      button(t("Define {name}", { name }), {
        icon: "plus",
        kind: "button-sm",
        onClick: () => {
          this.remember();
          this.changed(withPrimitive(this.entries, name, emptyPrimitive()), this.chosen);
        },
      });
    replace(this.missing, ...missing.map(define));
    if (this.answer === null || this.answer.words === null) {
      replace(this.words, h("p", { class: "muted" }, t("The text is not right yet.")));
      return;
    }
    const { triggers, needed } = evaluation(this.answer.leaves);
    const strong = (names: string[]): HTMLElement[] =>
      names.map((name, i) => h("span", {}, i > 0 ? ", " : "", h("strong", { class: "mono" }, name)));
    const length = this.entries.within === null ? null : parseDuration(this.entries.within);
    const before = length === null ? t("before") : t("in the {length} before", { length: formatSpan(length, this.context.feed.time) });
    const condition = needed.length === 0 ? [] : [t(", and only if "), ...strong(needed), t(" came {before}", { before })];
    replace(
      this.words,
      h("p", { class: "sentence-text" }, `${this.answer.words}.`),
      h(
        "p",
        { class: "small muted pattern-evaluation" },
        icon("zap"),
        h("span", {}, t("Evaluated when "), ...strong(triggers), triggers.length === 1 ? t(" comes") : t(" come"), ...condition, "."),
      ),
    );
  }

  // ---- Display

  private showTree(): void {
    const { entries, chosen, faulty, answer } = this;
    const leaves = entries.root === null || answer === null ? new Map<number, never>() : leavesById(entries.root, answer.leaves);
    this.tree.show({ entries, leaves, faulty, chosen, canUndo: this.history.canUndo(entries) });
  }

  private showDetail(): void {
    const row = this.entries.root === null ? null : rowOf(this.entries.root, this.chosen);
    this.context.map.stop();
    this.form = null;
    if (row === null) {
      replace(this.detail, h("div", { class: "skeleton" }));
      return;
    }
    const { id } = row.node;
    this.form = new NodeForm(this.entries, row, this.context, {
      onPrimitive: (name, entry) => this.meant(withPrimitive(this.entries, name, entry), name),
      onName: (name) => this.rename(name),
      onOperator: (op) => {
        this.remember();
        this.treeChanged((one) => turned(one, id, op, defaultSpan(this.context.feed)));
      },
      onSpan: (span) => this.quietly((one) => withSpan(one, id, span)),
      onBounds: (bounds) => this.quietly((one) => linked(one, id, { bounds })),
      onRegion: (isElsewhere) => this.showShapes(isElsewhere),
      onDone: () => this.tree.focus(),
    });
    replace(this.detail, this.form.element);
  }

  /** A primitive was redefined: the form is kept, unless there was none. */
  private meant(entries: CompositeEntries, name: string): void {
    this.remember(`form-${name}`);
    const wasDefined = this.entries.primitives.has(name);
    this.entries = entries;
    this.showTree();
    if (!wasDefined) this.showDetail();
    this.context.onChange();
    this.ask();
  }

  /** A change made in the form, which is kept. */
  private quietly(change: (root: PatternNode) => PatternNode): void {
    const { root } = this.entries;
    if (root === null) return;
    this.remember(`form-${this.chosen}`);
    this.entries = withRoot(this.entries, change(root));
    this.text.show(this.textNow());
    this.showTree();
    this.context.onChange();
    this.ask();
  }

  // ---- The map

  private showShapes(fit: boolean): void {
    const { root, primitives } = this.entries;
    const name = root === null ? null : rowOf(root, this.chosen)?.node.name;
    const own = (this.form?.regions ?? []).flatMap(({ key, choice }) => choice.shape(true, `${key} ${name ?? ""}`) ?? []);
    const others = (root === null ? [] : namesIn(root))
      .filter((one) => one !== name)
      .flatMap((one) => this.shapesOf(one, primitives.get(one)?.inside ?? null));
    this.context.map.show(
      [...others, ...own, ...(this.detection === null ? [] : eventShapes(this.detection, this.context, "in order"))],
      fit,
    );
  }

  private shapesOf(name: string, region: Geometry | { region: string } | null): MapShape[] {
    const geometry = isReference(region) ? (this.context.regions.find((row) => row.name === region.region)?.geometry ?? null) : region;
    return geometry === null ? [] : [{ id: `primitive-${name}`, geometry, label: name, active: false }];
  }
}

/** Operators of the language, with an example time in the feed's unit. */
function written(span: number | string): HTMLElement {
  const forms = [
    ["A : B", t("then")],
    [`A :[0,${span}] B`, t("within a time after it")],
    [`A ;[${span}] B`, t("within a time of each other")],
    ["A : !B : C", t("none between")],
    [`A : !B[${span}]`, t("none for a time after it")],
    [`!B[${span}] : A`, t("none for a time before it")],
    [`A AND !B[${span}]`, t("none before or after it")],
  ];
  return h(
    "p",
    { class: "small muted pattern-forms" },
    ...forms.map(([form, words]) => h("span", {}, h("code", { class: "mono" }, form), ` ${words}`)),
    h("span", {}, h("code", { class: "mono" }, "AND  OR  ( )")),
  );
}

/** What is selected when a node is removed: the node before it, else its parent. */
function neighbour(root: PatternNode, id: number): number {
  const row = rowOf(root, id);
  if (row === null || row.parent === null) return root.id;
  return row.parent.parts[row.index - 1]?.id ?? row.parent.parts[row.index + 1]?.id ?? row.parent.id;
}
