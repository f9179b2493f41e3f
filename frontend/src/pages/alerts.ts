import { get, page, post, query as address } from "../lib/api";
import { button, empty, h, icon, isTyping, longName, replace } from "../lib/dom";
import { AlertList } from "../data/alert_list";
import { id, list, record } from "../lib/parse";
import { alert as alertParser, SEVERITIES, type Alert } from "../data/shapes";
import { formatAgo, formatMoment, formatNumber } from "../lib/time";
import { kindName, SEVERITY_NAMES, STATE_NAMES } from "../lib/words";
import { LiveSocket, liveUrl } from "../live/socket";
import { AlertDetailView } from "../views/alert_detail_view";
import { notifyAlert } from "../views/notifications";
import { fail, openShell, pageFrame, refreshAlertCount, toast } from "../views/shell_view";

const STEP = 100;
const shell = openShell();
const rows = new AlertList(fits);
const chosen = new Set<string>();
const parameters = new URLSearchParams(location.search);
let state = parameters.get("state") ?? "open";
let severity = parameters.get("severity") ?? "";
let feed = parameters.get("feed") ?? "";
let open: string | null = null;
let next: string | null = null;
/** Rows that the table has elements for: more come as the reader scrolls to its end. */
let limit = 0;
let drawing = 0;

const body = pageFrame(shell.root, "Alerts", [], "page-wide");
const tabs = h("div", { class: "segmented", role: "group", "aria-label": "State" });
const severities = h("select", { class: "select", "aria-label": "Severity" }, h("option", { value: "" }, "Any severity"), ...SEVERITIES.map((one) => h("option", { value: one, selected: one === severity }, SEVERITY_NAMES[one])));
const feeds = h("select", { class: "select", "aria-label": "Feed" }, h("option", { value: "" }, "All feeds"), ...shell.feeds.map((one) => h("option", { value: one.name, selected: one.name === feed }, one.title === "" ? one.name : one.title)));
const bulk = h("div", { class: "row bulk", hidden: true });
const table = h("div", { class: "panel table-wrap" });
const detail = new AlertDetailView(shell.me.time_zone, (name) => shell.feeds.find((one) => one.name === name), take, () => select(null));
const layout = h("div", { class: "alerts-layout" }, table, detail.element);
body.append(h("div", { class: "toolbar" }, tabs, h("div", { class: "toolbar-select" }, severities), h("div", { class: "toolbar-select" }, feeds), bulk), layout);

const TABS: [string, string, Alert["state"][]][] = [
  ["open", "Open", ["new", "acknowledged"]],
  ["new", "New", ["new"]],
  ["acknowledged", "Acknowledged", ["acknowledged"]],
  ["resolved", "Resolved", ["resolved"]],
];

function wanted(): Alert["state"][] {
  return TABS.find(([name]) => name === state)?.[2] ?? ["new", "acknowledged"];
}

function fits(row: Alert): boolean {
  return wanted().includes(row.state) && (severity === "" || row.severity === severity) && (feed === "" || row.feed === feed);
}

function take(row: Alert): void {
  rows.put(row);
  showSoon();
  refreshAlertCount();
}

/** Once a frame, however many alerts came. */
function showSoon(): void {
  if (drawing !== 0) return;
  drawing = requestAnimationFrame(() => {
    drawing = 0;
    show();
  });
}

async function load(more = false): Promise<void> {
  if (!more) {
    rows.clear();
    chosen.clear();
    next = null;
    limit = STEP;
    replace(table, h("div", { class: "panel-body stack" }, ...[1, 2, 3, 4, 5].map(() => h("div", { class: "skeleton" }))));
  }
  const search = new URLSearchParams(wanted().map((one) => ["state", one]));
  if (severity !== "") search.set("severity", severity);
  if (feed !== "") search.set("feed", feed);
  search.set("page_size", "100");
  try {
    const answer = await get(more && next !== null ? next : `alerts/?${search.toString()}`, page(alertParser));
    for (const row of answer.results) rows.put(row);
    next = answer.next === null ? null : new URL(answer.next, location.href).pathname + new URL(answer.next, location.href).search;
    show();
  } catch (error) {
    fail(error);
  }
}

