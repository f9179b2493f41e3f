/**
 * The pattern as a tree: one item has the focus, arrow keys move it, letters and buttons
 * change the tree around it.
 */

import { boundsWords, operatorWords, primitiveWords, type CompositeEntries, type Leaf } from "../../../data/composite_data";
import { canGroup, canMove, outline, type PatternNode, type Row } from "../../../data/composite_tree";
import type { Feed } from "../../../lib/shapes";
import { button, h, icon, iconButton, replace } from "../../../lib/dom";
import { t } from "../../../lib/texts";

const OPERATOR_NAMES: Record<PatternNode["op"], string> = {
  sequence: "SEQUENCE",
  and: "AND",
  or: "OR",
  interval: "INTERVAL",
  absence: "NOT AFTER",
  before: "NOT BEFORE",
  around: "NOT AROUND",
  primitive: "",
};

const COMMANDS = [
  { name: "sequence", key: "t", text: t("Then"), title: t("Another event after it") },
  { name: "and", key: "a", text: t("And"), title: t("Another event too, in any order") },
  { name: "or", key: "o", text: t("Or"), title: t("Another event instead") },
  { name: "interval", key: "i", text: t("Interval"), title: t("Another event within a time of it") },
  { name: "absence", key: "n", text: t("Not after"), title: t("No such event for a time after it") },
  { name: "before", key: "p", text: t("Not before"), title: t("No such event for a time before it") },
  { name: "around", key: "r", text: t("Not around"), title: t("No such event for a time before it and after it") },
  { name: "without", key: "b", text: t("Not between"), title: t("No such event between the one before and this one") },
  { name: "group", key: "g", text: t("Group"), title: t("Brackets about this and the next") },
] as const;
const MOVES = [
  { name: "up", key: "Alt+ArrowUp", text: t("Move up"), icon: "chevron-up" },
  { name: "down", key: "Alt+ArrowDown", text: t("Move down"), icon: "chevron-down" },
  { name: "remove", key: "Delete", text: t("Remove"), icon: "trash-2" },
  { name: "undo", key: "Control+Z", text: t("Undo"), icon: "undo-2" },
] as const;
export type Command = (typeof COMMANDS)[number]["name"] | (typeof MOVES)[number]["name"];

export interface TreeState {
  entries: CompositeEntries;
  leaves: ReadonlyMap<number, Leaf>;
  /** Primitives with faults reported by the server. */
  faulty: ReadonlySet<string>;
  chosen: number;
  canUndo: boolean;
}

export interface TreeHandlers {
  onChoose: (id: number) => void;
  onCommand: (command: Command) => void;
  /** The reader wants to edit the selected node. */
  onOpen: () => void;
}

export class PatternTreeView {
  readonly element: HTMLElement;
  private readonly tree = h("div", { class: "pattern-tree", role: "tree", "aria-label": t("Pattern") });
  private readonly buttons = new Map<Command, HTMLButtonElement>();
  private rows: Row[] = [];
  private chosen = 0;
  private canUndo = false;

  constructor(
    private readonly feed: Feed,
    private readonly handlers: TreeHandlers,
  ) {
    const run =
      (command: Command): (() => void) =>
      () =>
        handlers.onCommand(command);
    for (const { name, key, text, title } of COMMANDS)
      this.buttons.set(
        name,
        button(text, { kind: "button-sm", title: `${title} (${key})`, "aria-keyshortcuts": key, "data-command": name, onClick: run(name) }),
      );
    for (const one of MOVES)
      this.buttons.set(
        one.name,
        iconButton(`${one.text} (${one.key})`, one.icon, {
          kind: "button-sm button-quiet",
          "aria-keyshortcuts": one.key,
          "data-command": one.name,
          onClick: run(one.name),
        }),
      );
    const tools = h("div", { class: "pattern-tools", role: "toolbar", "aria-label": t("Change the pattern") }, ...this.buttons.values());
    this.element = h("div", { class: "panel pattern-panel" }, tools, this.tree);
    this.tree.addEventListener("keydown", (event) => this.pressed(event));
    const choose = (event: MouseEvent): void => {
      const id = nodeAt(event);
      if (id === null || event.button !== 0) return;
      event.preventDefault();
      if (id !== this.chosen) handlers.onChoose(id);
      this.focus();
    };
    // On pointer down: the tree may be redrawn before pointer up, and there would be no click.
    // Screen readers only send clicks.
    this.tree.addEventListener("mousedown", choose);
    this.tree.addEventListener("click", choose);
    this.tree.addEventListener("dblclick", (event) => {
      if (nodeAt(event) !== null) handlers.onOpen();
    });
  }

  show(state: TreeState): void {
    const { root } = state.entries;
    const hadFocus = this.tree.contains(document.activeElement);
    this.chosen = state.chosen;
    this.canUndo = state.canUndo;
    this.rows = root === null ? [] : outline(root);
    replace(this.tree, ...this.rows.map((row) => this.item(row, state)));
    this.enable();
    if (hadFocus) this.focus();
  }

