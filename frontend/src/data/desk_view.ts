/**
 * The view of the desk: filters and order, from and to the page's address, for the API, and applied
 * to rows that arrive in frames. Pure.
 */

import { t } from "../lib/texts";
import type { Order } from "./alert_list";
import { SEVERITIES, type Alert, type Severity } from "../lib/shapes";

export type AlertState = Alert["state"];
const OPEN: AlertState[] = ["new", "seen", "acknowledged", "assigned", "reopened"];
export const UNATTENDED: AlertState[] = ["new", "seen", "reopened"];

export interface Tab {
  name: string;
  text: string;
  states: AlertState[];
  /** Only alerts that ended without being handled. */
  isOver?: boolean;
  /** Only alerts assigned to the reader. */
  isMine?: boolean;
}
export const TABS: Tab[] = [
  { name: "open", text: t("Open"), states: OPEN },
  { name: "unattended", text: t("Unattended"), states: UNATTENDED },
  { name: "ended", text: t("Ended, unattended"), states: ["new", "seen", "assigned", "reopened"], isOver: true },
  { name: "mine", text: t("Mine"), states: OPEN, isMine: true },
  { name: "resolved", text: t("Resolved"), states: ["resolved"] },
];
export const ORDERS: [Order, string][] = [
  ["newest", t("Newest first")],
  ["oldest", t("Oldest first")],
  ["severity", t("Most severe first")],
  ["event", t("Latest event first")],
  ["-event", t("Earliest event first")],
];
/** The span from `from` to `until`. */
export const BETWEEN = "between";
/** The maximum age of an alert in hours. */
export const SINCE: [string, string][] = [
  ["", t("Opened any time")],
  ["1", t("Last hour")],
  ["8", t("Last 8 hours")],
  ["24", t("Last 24 hours")],
  ["168", t("Last 7 days")],
  [BETWEEN, t("From … until …")],
];

export const MUTED: [string, string][] = [
  ["", t("Not muted")],
  ["only", t("Muted ones")],
  ["all", t("Muted or not")],
];

export const GROUPS: [string, string][] = [
  ["", t("One by one")],
  ["query", t("By query")],
  ["entity", t("By entity")],
  ["region", t("By region")],
];

export interface DeskView {
  tab: Tab;
  order: Order;
  search: string;
  severity: Severity | "";
  feed: string;
  query: string;
  region: string;
  entity: string;
  assignee: string;
  since: string;
  /**
   * Bounds of the opening time as ISO 8601, the second exclusive; empty:
   * unbounded. For `BETWEEN` only.
   */
  from: string;
  until: string;
  muted: string;
  group: string;
}

const PLAIN = ["search", "feed", "query", "region", "entity", "assignee"] as const;

/** The view in an address; unknown parameters are ignored. */
export function viewFrom(search: string): DeskView {
  const given = new URLSearchParams(search);
  const text = (name: string): string => given.get(name) ?? "";
  const moment = (name: string): string => (text("since") === BETWEEN && !Number.isNaN(Date.parse(text(name))) ? text(name) : "");
  return {
    tab: TABS.find((one) => one.name === text("state")) ?? TABS[0]!,
    order: ORDERS.find(([name]) => name === text("order"))?.[0] ?? "newest",
    severity: SEVERITIES.find((one) => one === text("severity")) ?? "",
    search: text("search"),
    feed: text("feed"),
    query: text("query"),
    region: text("region"),
    entity: text("entity"),
    assignee: text("assignee"),
    since: SINCE.some(([hours]) => hours === text("since")) ? text("since") : "",
    from: moment("from"),
    until: moment("until"),
    muted: MUTED.some(([name]) => name === text("muted")) ? text("muted") : "",
    group: GROUPS.some(([name]) => name === text("group")) ? text("group") : "",
  };
}

/** The parameters of the page's address: only those that differ from the default. */
export function addressOf(view: DeskView): string {
  const search = new URLSearchParams();
  if (view.tab !== TABS[0]) search.set("state", view.tab.name);
  if (view.order !== "newest") search.set("order", view.order);
  for (const name of [...PLAIN, "severity", "since", "from", "until", "muted", "group"] as const)
    if (view[name] !== "") search.set(name, view[name]);
  return search.toString();
}

/** The parameters of the API: only filters. `now`: milliseconds. */
export function filtersOf(view: DeskView, now: number): URLSearchParams {
  const search = new URLSearchParams(view.tab.states.map((state) => ["state", state]));
  if (view.severity !== "") search.set("severity", view.severity);
  for (const name of PLAIN) if (view[name].trim() !== "") search.set(name, view[name].trim());
  if (view.tab.isOver) search.set("over", "true");
  if (view.tab.isMine) search.set("assignee", "me");
  if (view.muted !== "all") search.set("muted", String(view.muted === "only"));
  const { from, until } = spanOf(view, now);
  if (from !== null) search.set("opened_from", new Date(from).toISOString());
  if (until !== null) search.set("opened_to", new Date(until).toISOString());
  return search;
}

/** The bounds of the opening time in milliseconds; null: any time. */
function spanOf(view: DeskView, now: number): { from: number | null; until: number | null } {
  if (view.since === "") return { from: null, until: null };
  if (view.since !== BETWEEN) return { from: now - Number(view.since) * 3_600_000, until: null };
  return { from: view.from === "" ? null : Date.parse(view.from), until: view.until === "" ? null : Date.parse(view.until) };
}

/** The number of active filters without the tab. */
export function filterCount(view: DeskView): number {
  return [...PLAIN, "severity", "since", "muted"].filter((name) => view[name as "search"] !== "").length;
}

/**
 * Whether a row from a frame belongs to the view, by the same rules as on the server.
 * `queriesOfRegion`: the queries that use the region of the view.
 */
export function fitsView(row: Alert, view: DeskView, me: string, queriesOfRegion: ReadonlySet<string>, now: number): boolean {
  const assignee = view.tab.isMine ? "me" : view.assignee;
  const words = view.search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const { from, until } = spanOf(view, now);
  const texts = [row.query_name.toLowerCase(), row.kind.toLowerCase(), row.entities.join(" ").toLowerCase()];
  return (
    view.tab.states.includes(row.state) &&
    (!view.tab.isOver || row.over_at !== null) &&
    (view.muted === "all" || row.muted === (view.muted === "only")) &&
    (view.severity === "" || row.severity === view.severity) &&
    (view.feed === "" || row.feed === view.feed) &&
    (view.query === "" || row.query === view.query) &&
    (view.region === "" || queriesOfRegion.has(row.query)) &&
    (view.entity === "" || row.entities.includes(view.entity.trim())) &&
    (assignee === "" || (assignee === "nobody" ? row.assignee === null : row.assignee === (assignee === "me" ? me : assignee))) &&
    (from === null || row.opened_at >= from) &&
    (until === null || row.opened_at < until) &&
    words.every((word) => texts.some((text) => text.includes(word)))
  );
}