const tableBody = h("tbody", {});
const all = h("input", { type: "checkbox", "aria-label": "Choose all" });
const news = button("", { icon: "bell-ring", kind: "button-sm", onClick: () => release() });
const olderButton = button("Show older", { onClick: () => older() });
const count = h("span", { class: "small faint" });
const foot = h("div", { class: "panel-body row" }, olderButton, count);
const head = h("thead", {}, h("tr", {}, h("th", { class: "tick" }, all), ...["Severity", "What", "Query", "Since", "State"].map((text) => h("th", { scope: "col" }, text))));
const filled = [h("div", { class: "panel-body row news-row" }, news), h("table", { class: "table alerts-table" }, head, tableBody), foot];
/** By alert: its row and what it was made from. */
const made = new Map<string, { element: HTMLElement; from: string }>();
all.addEventListener("change", () => {
  chosen.clear();
  if (all.checked) for (const row of rows.shown()) chosen.add(row.id);
  show();
});
new IntersectionObserver((entries) => {
  if (entries.some((one) => one.isIntersecting)) older();
}).observe(foot);

function release(): void {
  rows.release();
  showSoon();
}

function older(): void {
  if (limit < rows.shown().length) {
    limit += STEP;
    showSoon();
  } else if (next !== null) {
    limit += STEP;
    void load(true);
  }
}

function show(): void {
  replace(tabs, ...TABS.map(([name, text]) => h("button", { type: "button", "aria-pressed": String(name === state), onClick: () => filter({ state: name }) }, text)));
  const shown = rows.shown();
  const isShown = new Set(shown.map((row) => row.id));
  for (const one of chosen) if (!isShown.has(one)) chosen.delete(one);
  showBulk();
  layout.classList.toggle("with-detail", open !== null);
  if (shown.length === 0 && rows.waitingCount === 0) {
    const isOpen = state === "open" || state === "new";
    replace(table, isOpen ? empty("shield-check", "All quiet", "No alert is waiting. A query opens alerts for the kinds of answers that it names.", h("a", { class: "button", href: "/queries/" }, "See the queries")) : empty("bell", "Nothing here", "No alert is in this state with these filters."));
    return;
  }
  if (tableBody.parentElement?.parentElement !== table) replace(table, ...filled);
  all.checked = chosen.size === shown.length && shown.length > 0;
  all.indeterminate = chosen.size > 0 && chosen.size < shown.length;
  filled[0]!.hidden = rows.waitingCount === 0;
  news.lastChild!.textContent = `${rows.waitingCount} new, show`;
  fill(shown.slice(0, limit));
  const rest = shown.length - limit;
  olderButton.hidden = next === null && rest <= 0;
  count.hidden = !olderButton.hidden;
  count.textContent = `${formatNumber(shown.length)} alert${shown.length === 1 ? "" : "s"}`;
}

/** Rows that are as they were stay as they are: neither focus nor pointer loses what it is on. */
function fill(visible: readonly Alert[]): void {
  const minute = Math.floor(Date.now() / 30_000);
  const elements = visible.map((row) => {
    const from = JSON.stringify([row, chosen.has(row.id), row.id === open, minute]);
    const known = made.get(row.id);
    if (known?.from === from) return known.element;
    const element = tableRow(row);
    made.set(row.id, { element, from });
    return element;
  });
  const kept = new Set(visible.map((row) => row.id));
  for (const one of made.keys()) if (!kept.has(one)) made.delete(one);
  if (elements.length !== tableBody.children.length || elements.some((one, i) => one !== tableBody.children[i])) tableBody.replaceChildren(...elements);
}

function tableRow(row: Alert): HTMLElement {
  const box = h("input", { type: "checkbox", checked: chosen.has(row.id), "aria-label": `Choose ${row.entities.join(", ") || kindName(row.kind)}` });
  box.addEventListener("change", () => {
    if (box.checked) chosen.add(row.id);
    else chosen.delete(row.id);
    show();
  });
  const unit = shell.feeds.find((one) => one.name === row.feed)?.time ?? "ms";
  const what = row.entities.join(", ") || kindName(row.kind);
  return h(
    "tr",
    { class: "clickable", "data-alert": row.id, "aria-selected": String(row.id === open), onClick: (event) => { if (!(event.target instanceof HTMLInputElement)) select(row.id); } },
    h("td", { class: "tick" }, box),
    h("td", {}, h("span", { class: `badge badge-dot badge-${row.severity}` }, SEVERITY_NAMES[row.severity])),
    h("td", {}, h("button", { type: "button", class: "query-name", "aria-label": what, onClick: () => select(row.id) }, longName("span", what)), row.entities.length === 0 ? null : h("div", { class: "small muted" }, kindName(row.kind))),
    h("td", {}, h("div", { class: "truncate alert-query" }, row.query_name)),
    h("td", { class: "nowrap num" }, h("div", {}, formatAgo(row.opened_at, Date.now())), h("div", { class: "small faint" }, formatMoment(row.start, unit, shell.me.time_zone))),
    h("td", { class: "nowrap" }, h("span", { class: `badge ${row.state === "new" ? "badge-accent" : row.state === "resolved" ? "badge-good" : ""}` }, STATE_NAMES[row.state]), row.acknowledged_by !== null && row.state === "acknowledged" ? h("div", { class: "small faint" }, row.acknowledged_by) : null),
  );
}