  focus(): void {
    this.tree.querySelector<HTMLElement>('[tabindex="0"]')?.focus();
  }

  // ---- Items

  private item(row: Row, state: TreeState): HTMLElement {
    const { node, level, role } = row;
    const isChosen = node.id === state.chosen;
    const siblings = this.rows.filter((one) => one.parent === row.parent);
    return h(
      "div",
      {
        class: `pattern-item role-${role}`,
        role: "treeitem",
        tabindex: isChosen ? 0 : -1,
        "aria-level": level,
        "aria-selected": String(isChosen),
        "aria-setsize": siblings.length,
        "aria-posinset": siblings.indexOf(row) + 1,
        "data-node": node.id,
        vars: { "--level": String(level - 1) },
      },
      this.lead(row),
      ...(node.op === "primitive"
        ? this.primitive(node, state)
        : [
            h("strong", { class: "pattern-operator" }, OPERATOR_NAMES[node.op]),
            h("span", { class: "pattern-meaning" }, operatorWords(node, this.feed)),
          ]),
    );
  }

  /** The role of a node in its parent. */
  private lead({ role, link, parent, index }: Row): HTMLElement | null {
    if (role === "without") return h("span", { class: "pattern-lead pattern-not" }, icon("ban"), t("no"));
    if (role === "never") return h("span", { class: "pattern-lead pattern-not" }, icon("ban"), t("never"));
    if (role === "then") return h("span", { class: "pattern-lead" }, t("then {bounds}", { bounds: boundsWords(link, this.feed) }).trim());
    if (role === "part" && index > 0) return h("span", { class: "pattern-lead" }, parent?.op === "or" ? t("or") : t("and"));
    return null;
  }

  private primitive({ id, name }: PatternNode, { entries, leaves, faulty }: TreeState): HTMLElement[] {
    const entry = entries.primitives.get(name);
    const leaf = leaves.get(id);
    const badges: HTMLElement[] = [];
    if (leaf?.kind === "trigger")
      badges.push(
        h(
          "span",
          { class: "badge pattern-trigger", title: t("Its events may complete the pattern: only they trigger an evaluation") },
          icon("zap"),
          t("trigger"),
        ),
      );
    if (leaf?.needed === true)
      badges.push(h("span", { class: "badge", title: t("Minimum condition: nothing is searched before it has occurred") }, t("needed")));
    if (faulty.has(name)) badges.push(h("span", { class: "badge badge-critical" }, icon("circle-alert"), t("to correct")));
    const meaning = entry === undefined ? t("not defined yet") : primitiveWords(entry, this.feed);
    return [
      h("strong", { class: "pattern-name mono" }, name),
      h("span", { class: `pattern-meaning${entry === undefined ? " pattern-undefined" : ""}` }, meaning),
      h("span", { class: "pattern-badges" }, ...badges),
    ];
  }

  // ---- Actions

  private can(command: Command): boolean {
    if (command === "undo") return this.canUndo;
    const row = this.rows.find(({ node }) => node.id === this.chosen);
    if (row === undefined) return false;
    if (command === "up" || command === "down") return canMove(row, command === "up" ? -1 : 1);
    if (command === "remove") return row.parent !== null;
    if (command === "without") return row.role === "then" && row.link?.without === null;
    return command === "group" ? canGroup(row) : true;
  }

  private enable(): void {
    for (const [command, element] of this.buttons) element.disabled = !this.can(command);
  }

  private pressed(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey) {
      if (event.key !== "z" || !this.canUndo) return;
      this.handlers.onCommand("undo");
      event.preventDefault();
      return;
    }
    const key = event.altKey ? `Alt+${event.key}` : event.key === "Backspace" ? "Delete" : event.key;
    const command = [...COMMANDS, ...MOVES].find((one) => one.key === key)?.name;
    const to = event.altKey ? null : this.goal(key);
    if (to !== null) this.handlers.onChoose(to);
    else if (command !== undefined && this.can(command)) this.handlers.onCommand(command);
    else if (key === "Enter" || key === "F2") this.handlers.onOpen();
    else if (command === undefined) return;
    // Keys used here are not shortcuts of the page.
    event.preventDefault();
    event.stopPropagation();
  }

  /** The node that an arrow key moves to. */
  private goal(key: string): number | null {
    const { rows } = this;
    const at = rows.findIndex(({ node }) => node.id === this.chosen);
    const row = rows[at];
    if (row === undefined) return null;
    if (key === "ArrowLeft") return row.parent?.id ?? null;
    if (key === "ArrowRight") return row.node.parts.length > 0 ? (rows[at + 1]?.node.id ?? null) : null;
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: rows.length - 1 }[key];
    return to === undefined ? null : (rows[to]?.node.id ?? null);
  }
}

/**
 * The item under the pointer. If leaving a field redrew the tree since pointer
 * down, the event has no item.
 */
function nodeAt({ clientX, clientY }: MouseEvent): number | null {
  const id = document.elementFromPoint(clientX, clientY)?.closest<HTMLElement>("[data-node]")?.dataset["node"];
  return id === undefined ? null : Number(id);
}
