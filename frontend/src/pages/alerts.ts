import { t, tn } from "../lib/texts";
import { AlertList } from "../data/alert_list";
import { addressOf, filtersOf, fitsView, viewFrom, type DeskView } from "../data/desk_view";
import { alert as alertParser, feed as feedParser, type Alert, type AlertGroup } from "../lib/shapes";
import { get, getAll, page } from "../lib/api";
import { alertCount, reachability } from "../lib/answers";
import { button, download, empty, h, isTyping, linkButton, replace } from "../lib/dom";
import { dictionary, integer, isObject } from "../lib/parse";
import { nextTask } from "../lib/tasks";
import { formatNumber } from "../lib/time";
import { LiveSocket, liveUrl } from "../live/socket";
import { AlertDetailView } from "../views/alert_detail_view";
import { AlertTableView } from "../views/alert_table_view";
import { BulkDecisionView } from "../views/bulk_decision_view";
import { DeskConnectionView } from "../views/desk_connection_view";
import { DeskFiltersView } from "../views/desk_filters_view";
import { DeskGroupsView } from "../views/desk_groups_view";
import { openDialog } from "../views/dialog_view";
import { attachExport } from "../views/export_menu";
import { openMutes } from "../views/mutes_view";
import { notifyAlert } from "../views/notifications";
import { fail, openShell, pageFrame, refreshAlertCount, toast } from "../views/shell_view";
import { warningNotice } from "../views/warning_view";

/** The first page fills a window; the rest is loaded while the reader looks at it. */
const FIRST_ROWS = 60;
const PAGE_ROWS = 200;
const COUNT_EVERY_MS = 2_000;
const FOLLOW_AGAIN_MS = 5_000;
/** The most rows of a file, as on the server. */
const FILE_ROWS = 100_000;
/** The state of a history entry that follows one of the list. */
const FROM_LIST = { isFromList: true };
const KEYS: [string, string][] = [
  ["j", t("Next alert")],
  ["k", t("Previous alert")],
  ["a", t("Acknowledge")],
  ["r", t("Resolve")],
  ["c", t("Comment")],
  ["/", t("Search")],
  [t("Esc"), t("Close the alert")],
  ["?", t("These keys")],
];

// In three tasks: as one, evaluating the modules and building the page takes 25 ms in a
// browser with a cold cache.
await nextTask();
const shell = openShell();
let view = viewFrom(location.search);
let open: string | null = null;
let next: string | null = null;
let total: number | null = null;
let isLoading = false;
/** The browser goes back to the list asynchronously. */
let isLeaving = false;
/** Drops responses to requests that are no longer current. */
let asked = 0;
let counting: ReturnType<typeof setTimeout> | null = null;

const rows = new AlertList((row) => fitsView(row, view, shell.me.name, filters.queriesOfRegion, Date.now()));
const count = h("span", { class: "small faint num", role: "status" });
const news = button("", { icon: "bell-ring", kind: "button-sm", onClick: () => release() });
const bulk = new BulkDecisionView({
  matching: () => filtersOf(view, Date.now()).toString(),
  total: () => total,
  done: () => {
    void load();
    refreshAlertCount();
  },
});
const table = new AlertTableView(rows, shell.feeds, shell.me.time_zone, {
  isChosen: (id) => bulk.has(id),
  choose,
  open: (id) => select(id),
  nearEnd: () => void loadMore(),
});
const connection = new DeskConnectionView(shell.feeds.length > 0, () => socket.retryNow());
const groups = new DeskGroupsView({ open: openGroup, acknowledge: acknowledgeGroup });
const detail = new AlertDetailView(
  shell.me,
  (name) => shell.feeds.find((one) => one.name === name),
  take,
  () => select(null),
);
await nextTask();
const panel = h("div", { class: "panel table-wrap desk-panel" });
const layout = h("div", { class: "alerts-layout" }, panel, detail.element);
const filters = new DeskFiltersView(view, shell.feeds, shell.me, look);

const exporter = button(t("Export"), {
  icon: "download",
  kind: "button-quiet button-sm",
  title: t("All alerts that match these filters, as a file"),
});
attachExport(exporter, exportAs);

