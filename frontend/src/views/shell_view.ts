/** The parts of every page: theme switch, count of new alerts, short messages, page data. */

import { refuseStrayFiles } from "./file_drops";
import { t } from "../lib/texts";
import "../styles/main.css";
import { get, NotShared, query, reason } from "../lib/api";
import { alertCount } from "../lib/answers";
import { h, icon, iconButton, replace } from "../lib/dom";
import { dismiss, dismissed, setTheme } from "../lib/preferences";
import { updateAges } from "../lib/ages";
import { isDark } from "../lib/colours";
import { armSound } from "../lib/sound";
import { four, isObject, list, nullable, number, otherwise, record, string } from "../lib/parse";
import { setUnits } from "../lib/units";
import { watch } from "../data/entity_page_data";
import { feed, me, type Feed, type Me } from "../lib/shapes";

export function readJson(id: string): unknown {
  const text = document.getElementById(id)?.textContent ?? "";
  return text === "" ? {} : (JSON.parse(text) as unknown);
}

const AGES_EVERY_MS = 1_000;
const TOAST_MS = 6_000;

export interface Shell {
  me: Me;
  feeds: Feed[];
  data: Record<string, unknown>;
  root: HTMLElement;
}

/** Sets up the frame and returns the element for the page's content. */
export function openShell(): Shell {
  const data = readJson("page-data");
  const source = isObject(data) ? data : {};
  const root = document.getElementById("page");
  if (root === null) throw new Error("the template has no #page");
  root.replaceChildren();
  setUpTheme();
  measureToasts();
  refuseStrayFiles(window);
  armSound();
  showAlertCount(otherwise(number, 0)(source["waiting"], "/waiting"));
  setInterval(refreshAlertCount, 30_000);
  setInterval(() => updateAges(document), AGES_EVERY_MS);
  if (source["is_watching"] === true) {
    void askWatches();
    setInterval(() => void askWatches(), 15_000);
  }
  const reader = me(source["me"]);
  setUnits(reader.units);
  return { me: reader, feeds: otherwise(list(feed), [])(source["feeds"], "/feeds"), data: source, root };
}

/** How high the messages are: where they would cover their subject, the page leaves room for them. */
function measureToasts(): void {
  const place = document.getElementById("toasts");
  const measure = (): void => document.documentElement.style.setProperty("--toasts", `${place?.offsetHeight ?? 0}px`);
  if (place !== null) new ResizeObserver(measure).observe(place);
}

function setUpTheme(): void {
  document.getElementById("theme-toggle")?.addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
}

/** Unassigned alerts. More than a hundred are not counted: the rail shows "99+". */
const WAITING = "alerts/count?state=new&state=seen&state=reopened&muted=false&at_most=100";
const COUNT_EVERY_MS = 500;
let counting: ReturnType<typeof setTimeout> | null = null;

/** Requests the number of waiting alerts, at most twice a second however many of them change. */
export function refreshAlertCount(): void {
  counting ??= setTimeout(() => {
    counting = null;
    void askAlertCount();
  }, COUNT_EVERY_MS);
}

async function askAlertCount(): Promise<void> {
  if (document.hidden) return;
  try {
    showAlertCount((await get(WAITING, alertCount)).count);
  } catch {
    // The count is optional: the pages themselves report an unreachable server.
  }
}

/** Watched entities that reported: announced until their page is opened or the reader dismisses it. */
async function askWatches(): Promise<void> {
  if (document.hidden) return;
  try {
    const key = (one: ReturnType<typeof watch>): string => JSON.stringify([one.feed, one.entity, one.reported_t]);
    const known = new Set(dismissed());
    const reported = (await get("watches/", list(watch))).filter((one) => one.reported_t !== null && !known.has(key(one)));
    document.querySelector("#toasts [data-sort=watch]")?.remove();
    const [first] = reported;
    if (first === undefined) return;
    const more = reported.length === 1 ? "" : t(" and {value} more", { value: reported.length - 1 });
    const href = query(`/feeds/${first.feed}/entity`, { id: first.entity });
    const text = t("{entity}{more} reported again.", { entity: first.entity, more });
    const node = show(text, "critical", { text: t("Look at it"), href }, () => dismiss(reported.map(key)));
    if (node !== null) node.dataset["sort"] = "watch";
  } catch {
    // Optional, like the count of alerts.
  }
}

