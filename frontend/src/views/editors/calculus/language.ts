/** RTEC's notation for CodeMirror: colours, indentation, completion of known names. */

import { snippetCompletion, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { HighlightStyle, indentService, StreamLanguage, syntaxHighlighting, type StreamParser } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { tags } from "@lezer/highlight";
import { CONDITIONS, CONSTRUCTS, DECLARATIONS, FUNCTIONS, HEADS, namesOf, quoted } from "../../../data/calculus_program_data";
import { t } from "../../../lib/texts";

const RULE_WORDS = new Set<string>([...HEADS, ...CONDITIONS]);
const CONSTRUCT_WORDS = new Set<string>(CONSTRUCTS);
const DECLARATION_WORDS = new Set<string>([...DECLARATIONS, "dynamic", "discontiguous", "multifile"]);
const FUNCTION_WORDS = new Set<string>(FUNCTIONS);

interface State {
  isComment: boolean;
}

const parser: StreamParser<State> = {
  name: "rtec",
  startState: () => ({ isComment: false }),
  token(stream, state) {
    if (state.isComment || stream.match("/*")) {
      state.isComment = stream.match(/^[\s\S]*?\*\//) === null;
      if (state.isComment) stream.skipToEnd();
      return "comment";
    }
    if (stream.eatSpace()) return null;
    if (stream.match(/^%.*/)) return "comment";
    if (stream.match(/^'[^'\n]*'?/)) return "string";
    if (stream.match(/^[A-Z_][A-Za-z0-9_]*/)) return "variableName";
    if (stream.match(/^\d+(\.\d+)?([eE][+-]?\d+)?/)) return "number";
    const name = stream.match(/^[a-z][A-Za-z0-9_]*/);
    if (name !== null && typeof name !== "boolean") return nameStyle(name[0], stream.peek() === "(");
    if (stream.match(/^(:-|\\\+|=:=|=\\=|\\==|\\=|==|@=<|@>=|=<|>=|[-+*/=<>;!])/)) return "operator";
    stream.next();
    return "punctuation";
  },
  languageData: { commentTokens: { line: "%", block: { open: "/*", close: "*/" } }, closeBrackets: { brackets: ["(", "[", "'"] } },
};

function nameStyle(name: string, isCalled: boolean): string {
  if (isCalled && RULE_WORDS.has(name)) return "keyword";
  if (CONSTRUCT_WORDS.has(name)) return "modifier";
  if (isCalled && DECLARATION_WORDS.has(name)) return "meta";
  if (FUNCTION_WORDS.has(name)) return "operatorKeyword";
  return isCalled ? "propertyName" : "atom";
}

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--text-3)", fontStyle: "italic" },
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: tags.modifier, color: "var(--good)", fontWeight: "600" },
  { tag: tags.meta, color: "var(--info)", fontWeight: "600" },
  { tag: tags.operatorKeyword, color: "var(--good)" },
  { tag: tags.propertyName, color: "var(--text)", fontWeight: "600" },
  { tag: tags.variableName, color: "var(--high)" },
  { tag: [tags.number, tags.string], color: "var(--critical)" },
  { tag: tags.atom, color: "var(--text-2)" },
  { tag: tags.operator, color: "var(--text-2)" },
]);

/** Conditions are indented by four columns from their head. */
const indentation = indentService.of((context, position) => {
  const line = context.lineAt(position, -1);
  if (line.from === 0) return 0;
  const before = context
    .lineAt(line.from - 1, -1)
    .text.replace(/%.*$/, "")
    .trimEnd();
  if (/(:-|,|;)$/.test(before)) return 4;
  return before.endsWith(".") || before === "" ? 0 : null;
});

export function rtec(): Extension {
  return [StreamLanguage.define(parser), syntaxHighlighting(colours), indentation];
}

