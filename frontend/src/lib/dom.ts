/** Builds DOM nodes. Text is always inserted as text; no string is ever parsed as markup. */

import { oneAtATime, type Listener } from "./presses";

export type Child = Node | string | number | null | undefined | false;
type Value = string | number | boolean | null | undefined | Listener | Record<string, string>;
export type Props = Record<string, Value>;

const PROPERTIES = new Set(["value", "checked", "disabled", "selected", "indeterminate", "hidden", "open"]);

/**
 * An element: keys beginning with "on" are listeners (see `oneAtATime` for those of buttons that
 * return a promise), `vars` sets CSS custom properties,
 * the usual form properties are set as properties, all others as attributes (left out if
 * false, null or undefined).
 */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) setProp(element, key, value);
  add(element, ...children);
  return element;
}

function setProp(element: HTMLElement, key: string, value: Value): void {
  if (value === null || value === undefined) return;
  if (typeof value === "function") {
    const isPress = key === "onClick" && element instanceof HTMLButtonElement;
    element.addEventListener(key.slice(2).toLowerCase(), isPress ? oneAtATime(element, value) : value);
  } else if (typeof value === "object") {
    for (const [name, text] of Object.entries(value)) element.style.setProperty(name, text);
  } else if (PROPERTIES.has(key)) {
    Reflect.set(element, key, value);
  } else if (value !== false) {
    element.setAttribute(key, value === true ? "" : String(value));
  }
}

function add(parent: Node, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replaces what is in `parent`. If the focus was inside, it stays: on the same element if that
 * is still there, else on the one that took its place.
 */
export function replace(parent: Element, ...children: Child[]): void {
  const nodes = children.filter((child) => child !== null && child !== undefined && child !== false);
  const focused = document.activeElement;
  const keep = focused instanceof HTMLElement && focused !== parent && parent.contains(focused) ? successor(parent, focused) : null;
  parent.replaceChildren(...nodes.map((child) => (child instanceof Node ? child : String(child))));
  keep?.()?.focus({ preventScroll: true });
}

const FOCUSABLE = ["a[href]", "button", "input", "select", "textarea", "summary", "[tabindex]"].join();

/**
 * Finds the element that took the place of a focused one: with its id, else of its kind and name. If
 * there are more or fewer of those than before, it is unknown which one it is: then `parent` has the
 * focus, so that a key that was meant for what is gone meets nothing else.
 */
function successor(parent: Element, focused: HTMLElement): () => HTMLElement | null {
  const twin = twinOf(parent, focused);
  return () => {
    const found = twin();
    if (found !== null) return found;
    if (!(parent instanceof HTMLElement) || !parent.isConnected) return null;
    if (!parent.hasAttribute("tabindex")) parent.tabIndex = -1;
    return parent;
  };
}

/** Finds the element itself while it is there, then the one of its kind and name in its place, if there is one. */
export function twinOf(parent: Element, focused: HTMLElement): () => HTMLElement | null {
  const kind = kindOf(focused);
  const alike = (): HTMLElement[] => [...parent.querySelectorAll<HTMLElement>(FOCUSABLE)].filter((one) => kindOf(one) === kind);
  const before = alike();
  return () => {
    if (focused.isConnected) return focused;
    const after = alike();
    return after.length === before.length ? (after[before.indexOf(focused)] ?? null) : null;
  };
}

const kindOf = (one: HTMLElement): string => `${one.tagName} ${one.id || (one.getAttribute("aria-label") ?? one.textContent)}`;

/** Replaces `before` by `after`. If the focus was inside, the element with the same id gets it. */
export function exchange(before: Element, after: Element): void {
  const focused = before.contains(document.activeElement) ? (document.activeElement?.id ?? "") : "";
  before.replaceWith(after);
  if (focused !== "") document.getElementById(focused)?.focus();
}

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with attributes; strings become text nodes. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number>,
  ...children: (SVGElement | string)[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** An icon of the sprite; decorative, so give the control around it a name. */
export function icon(name: string, kind = ""): SVGSVGElement {
  return svg(
    "svg",
    { class: `icon ${kind}`.trim(), "aria-hidden": "true" },
    svg("use", { href: `${document.documentElement.dataset["icons"] ?? "/static/icons/sprite.svg"}#${name}` }),
  );
}

export function button(text: string, props: Props & { icon?: string; kind?: string } = {}): HTMLButtonElement {
  const { icon: name, kind = "", ...rest } = props;
  return h("button", { type: "button", class: `button ${kind}`.trim(), ...rest }, name ? icon(name) : null, text);
}

/** A button that shows only an icon; `text` is its accessible name and its tooltip. */
export function iconButton(text: string, name: string, props: Props & { kind?: string } = {}): HTMLButtonElement {
  const { kind = "", ...rest } = props;
  return h("button", { type: "button", class: `button button-icon ${kind}`.trim(), "aria-label": text, title: text, ...rest }, icon(name));
}

export function linkButton(text: string, href: string, name?: string, kind = ""): HTMLAnchorElement {
  return h("a", { class: `button ${kind}`.trim(), href }, name ? icon(name) : null, text);
}

/** Downloads a file. The page does not count as left, so it does not ask about unsaved changes. */
export function download(href: string): void {
  h("a", { href, download: "" }).click();
}

/** An empty state: what is missing, and what to do next. */
export function empty(name: string, title: string, text: string, ...actions: Child[]): HTMLElement {
  return h("div", { class: "empty" }, icon(name), h("h2", {}, title), h("p", {}, text), ...actions);
}

/** A placeholder while the server's response is awaited. */
export function awaiting(): HTMLElement {
  return h(
    "div",
    { class: "stack panel-body", "aria-busy": "true" },
    h("div", { class: "skeleton" }),
    h("div", { class: "skeleton" }),
    h("div", { class: "skeleton" }),
  );
}

/** True while the reader is typing in a field, so that single-key shortcuts are ignored. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button", "range"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}

/** This many characters at the end of a long name are always shown. */
const END_CHARACTERS = 12;

/**
 * A name that is shortened in the middle if it is too long: names often differ only at their ends.
 */
export function longName(tag: "span" | "strong", name: string): HTMLElement {
  const head = Math.max(0, name.length - END_CHARACTERS);
  return h(
    tag,
    { class: "long-name", title: name },
    h("span", { class: "truncate" }, name.slice(0, head)),
    h("span", {}, name.slice(head)),
  );
}