const body = pageFrame(
  shell.root,
  t("Alerts"),
  [
    linkButton(t("Numbers"), "/alerts/numbers/", "activity", "button-quiet"),
    button(t("Mutes"), { icon: "bell-off", kind: "button-quiet", onClick: () => openMutes(shell.me, () => void load()) }),
    button(t("Keys"), { icon: "keyboard", kind: "button-quiet wide", title: t("Keyboard shortcuts (?)"), onClick: showKeys }),
    connection.element,
  ],
  "page-wide page-desk",
);
body.append(filters.element, h("div", { class: "row desk-status" }, count, exporter, news, bulk.element), layout);
news.hidden = true;
void get("channels/reach", reachability).then(({ warning }) => {
  if (warning !== "") body.prepend(warningNotice(warning));
}, fail);

/** The alerts of one group, one by one. */
function openGroup(key: string): void {
  const wanted: DeskView = {
    ...view,
    group: "",
    ...(view.group === "query" ? { query: key } : view.group === "entity" ? { entity: key } : { region: key }),
  };
  filters.show(wanted);
  look(wanted);
}

/** Handles all alerts of a group that match the view, as one decision. */
function acknowledgeGroup({ key, count: size }: AlertGroup): void {
  const matching = filtersOf(view, Date.now());
  matching.set(view.group, key);
  void bulk.decideAll("acknowledge", matching.toString(), size);
}

/** Not only the rows that are loaded; in the order of the list. */
function exportAs(format: string): void {
  const search = filtersOf(view, Date.now());
  search.set("order", view.order);
  search.set("format", format);
  download(`/api/v1/alerts/export?${search.toString()}`);
  if (total !== null && total > FILE_ROWS)
    toast(t("The file has the first {most} of {total} alerts.", { most: formatNumber(FILE_ROWS), total: formatNumber(total) }));
}

function look(wanted: DeskView): void {
  view = wanted;
  history.replaceState(history.state, "", address());
  void load();
}

/** The page's own: the open alert, and the view. */
function address(): string {
  const search = addressOf(view);
  return (open === null ? "/alerts/" : `/alerts/${open}`) + (search === "" ? "" : `?${search}`);
}

async function load(): Promise<void> {
  const turn = ++asked;
  bulk.clear();
  next = null;
  total = null;
  rows.clear(view.order);
  replace(
    panel,
    h("div", { class: "panel-body stack", "aria-busy": "true" }, ...[1, 2, 3, 4, 5].map(() => h("div", { class: "skeleton" }))),
  );
  isLoading = true;
  const search = filtersOf(view, Date.now());
  if (view.group !== "") {
    await groups.load(view.group, search);
    if (turn !== asked) return;
    isLoading = false;
    show();
  } else {
    search.set("order", view.order);
    search.set("page_size", String(FIRST_ROWS));
    await loadFrom(`alerts/?${search.toString()}`, turn);
    table.element.scrollTop = 0;
  }
  // The rows come first: for many alerts the server counts longer than it reads a page.
  if (turn === asked) void askCount();
}

async function loadMore(): Promise<void> {
  if (next !== null && !isLoading) await loadFrom(next, asked);
}

async function loadFrom(address: string, turn: number): Promise<void> {
  isLoading = true;
  try {
    const answer = await get(address, page(alertParser));
    if (turn !== asked) return;
    next = answer.next === null ? null : following(answer.next);
    rows.append(answer.results, next === null);
    isLoading = false;
    show();
  } catch (error) {
    if (turn === asked) isLoading = false;
    fail(error);
  }
}

function following(link: string): string {
  const url = new URL(link, location.href);
  url.searchParams.set("page_size", String(PAGE_ROWS));
  return url.pathname + url.search;
}

/** `isNews`: alerts have changed since the groups were loaded. */
async function askCount(isNews = false): Promise<void> {
  const turn = asked;
  try {
    const answer = await get(`alerts/count?${filtersOf(view, Date.now()).toString()}`, alertCount);
    if (turn !== asked) return;
    total = answer.count;
    if (view.group !== "" && isNews) void groups.load(view.group, filtersOf(view, Date.now()));
    show();
  } catch {
    // The count is optional: the list itself reports an unreachable server.
  }
}

function countSoon(): void {
  counting ??= setTimeout(() => {
    counting = null;
    void askCount(true);
  }, COUNT_EVERY_MS);
}

