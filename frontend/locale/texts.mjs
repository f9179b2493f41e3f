// Texts for translators: `npm run texts` writes what t() and tn() say in the front end, and {%
// translate %}, gettext() and Message() on the server, into the .po files and keeps what is
// translated; `npm run texts:check` fails where a .po file differs from the code, a text has no
// translation, or one in a place of texts is not marked.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { mo, po } from "gettext-parser";
import ts from "typescript";

const HERE = import.meta.dirname;
const SOURCE = join(HERE, "../src");
const ROOT = join(HERE, "../..");
const TEMPLATES = join(ROOT, "webapp/templates");
const CODE = ["webapp", "engine"].map((folder) => join(ROOT, folder));
/** Templates of rule programs: their titles, sentences and labels are texts. */
const GALLERY = join(ROOT, "fixtures/gallery");
const SAMPLES = join(ROOT, "fixtures/samples/samples.json");
const SCENARIOS = join(ROOT, "fixtures/scenarios");
const SERVER = join(ROOT, "webapp/locale");
/**
 * Literals that stay as they are in every language, though they read like texts:
 * names, keywords, formats.
 */
const NAMES = join(HERE, "names.txt");
/**
 * Faults of the server's responses are reported to developers; the worker gets its texts by its
 * address.
 */
const NO_TEXTS = new Set(["lib/parse.ts", "live/frames.ts", "push_worker.ts"]);
/** Functions that put a text before the reader, and which of their arguments it is. */
const TEXT_ARGUMENTS = new Map(
  Object.entries({
    button: [0],
    iconButton: [0],
    linkButton: [0],
    toast: [0],
    empty: [1, 2],
    confirmDanger: [0, 1, 2],
    openDialog: [0],
    countedToast: [1],
    pageFrame: [1],
  }),
);
const TEXT_PROPERTIES = new Set(["aria-label", "title", "placeholder", "alt", "hint", "label", "help"]);
/** Functions whose literals are no texts: selectors, names of events, keys of what is kept. */
const OF_ELEMENTS = "querySelector querySelectorAll closest matches addEventListener on once off matchMedia";
const NO_TEXT = new Set(`${OF_ELEMENTS} getItem setItem removeItem required kept keep`.split(" "));

const files = readdirSync(SOURCE, { recursive: true })
  .filter((file) => file.endsWith(".ts"))
  .sort();
const readJson = (path) => JSON.parse(readFileSync(path, "utf8"));
const isText = (text) => /\p{L}{2}/u.test(text);

const lineOf = (source, node) => source.getLineAndCharacterOfPosition(node.getStart()).line + 1;

/** Calls `say` with each literal that an expression in a place of texts may be. */
function literals(node, say) {
  if (ts.isParenthesizedExpression(node)) literals(node.expression, say);
  else if (ts.isConditionalExpression(node)) [node.whenTrue, node.whenFalse].forEach((one) => literals(one, say));
  else if (ts.isBinaryExpression(node) && ["??", "||", "&&", "+"].includes(node.operatorToken.getText()))
    [node.left, node.right].forEach((one) => literals(one, say));
  else if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateExpression(node)) {
    const parts = ts.isTemplateExpression(node) ? [node.head, ...node.templateSpans.map((span) => span.literal)] : [node];
    if (isText(parts.map((part) => part.text).join(" "))) say(node);
  }
}