const SNIPPETS: readonly Completion[] = [
  snippetCompletion("initiatedAt(${fluent}(${V})=true, T) :-\n    happensAt(${event}(${V}), T).", {
    label: "initiatedAt",
    type: "keyword",
    detail: t("what begins it"),
    boost: 2,
  }),
  snippetCompletion("terminatedAt(${fluent}(${V})=true, T) :-\n    happensAt(${event}(${V}), T).", {
    label: "terminatedAt",
    type: "keyword",
    detail: t("what ends it"),
    boost: 2,
  }),
  snippetCompletion("happensAt(${event}(${V}), T)", { label: "happensAt", type: "keyword", detail: t("an event at T"), boost: 1 }),
  snippetCompletion("holdsAt(${fluent}(${V})=true, T)", { label: "holdsAt", type: "keyword", detail: t("it holds at T"), boost: 1 }),
  snippetCompletion("holdsFor(${fluent}(${V})=true, ${I})", { label: "holdsFor", type: "keyword", detail: t("its intervals"), boost: 1 }),
  snippetCompletion("happensAt(start(${fluent}(${V})=true), T)", { label: "start", type: "keyword", detail: t("it begins") }),
  snippetCompletion("happensAt(end(${fluent}(${V})=true), T)", { label: "end", type: "keyword", detail: t("it ends") }),
  snippetCompletion("union_all([${I1}, ${I2}], ${I})", { label: "union_all", type: "function", detail: "either" }),
  snippetCompletion("intersect_all([${I1}, ${I2}], ${I})", { label: "intersect_all", type: "function", detail: t("all at once") }),
  snippetCompletion("relative_complement_all(${I1}, [${I2}], ${I})", {
    label: "relative_complement_all",
    type: "function",
    detail: t("the first without the others"),
  }),
  snippetCompletion("complement_all([${I1}], ${I})", { label: "complement_all", type: "function", detail: t("when it does not hold") }),
  snippetCompletion("intDurGreater(${I1}, ${60000}, ${I})", { label: "intDurGreater", type: "function", detail: t("longer than") }),
  snippetCompletion("spatial(${near}(A, B)=true, proximity(position, ${500}, ${10000})).", {
    label: t("spatial proximity"),
    type: "type",
    detail: t("two close together"),
  }),
  snippetCompletion("spatial(${within}(V)=true, inside(position, ${area}, ${60000})).", {
    label: t("spatial inside"),
    type: "type",
    detail: t("in a region"),
  }),
  snippetCompletion("fi(${fluent}(${V})=true, ${fluent}(${V})=false, ${60000}).", { label: "fi", type: "type", detail: t("a deadline") }),
  snippetCompletion("p(${fluent}(${V})=true).", { label: "p", type: "type", detail: t("each initiation postpones the deadline") }),
];

export interface KnownNames {
  regions: readonly string[];
  /** Names of inputs that are mapped to rows, with their columns. */
  inputs: readonly { name: string; columns: readonly string[] }[];
}

/** Names of the text, of the inputs and of stored regions, and keywords of the language. */
export function completions(known: () => KnownNames): (context: CompletionContext) => CompletionResult | null {
  return (context) => {
    const word = context.matchBefore(/'[^'\n]*|[A-Za-z0-9_]+/);
    if (word === null && !context.explicit) return null;
    const before = context.state.sliceDoc(Math.max(0, context.pos - 400), context.pos);
    if (/%[^\n]*$/.test(before)) return null;
    const from = word?.from ?? context.pos;
    // The word that is being typed is not a known name yet.
    const rest = context.state.sliceDoc(0, from) + context.state.sliceDoc(context.pos);
    return { from, options: options(rest, before, known()), validFor: /^'?[A-Za-z0-9_ ]*$/ };
  };
}

function options(text: string, before: string, { regions, inputs }: KnownNames): Completion[] {
  if (/inside\([^(),]*,\s*'?[A-Za-z0-9_ ]*$/.test(before))
    return regions.map((name) => ({ label: quoted(name), displayLabel: name, type: "constant", detail: "region" }));
  const names = namesOf(text);
  const called = [...names.defined, ...names.inputs].map((one): Completion => {
    const args = one.args.map((arg) => `\${${/^[A-Z]/.test(arg) ? arg : "V"}}`).join(", ");
    const value = one.kind === "fluent" ? "=true" : "";
    return snippetCompletion(`${quoted(one.name)}${args === "" ? "" : `(${args})`}${value}`, {
      label: quoted(one.name),
      type: one.kind === "fluent" ? "property" : "event",
      detail: one.kind,
      boost: 3,
    });
  });
  const mapped = inputs
    .filter((one) => !text.includes(one.name))
    .map((one): Completion => ({ label: one.name, type: "event", detail: one.columns.join(", "), boost: 2 }));
  const variables = names.variables.map((name): Completion => ({ label: name, type: "variable", boost: -1 }));
  return [...called, ...mapped, ...SNIPPETS, ...variables];
}