function show(): void {
  const shown = rows.shown();
  layout.classList.toggle("with-detail", open !== null);
  // Alerts that have just arrived are shown before they are counted.
  count.textContent = total === null ? "" : tn("1 alert", "{count} alerts", Math.max(total, shown.length));
  news.hidden = rows.waitingCount === 0;
  news.lastChild!.textContent = t("{waitingCount} new, show", { waitingCount: formatNumber(rows.waitingCount) });
  table.all.checked = bulk.isAll || (shown.length > 0 && bulk.chosen.size === shown.length);
  table.all.indeterminate = !table.all.checked && bulk.chosen.size > 0;
  bulk.show(view.tab.name === "resolved");
  // A list that is still loading is not shown as empty.
  if (isLoading && shown.length === 0) return;
  if (view.group !== "") {
    if (groups.element.parentElement !== panel) replace(panel, groups.element);
    return;
  }
  if (shown.length === 0 && rows.waitingCount === 0) {
    const isUsual = view.tab.name === "open" && addressOf(view) === "";
    replace(
      panel,
      isUsual
        ? empty(
            "shield-check",
            t("All quiet"),
            t("No alert is waiting. A query opens alerts for the kinds of answers that it names."),
            h("a", { class: "button", href: "/queries/" }, t("See the queries")),
          )
        : empty("bell", t("Nothing here"), t("No alert matches these filters.")),
    );
    return;
  }
  if (table.element.parentElement !== panel) replace(panel, table.element);
  table.drawSoon(open);
}

let showing = 0;
function showSoon(): void {
  if (showing !== 0) return;
  showing = requestAnimationFrame(() => {
    showing = 0;
    show();
  });
}

function release(): void {
  rows.release();
  show();
}

function choose(id: string, isOn: boolean): void {
  if (bulk.isAll) for (const row of rows.shown()) bulk.chosen.add(row.id);
  bulk.isAll = false;
  if (isOn) bulk.chosen.add(id);
  else bulk.chosen.delete(id);
  show();
}

/** A row that was changed here or elsewhere. */
function take(row: Alert): void {
  rows.put(row, table.isPointedAt);
  showSoon();
  countSoon();
  refreshAlertCount();
}

/**
 * Opening an alert from the list is one step in the history, so the browser's Back leads to the
 * list.
 */
function select(id: string | null): void {
  const before = open;
  turnTo(id);
  if (isLeaving) return;
  if (id !== null && before === null) history.pushState(FROM_LIST, "", address());
  else if (id === null && isObject(history.state) && history.state["isFromList"] === true) {
    isLeaving = true;
    history.back();
  } else history.replaceState(history.state, "", address());
}

function turnTo(id: string | null): void {
  const before = open;
  open = id;
  const row = id === null ? undefined : rows.get(id);
  if (row === undefined) detail.close();
  else void detail.open(row);
  show();
  if (id !== null) table.reveal(id);
  else if (before !== null) table.focus(before);
}

/** The address decides: the browser went back or forward. */
function follow(): void {
  if (isLeaving) {
    // Another alert may have been opened while the browser went back.
    isLeaving = false;
    if (open !== null) {
      history.pushState(FROM_LIST, "", address());
      return;
    }
  }
  const id = /^\/alerts\/(\d+)$/.exec(location.pathname)?.[1] ?? null;
  if (id !== open) turnTo(id !== null && rows.get(id) === undefined ? null : id);
  history.replaceState(history.state, "", address());
}

/**
 * The server has ended the socket, as it does when a feed was removed or is no longer shared: the
 * desk follows the others, or tries again if there is another or an unknown reason.
 */
async function followOthers(last: Map<string, number>): Promise<void> {
  const feeds = await getAll("feeds/", feedParser).catch(() => shell.feeds);
  const present = new Set(feeds.map(({ name }) => name));
  const gone = shell.feeds.filter(({ name }) => !present.has(name));
  if (gone.length === 0) {
    setTimeout(() => socket.retryNow(), FOLLOW_AGAIN_MS);
    return;
  }
  if (gone.length === shell.feeds.length) {
    connection.setState("forbidden");
    return;
  }
  for (const { name } of gone) {
    last.delete(name);
    connection.forget(name);
    shell.feeds.splice(
      shell.feeds.findIndex((one) => one.name === name),
      1,
    );
  }
  socket.open();
  void load();
}