const nameOf = (called) => (ts.isIdentifier(called) ? called.text : ts.isPropertyAccessExpression(called) ? called.name.text : "");
const isMark = (node) => ts.isCallExpression(node) && ["t", "tn"].includes(nameOf(node.expression));
/** Classes, styles, keys of what is kept in the browser, selectors, ends of file names. */
const MACHINE = /^pm:|^EPSG:|^\/|\bT\)|At\(|spatial\(|var\(--|\d(px|%)|…px|^vedette\.|\b(button|badge|state|page|overlay)-[a-z]|^[.:#[]/;
/** Begins like a sentence or has several words. */
const PROSE = [
  /^\P{L}*\p{Lu}\p{Ll}+/u,
  /\p{L}[\s,.:…]+[\p{L}\p{N}]|[\p{L}\p{N}][\s,.:…]+\p{L}/u,
  /\p{L}{2}\s…|…\s\p{L}{2}/u,
  /^[\s,;(]\P{L}*\p{L}|\p{L}\P{L}*\s$/u,
];
const isProse = (text) => !MACHINE.test(text) && PROSE.some((form) => form.test(text));

/** The text of a literal, `…` for what is put in; null of any other node. */
function written(node) {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return null;
  return [node.head, ...node.templateSpans.map((span) => span.literal)].map((part) => part.text).join("…");
}

/** Whether a literal is in a place where no text can be. */
function isNoText(node) {
  const { parent } = node;
  if (ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent) || ts.isLiteralTypeNode(parent)) return true;
  if (ts.isElementAccessExpression(parent) || ts.isCaseClause(parent) || ts.isTaggedTemplateExpression(parent)) return true;
  if (ts.isBinaryExpression(parent) && /^[!=]==?$/.test(parent.operatorToken.getText())) return true;
  if (ts.isPropertyAssignment(parent)) return parent.name === node || parent.name.text === "class";
  if (ts.isNewExpression(parent)) return nameOf(parent.expression).endsWith("Error");
  return ts.isCallExpression(parent) && NO_TEXT.has(nameOf(parent.expression));
}

/**
 * Literals that reach the reader without t(): in a place of texts any, elsewhere what reads
 * like a text and is no name.
 */
export function unmarked(source, names) {
  const found = new Set();
  const say = (node) => names.has(written(node).trim().replaceAll("\n", " ")) || found.add(node);
  const visit = (node) => {
    if (isMark(node)) {
      node.arguments.filter((one) => !ts.isStringLiteralLike(one)).forEach(visit);
      return;
    }
    if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
      const name = node.expression.text;
      if (name === "h") node.arguments.slice(2).forEach((one) => literals(one, say));
      (TEXT_ARGUMENTS.get(name) ?? []).forEach((at) => node.arguments[at] && literals(node.arguments[at], say));
    }
    if (ts.isPropertyAssignment(node) && TEXT_PROPERTIES.has(node.name.text)) literals(node.initializer, say);
    const text = written(node);
    if (text !== null && isText(text) && isProse(text) && !isNoText(node)) say(node);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return [...found];
}

/** What t() and tn() are called with: `{ text, plural, context, at }`. */
function marked(source, file) {
  const found = [];
  const visit = (node) => {
    if (ts.isCallExpression(node) && ts.isIdentifier(node.expression) && ["t", "tn"].includes(node.expression.text)) {
      const [first, second] = node.arguments;
      const name = node.expression.text;
      const needed = name === "t" ? [first] : [first, second];
      if (!needed.every((one) => one && ts.isStringLiteralLike(one)))
        throw new Error(`${file}:${lineOf(source, node)}: write the text of ${name}() as a literal`);
      found.push({
        text: first.text,
        plural: name === "tn" ? second.text : undefined,
        context: "",
        at: file,
      });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

export function parse(file) {
  return ts.createSourceFile(file, readFileSync(join(SOURCE, file), "utf8"), ts.ScriptTarget.Latest, true);
}

/** The catalogue as the code has it, with the translations that `old` has. */
function catalogueOf(texts, old) {
  const translations = { "": { "": old.translations[""][""] } };
  for (const { text, plural, context, at } of texts) {
    const group = (translations[context] ??= {});
    const before = old.translations[context]?.[text];
    const places = new Set(group[text]?.comments.reference.split("\n") ?? []).add(at);
    group[text] = {
      msgid: text,
      msgid_plural: plural ?? group[text]?.msgid_plural,
      msgctxt: context || undefined,
      msgstr: before?.msgstr ?? (plural === undefined ? [""] : ["", ""]),
      comments: { reference: [...places].join("\n") },
    };
  }
  return po.compile({ ...old, translations }, { foldLength: 0, sort: true }).toString() + "\n";
}

/** The parts of a template that are no text: tags, values, comments, and drawings. */
const NO_PROSE = /\{% blocktranslate .*?\{% endblocktranslate %\}|\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<svg.*?<\/svg>/gs;
/** In templates these are no texts to translate. */
const TEMPLATE_NAMES = new Set(["Vedette", "UTC"]);

/** Texts of a template that no tag translates. */
export function unmarkedInTemplate(template) {
  const bare = template.replaceAll(NO_PROSE, "\0");
  const inTags = [...bare.matchAll(/\s(?:aria-label|alt|title|placeholder)="([^"]*)"/g)].map((match) => match[1]);
  const parts = [...bare.replaceAll(/<[^>]*>/g, "\0").split("\0"), ...inTags.flatMap((one) => one.split("\0"))];
  return parts.map((part) => part.replaceAll(/^[^\p{L}]+|[^\p{L}.?!]+$/gu, "")).filter((part) => isText(part) && !TEMPLATE_NAMES.has(part));
}

const PYTHON_TEXT = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/;
const PYTHON_MARKS = new RegExp(String.raw`\b(n?p?gettext(?:_lazy|_noop)?|Message)\(\s*((?:(?:${PYTHON_TEXT.source})[\s,]*)+)`, "g");
/** Other things are called so, too. */
const HAS_MESSAGES = /^from engine\.model\.messages import .*\bMessage\b|^class Message\(str\)/m;
/** A message that is put together: no translator finds its text. */
const PYTHON_UNREADABLE = new RegExp(String.raw`(?<!class )\bMessage\((?!\s*(?:${PYTHON_TEXT.source})\s*[,)"'])[^\n]*`, "g");

/**
 * The texts in a list of Python's arguments; literals without a comma between them are one text.
 */
export function literalsIn(list) {
  const literals = [""];
  for (const [, text, comma] of list.matchAll(new RegExp(String.raw`(${PYTHON_TEXT.source})\s*(,?)`, "g"))) {
    literals.push(literals.pop() + text.slice(1, -1).replaceAll(/\\(.)/g, (_, sign) => (sign === "n" ? "\n" : sign)));
    if (comma) literals.push("");
  }
  return literals.filter((text) => text !== "");
}

/** The texts of Python code in gettext() and Message(), and its composed messages. */
export function textsOfPython(code) {
  const texts = [];
  for (const [, name, list] of code.matchAll(PYTHON_MARKS)) {
    const literals = literalsIn(list);
    const context = name.startsWith("p") || name.startsWith("np") ? literals.shift() : "";
    texts.push({ text: literals[0], plural: name.startsWith("n") ? literals[1] : undefined, context });
  }
  return { texts, unreadable: HAS_MESSAGES.test(code) ? [...code.matchAll(PYTHON_UNREADABLE)].map((match) => match[0]) : [] };
}

/** What the templates of rule programs say. */
function ofGallery() {
  const found = [];
  for (const file of readdirSync(GALLERY)
    .filter((one) => one.endsWith(".json"))
    .sort()) {
    const { group, title, sentence, parameters } = readJson(join(GALLERY, file));
    const labels = Object.values(parameters).map((parameter) => parameter.label);
    for (const text of [group, title, sentence, ...labels]) found.push({ text, plural: undefined, context: "", at: `gallery/${file}` });
  }
  return found;
}

/**
 * What the samples are called and what their queries look for. Queries of simulated samples
 * are those of their worlds.
 */
function ofSamples() {
  const found = [];
  const say = (at, ...texts) => found.push(...texts.filter(Boolean).map((text) => ({ text, plural: undefined, context: "", at })));
  const worlds = new Set();
  for (const { title, about, queries, made } of readJson(SAMPLES).samples) {
    say("samples.json", title, about);
    for (const query of queries) say("samples.json", query.name ?? query, query.description);
    if (made) worlds.add(made.world);
  }
  for (const world of worlds)
    for (const { description } of readJson(join(SCENARIOS, `${world}.json`)).queries) say(`scenarios/${world}.json`, description);
  return found;
}

const BLOCK = /\{% blocktranslate (trimmed )?[^%]*%\}(.*?)\{% endblocktranslate %\}/gs;

/**
 * The texts of a template's blocks, each with its plural if it has one; those of `trimmed` are in
 * one line, as Django reads them.
 */
function blocksOfTemplate(template) {
  return [...template.matchAll(BLOCK)].map(([, isTrimmed, inside]) =>
    inside
      .replaceAll(/\{\{ (\w+) \}\}/g, "%($1)s")
      .split("{% plural %}")
      .map((text) => (isTrimmed === undefined ? text : text.trim().replaceAll(/\s*\n\s*/g, " "))),
  );
}

/**
 * What the templates of the server say by {% translate %} and {% blocktranslate %}, its code by
 * gettext(), and the faults of what is not marked.
 */
function ofServer() {
  const [found, faults] = [[], []];
  for (const file of readdirSync(TEMPLATES, { recursive: true })
    .filter((one) => one.endsWith(".html") || one.endsWith(".txt"))
    .sort()) {
    const template = readFileSync(join(TEMPLATES, file), "utf8");
    const say = (text, plural) => found.push({ text, plural, context: "", at: file });
    for (const match of template.matchAll(/\{% translate "([^"]+)"|[=:]_\("([^"]+)"\)/g)) say(match[1] ?? match[2]);
    for (const block of blocksOfTemplate(template)) say(...block);
    for (const text of unmarkedInTemplate(template))
      faults.push(`${file}: "${text.slice(0, 80)}" is not marked for translation: {% translate %}`);
  }
  for (const folder of CODE) {
    for (const file of readdirSync(folder, { recursive: true })
      .filter((one) => one.endsWith(".py"))
      .sort()) {
      const { texts, unreadable } = textsOfPython(readFileSync(join(folder, file), "utf8"));
      const at = folder.endsWith("engine") ? `engine/${file}` : file;
      found.push(...texts.map((one) => ({ ...one, at })));
      for (const text of unreadable)
        faults.push(`${at}: ${text.slice(0, 80)}: write the text of a Message as a literal, its values next to it`);
    }
  }
  found.push(...ofGallery(), ...ofSamples());
  return { texts: found, faults };
}

/** Writes or compares one catalogue; what is wrong with it. Says how much of it is translated. */
function keep(path, texts, isCheck) {
  const name = relative(ROOT, path);
  const before = readFileSync(path, "utf8");
  const after = catalogueOf(texts, po.parse(before));
  const compiled = path.startsWith(SERVER) ? path.replace(/po$/, "mo") : null;
  const faults = [];
  if (!isCheck) {
    writeFileSync(path, after);
    if (compiled !== null) writeFileSync(compiled, mo.compile(po.parse(after)));
  } else if (after !== before || (compiled !== null && !mo.compile(po.parse(after)).equals(readFileSync(compiled)))) {
    faults.push(`${name} differs from the code: npm run texts`);
  }
  const entries = Object.values(po.parse(after).translations)
    .flatMap((group) => Object.values(group))
    .filter((entry) => entry.msgid !== "");
  const open = entries.filter((entry) => entry.msgstr.some((text) => text === ""));
  for (const entry of open) faults.push(`${name}: no translation of "${entry.msgid}" (${entry.comments.reference.replaceAll("\n", ", ")})`);
  console.log(`${name}: ${entries.length - open.length} of ${entries.length} texts translated`);
  return faults;
}

/** Marked texts of the code, and the faults of what is not marked. */
function ofSource() {
  const names = keptNames();
  const [texts, faults] = [[], []];
  for (const file of files) {
    const source = parse(file);
    texts.push(...marked(source, file));
    if (NO_TEXTS.has(file)) continue;
    for (const node of unmarked(source, names)) {
      const place = `${file}:${lineOf(source, node)}`;
      faults.push(`${place}: ${node.getText().slice(0, 80)} is not marked for translation: t(...), or a name (locale/names.txt)`);
    }
  }
  console.log(`${faults.length} texts of the front end are not marked`);
  return { texts, faults };
}

export const keptNames = () =>
  new Set(
    readFileSync(NAMES, "utf8")
      .split("\n")
      .filter((line) => line !== ""),
  );

function main(isCheck) {
  const { texts, faults } = ofSource();
  for (const file of readdirSync(HERE).filter((one) => one.endsWith(".po"))) faults.push(...keep(join(HERE, file), texts, isCheck));
  const server = ofServer();
  faults.push(...server.faults);
  for (const language of readdirSync(SERVER)) faults.push(...keep(join(SERVER, language, "LC_MESSAGES/django.po"), server.texts, isCheck));
  for (const fault of faults) console.error(fault);
  if (isCheck && faults.length > 0) process.exitCode = 1;
}

if (process.argv[1] === import.meta.filename) main(process.argv.includes("--check"));
