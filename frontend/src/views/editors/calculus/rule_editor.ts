/**
 * A CodeMirror editor of a program, with faults in place and lines that other views highlight.
 *
 * It is in a shadow root: there CodeMirror adopts its style sheets, while in the page it would add
 * style elements, which the content security policy refuses.
 */

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState, StateEffect, StateField, Transaction } from "@codemirror/state";
import {
  Decoration,
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
  placeholder,
  type DecorationSet,
} from "@codemirror/view";
import { marked, type Placed } from "../../../data/calculus_program_data";
import { h } from "../../../lib/dom";
import { completions, rtec, type KnownNames } from "./language";
import { t } from "../../../lib/texts";

export interface RuleEditorOptions {
  text: string;
  known: () => KnownNames;
  /** The reader changed the text. */
  onChange: (text: string) => void;
}

/** Lines from 1, both ends included. */
export type Lines = readonly [number, number];

const setPointed = StateEffect.define<readonly Lines[]>();
const pointedLine = Decoration.line({ class: "cm-pointed" });
const pointed = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, transaction) {
    let next = value.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(setPointed)) continue;
      const last = transaction.state.doc.lines;
      const numbers = new Set(
        effect.value.flatMap(([from, to]) => Array.from({ length: Math.max(0, Math.min(to, last) - from + 1) }, (_, i) => from + i)),
      );
      next = Decoration.set([...numbers].sort((a, b) => a - b).map((line) => pointedLine.range(transaction.state.doc.line(line).from)));
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const theme = EditorView.theme({
  "&": {
    color: "var(--text)",
    backgroundColor: "var(--field)",
    fontSize: "var(--t-base)",
    border: "1px solid var(--line-strong)",
    borderRadius: "var(--r-md)",
    height: "100%",
  },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "0" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", overflow: "auto", borderRadius: "var(--r-md)" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-gutters": { backgroundColor: "var(--surface-2)", color: "var(--text-3)", border: "0", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--surface-3) 55%, transparent)" },
  ".cm-pointed": { backgroundColor: "var(--accent-soft)", boxShadow: "inset 3px 0 0 var(--accent)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "var(--accent-line) !important", opacity: "0.5" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft) !important", outline: "1px solid var(--accent-line)" },
  ".cm-placeholder": { color: "var(--text-3)" },
  ".cm-tooltip": {
    backgroundColor: "var(--surface)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "var(--r-md)",
    boxShadow: "var(--e-3)",
    fontFamily: "var(--font)",
    fontSize: "var(--t-sm)",
  },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "220px" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "3px 8px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "var(--text-3)", fontStyle: "normal", fontFamily: "var(--font)", marginLeft: "10px" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-completionIcon": { display: "none" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--critical)", padding: "6px 10px", maxWidth: "480px" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--critical) 1px", textUnderlineOffset: "3px" },
  ".cm-lint-marker-error": {
    content: "none",
    width: "9px",
    height: "9px",
    margin: "5px 2px",
    borderRadius: "50%",
    backgroundColor: "var(--critical)",
  },
});

export class RuleEditor {
  readonly element = h("div", { class: "rule-editor" });
  private readonly view: EditorView;

  constructor({ text, known, onChange }: RuleEditorOptions) {
    const root = this.element.attachShadow({ mode: "open" });
    const isReadersOwn = (transactions: readonly Transaction[]): boolean =>
      transactions.some((one) => one.annotation(Transaction.userEvent) !== undefined);
    this.view = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          lintGutter(),
          history(),
          drawSelection(),
          bracketMatching(),
          closeBrackets(),
          highlightActiveLine(),
          EditorView.lineWrapping,
          autocompletion({ override: [completions(known)], icons: false }),
          rtec(),
          pointed,
          theme,
          placeholder("initiatedAt(slow(V)=true, T) :-\n    happensAt(position(V, Speed), T), Speed < 1."),
          keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
          EditorView.contentAttributes.of({ "aria-label": t("Rules of the program"), spellcheck: "false", autocapitalize: "off" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged && isReadersOwn(update.transactions)) onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    // Keys typed here are not shortcuts of the page.
    this.element.addEventListener("keydown", (event) => event.stopPropagation());
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  setText(text: string): void {
    if (text !== this.text) this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  setFaults(faults: readonly Placed[]): void {
    const { text } = this;
    const diagnostics = faults.map((fault): Diagnostic => {
      const [from, to] = marked(text, fault);
      return { from, to, severity: "error", message: fault.message };
    });
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  /**
   * Marks lines; with `reveal` the editor scrolls to the first of them, without scrolling the page.
   */
  point(lines: readonly Lines[], reveal = false): void {
    this.view.dispatch({ effects: setPointed.of(lines) });
    const first = lines[0]?.[0];
    if (!reveal || first === undefined || first > this.view.state.doc.lines) return;
    const { top, bottom } = this.view.lineBlockAt(this.view.state.doc.line(first).from);
    const box = this.view.scrollDOM;
    if (top < box.scrollTop || bottom > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 3);
  }

  close(): void {
    this.view.destroy();
  }
}