/**
 * Changes of alerts arrive in the frames of their feed; one socket subscribes to all visible feeds.
 */
function liveSocket(): LiveSocket {
  /**
   * By feed: the number of the last change on this page. The rows were loaded after these
   * numbers, so no change is missed.
   */
  const last = new Map(Object.entries(dictionary(integer)(shell.data["outbox"], "/outbox")));
  const subscribe = (feed: string): void => {
    const since = last.get(feed) ?? null;
    socket.send({ type: "subscribe", feed, queries: null, bbox: [0, 0, 0, 0], since, from: Number.MAX_SAFE_INTEGER });
  };
  const socket = new LiveSocket({
    url: liveUrl(),
    onOpen: () => {
      for (const one of shell.feeds) subscribe(one.name);
    },
    onState: (kind) => {
      connection.setState(kind === "forbidden" ? "reconnecting" : kind);
      if (kind === "refused") location.assign(`/login/?next=${encodeURIComponent(location.pathname + location.search)}`);
      if (kind === "forbidden") void followOthers(last).catch(fail);
    },
    onFrame: (frame) => {
      connection.heard();
      if (frame.type === "status") connection.setStatus(frame);
      if (frame.type === "resync") {
        last.delete(frame.feed);
        subscribe(frame.feed);
      }
      if (frame.type !== "snapshot" && frame.type !== "changes") return;
      last.set(frame.feed, frame.seq);
      socket.send({ type: "ack", feed: frame.feed, seq: frame.seq });
      const isHeld = table.isPointedAt;
      for (const received of frame.alerts) {
        const known = rows.get(received.id);
        // Frames do not say whether this reader may handle it.
        const row = { ...received, feed: frame.feed, editable: known?.editable ?? received.editable };
        const isNews = frame.type === "changes" && row.state === "new" && known === undefined && row.over_at === null;
        if (frame.type === "changes" || known !== undefined || fitsView(row, view, shell.me.name, filters.queriesOfRegion, Date.now()))
          rows.put(row, isHeld);
        detail.changed(row);
        if (isNews && !row.muted) notifyAlert(row);
      }
      if (frame.alerts.length === 0) return;
      showSoon();
      countSoon();
      refreshAlertCount();
    },
  });
  return socket;
}

function showKeys(): void {
  const dialog = openDialog(
    t("Keys"),
    h("dl", { class: "dl keys" }, ...KEYS.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
  );
  dialog.foot.append(button(t("Close"), { onClick: dialog.close }));
}

function decide(action: "acknowledge" | "resolve"): void {
  const row = open === null ? undefined : rows.get(open);
  if (row !== undefined) void detail.decide(row, action);
}

document.addEventListener("keydown", (event) => {
  if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null) return;
  const shown = rows.shown();
  const at = open === null ? -1 : rows.indexOf(open);
  const step = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
  if (step !== 0 && shown[at + step] !== undefined && at + step >= 0) select(shown[at + step]!.id);
  else if (event.key === "Escape" && open !== null) select(null);
  else if (event.key === "a") decide("acknowledge");
  else if (event.key === "r") decide("resolve");
  else if (event.key === "c" && open !== null) detail.focusComment();
  else if (event.key === "/") filters.focusSearch();
  else if (event.key === "?") showKeys();
  else return;
  event.preventDefault();
});
table.all.addEventListener("change", () => {
  bulk.clear();
  bulk.isAll = table.all.checked && next !== null;
  if (table.all.checked && !bulk.isAll) for (const row of rows.shown()) bulk.chosen.add(row.id);
  show();
});
panel.addEventListener("pointerleave", () => {
  // Rows that no longer match are removed when the pointer leaves them; new
  // ones wait for the button.
  if (rows.isHeld && rows.waitingCount === 0) release();
});

addEventListener("popstate", follow);

const socket = liveSocket();
const first = shell.data["alert"];

async function openFirst(): Promise<void> {
  if (typeof first !== "number" && typeof first !== "string") return;
  try {
    if (rows.get(String(first)) === undefined) rows.put(await get(`alerts/${first}/`, alertParser));
    turnTo(String(first));
  } catch (error) {
    fail(error);
  }
}

void load().finally(() => {
  socket.open();
  void filters.loadViews();
  void openFirst();
});