function showBulk(): void {
  bulk.hidden = chosen.size === 0;
  if (chosen.size === 0) return;
  const act = (action: "acknowledge" | "resolve"): void => {
    post("alerts/bulk", { ids: [...chosen].map(Number), action }, record({ changed: list(id) })).then((answer) => {
      toast(`${answer.changed.length} alert${answer.changed.length === 1 ? "" : "s"} ${action === "resolve" ? "resolved" : "acknowledged"}.`, "good");
      for (const one of answer.changed) {
        const row = rows.get(one);
        if (row !== undefined) rows.put({ ...row, state: action === "resolve" ? "resolved" : "acknowledged", acknowledged_by: row.acknowledged_by ?? shell.me.name });
      }
      chosen.clear();
      show();
      refreshAlertCount();
    }, fail);
  };
  replace(bulk, h("span", { class: "small num" }, `${chosen.size} chosen`), button("Acknowledge", { icon: "check", kind: "button-sm", onClick: () => act("acknowledge") }), button("Resolve", { icon: "check-check", kind: "button-sm", onClick: () => act("resolve") }));
}

function filter(change: { state?: string; severity?: string; feed?: string }): void {
  state = change.state ?? state;
  severity = change.severity ?? severity;
  feed = change.feed ?? feed;
  rows.refresh();
  history.replaceState(null, "", address("/alerts/", { state: state === "open" ? null : state, severity, feed }));
  void load();
}

function select(one: string | null): void {
  open = one;
  const row = one === null ? undefined : rows.get(one);
  const place = rows.shown().findIndex((other) => other.id === one);
  if (place >= limit) limit = place + STEP;
  if (row === undefined) detail.close();
  else void detail.open(row);
  history.replaceState(null, "", one === null ? "/alerts/" : `/alerts/${one}${location.search}`);
  show();
}

/** Changes of alerts travel in the frames of their feed; one socket listens to all feeds that can be seen. */
function listen(): void {
  const snapshots = new Set<string>();
  const socket = new LiveSocket({
    url: liveUrl(),
    onOpen: () => {
      snapshots.clear();
      for (const one of shell.feeds) socket.send({ type: "subscribe", feed: one.name, queries: null, bbox: [0, 0, 0, 0], since: null, from: Number.MAX_SAFE_INTEGER });
    },
    onState: (kind) => {
      if (kind === "refused") location.assign("/login/?next=/alerts/");
    },
    onFrame: (frame) => {
      if (frame.type === "resync") socket.send({ type: "subscribe", feed: frame.feed, queries: null, bbox: [0, 0, 0, 0], since: null, from: Number.MAX_SAFE_INTEGER });
      if (frame.type !== "snapshot" && frame.type !== "changes") return;
      socket.send({ type: "ack", feed: frame.feed, seq: frame.seq });
      for (const told of frame.alerts) {
        // Frames do not say whether this reader may handle it.
        const row = { ...told, feed: frame.feed, editable: rows.get(told.id)?.editable ?? told.editable };
        const isNews = frame.type === "changes" && row.state === "new" && rows.get(row.id) === undefined;
        if (frame.type === "changes" || fits(row)) rows.put(row, isNews && tableBody.matches(":hover"));
        if (isNews) notifyAlert(row);
      }
      if (frame.alerts.length === 0) return;
      showSoon();
      refreshAlertCount();
    },
  });
  socket.open();
}

document.addEventListener("keydown", (event) => {
  if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  const shown = rows.shown().map((row) => row.id);
  const at = open === null ? -1 : shown.indexOf(open);
  if (event.key === "j" && shown[at + 1] !== undefined) select(shown[at + 1]!);
  else if (event.key === "k" && at > 0) select(shown[at - 1]!);
  else if (event.key === "Escape" && open !== null) select(null);
  else if (event.key === "e" && open !== null && rows.get(open)?.state === "new") post(`alerts/${open}/acknowledge`, {}, alertParser).then((row) => (take(row), void detail.open(row)), fail);
});
severities.addEventListener("change", () => filter({ severity: severities.value }));
feeds.addEventListener("change", () => filter({ feed: feeds.value }));
setInterval(() => show(), 30_000);

const first = shell.data["alert"];
void load().then(async () => {
  if (typeof first !== "number" && typeof first !== "string") return;
  try {
    if (rows.get(String(first)) === undefined) rows.put(await get(`alerts/${first}/`, alertParser));
    select(String(first));
  } catch (error) {
    fail(error);
  }
});
listen();
replace(bulk, icon("check"));