function showAlertCount(count: number): void {
  const link = document.querySelector<HTMLAnchorElement>(".rail a[href='/alerts/']");
  if (link === null) return;
  link.querySelector(".rail-count")?.remove();
  if (count > 0)
    link.append(h("span", { class: "rail-count" }, count > 99 ? "99+" : count, h("span", { class: "visually-hidden" }, t(" new alerts"))));
}

/** A message that disappears after a while; errors stay until they are dismissed. */
export function toast(text: string, kind: ToastKind = "info", action?: { text: string; href: string }): void {
  show(text, kind, action);
}

/**
 * One message for all notifications of a kind: the newest, and how many came
 * before it while it was shown.
 */
export function countedToast(
  sort: string,
  text: string,
  kind: ToastKind,
  action: { text: string; href: string },
  all: { text: string; href: string },
): void {
  const before = document.querySelector<HTMLElement>(`#toasts [data-sort="${sort}"]`);
  const count = Number(before?.dataset["count"] ?? 0) + 1;
  const part = before?.contains(document.activeElement) === true ? document.activeElement?.tagName : undefined;
  before?.remove();
  const node = show(text, kind, count === 1 ? action : { text: `${all.text} (${count})`, href: all.href });
  if (node === null) return;
  node.dataset["sort"] = sort;
  node.dataset["count"] = String(count);
  if (part !== undefined) node.querySelector<HTMLElement>(part)?.focus();
}

type ToastKind = "info" | "good" | "critical";

function show(text: string, kind: ToastKind, action?: { text: string; href: string }, onDismiss?: () => void): HTMLElement | null {
  const place = document.getElementById("toasts");
  if (place === null) return null;
  // A repeated message, such as at each attempt while the server is unavailable, is shown once.
  for (const shown of place.querySelectorAll<HTMLElement>("[data-text]")) if (shown.dataset["text"] === text) shown.remove();
  const names = { info: "info", good: "circle-check", critical: "circle-alert" };
  const node = h(
    "div",
    { class: `toast toast-${kind}`, "data-text": onDismiss === undefined ? text : null },
    icon(names[kind]),
    h("div", { class: "grow" }, text, action ? h("div", {}, h("a", { href: action.href }, action.text)) : null),
  );
  let before: EventTarget | null = null;
  node.addEventListener("focusin", ({ relatedTarget }) => {
    if (!(relatedTarget instanceof Node && place.contains(relatedTarget))) before = relatedTarget;
  });
  const close = (): void => {
    node.remove();
    onDismiss?.();
    giveBack(before);
  };
  node.append(iconButton(t("Dismiss"), "x", { kind: "button-quiet button-sm", onClick: close }));
  place.append(node);
  while (place.children.length > 4) place.firstElementChild?.remove();
  if (kind !== "critical") removeUnused(node);
  return node;
}

/** After a message is dismissed, the focus is where it was before the message had it. */
function giveBack(before: EventTarget | null): void {
  if (document.activeElement !== document.body) return;
  const place = before instanceof HTMLElement && before.isConnected ? before : document.getElementById("main");
  place?.focus({ preventScroll: true });
}

/** Removes the message after a while, but not while it is used. */
function removeUnused(node: HTMLElement): void {
  setTimeout(() => (node.matches(":hover, :focus-within") ? removeUnused(node) : node.remove()), TOAST_MS);
}

export function fail(error: unknown): void {
  if (!(error instanceof NotShared)) toast(reason(error), "critical");
}

/** The bar at the top of an ordinary page, and the space below it. */
export function pageFrame(root: HTMLElement, title: string, actions: Node[] = [], kind = ""): HTMLElement {
  const body = h("div", { class: `page ${kind}`.trim() });
  replace(root, h("header", { class: "bar" }, h("h1", {}, title), h("div", { class: "bar-actions" }, ...actions)), body);
  return body;
}

const baseMap = record({
  name: string,
  tiles: otherwise(string, ""),
  wms: otherwise(string, ""),
  layers: otherwise(string, ""),
  attribution: otherwise(string, ""),
  least_zoom: otherwise(number, 0),
  most_zoom: otherwise(number, 19),
  /** West, south, east, north of an archive on this server; null for other maps. */
  bounds: otherwise(nullable(four), null),
  /** The settings of vector tiles; null for images. */
  vector_layers: otherwise(list(string), []),
});
export type BaseMap = ReturnType<typeof baseMap>;

/** Maps that can be chosen instead of the bundled one. */
export const baseMaps = (): BaseMap[] =>
  record({ base_maps: otherwise(list(baseMap), []) })(readJson("map-settings"), "/map-settings").base_maps;
