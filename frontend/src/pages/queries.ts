import { call, get, getAll, post, query as address } from "../lib/api";
import { removedHere } from "../lib/answers";
import { button, empty, h, icon, linkButton, replace } from "../lib/dom";
import { queryColour, spreadColours } from "../lib/colours";
import { byFolder, matching, tagsOf } from "../data/query_list";
import { queryRow, removedQueries, type QueryRow, type RemovedQuery } from "../lib/shapes";
import { formatAgo, formatNumber } from "../lib/time";
import { familyName, inSentence, kindName, SEVERITY_NAMES } from "../lib/words";
import { unlessOthersStop } from "../views/dependents";
import { confirmDanger } from "../views/dialog_view";
import { fail, openShell, pageFrame, toast } from "../views/shell_view";
import { t, tn } from "../lib/texts";

const shell = openShell();
const parameters = new URLSearchParams(location.search);
/** The number of rows shown at first, and added by each "more". */
const PAGE = 200;
const body = pageFrame(shell.root, t("Queries"), [
  linkButton(t("From a file"), "/queries/new?from=file", "file-up"),
  linkButton(t("New query"), "/queries/new", "plus", "button-primary"),
]);
const search = h("input", { class: "input", type: "search", placeholder: t("Search queries"), "aria-label": t("Search queries") });
const feedSelect = h(
  "select",
  { class: "select", "aria-label": t("Feed") },
  h("option", { value: "" }, t("All feeds")),
  ...shell.feeds.map((feed) =>
    h("option", { value: feed.name, selected: feed.name === parameters.get("feed") }, feed.title === "" ? feed.name : feed.title),
  ),
);
const tagSelect = h("select", { class: "select", "aria-label": t("Tag") }, h("option", { value: "" }, t("All tags")));
const mine = h("input", { type: "checkbox", checked: parameters.get("mine") === "true" });
const count = h("span", { class: "small faint num" });
const removal = button(t("Remove these"), { icon: "trash-2", kind: "button-sm button-danger", onClick: () => removeShown() });
removal.hidden = true;
const panel = h(
  "div",
  { class: "panel table-wrap", "aria-busy": "true" },
  h("div", { class: "panel-body stack" }, ...[1, 2, 3, 4].map(() => h("div", { class: "skeleton" }))),
);
body.append(
  h(
    "div",
    { class: "toolbar" },
    h("div", { class: "toolbar-search" }, search),
    h("div", { class: "toolbar-select" }, feedSelect),
    h("div", { class: "toolbar-select" }, tagSelect),
    h("label", { class: "check" }, mine, h("span", {}, t("Only mine"))),
    count,
    removal,
  ),
  panel,
);
let rows: QueryRow[] = [];
let most = PAGE;

async function switchTo(row: QueryRow, box: HTMLInputElement): Promise<void> {
  try {
    const enabled = box.checked;
    const changed = await unlessOthersStop(
      async (stop) =>
        queryRow(await call(`queries/${row.id}/`, { method: "PATCH", body: { enabled, ...(stop ? { stop_dependents: true } : {}) } })),
      t("Switch off all of them"),
    );
    if (changed === null) {
      box.checked = row.enabled;
      return;
    }
    Object.assign(row, changed);
    show();
    toast(
      changed.enabled
        ? t("“{name}” is on: it catches up from the log and continues live.", { name: row.name })
        : t("“{name}” is off.", { name: row.name }),
      "good",
    );
  } catch (error) {
    box.checked = row.enabled;
    fail(error);
  }
}

/** Why the job runs without the query, and what to do about it. */
function stoppedNote(row: QueryRow): HTMLElement | null {
  if (row.stopped === null) return null;
  return h(
    "div",
    { class: "small" },
    h("span", { class: "badge badge-critical" }, t("stopped")),
    t(" {reason}. Narrow it down, or switch it off and on, to start again.", { reason: row.stopped.reason }),
  );
}

function tableRow(row: QueryRow): HTMLElement {
  const box = h("input", {
    type: "checkbox",
    checked: row.enabled,
    disabled: !row.editable,
    "aria-label": t("{name} is switched on", { name: row.name }),
  });
  box.addEventListener("change", () => void switchTo(row, box));
  const href = `/queries/${row.id}`;
  return h(
    "tr",
    {},
    h(
      "td",
      {},
      h(
        "div",
        { class: "row" },
        h("span", { class: "swatch", vars: { "--swatch": queryColour(row.id) } }),
        h(
          "div",
          { class: "grow" },
          h("a", { href, class: "title-link" }, row.name),
          h("div", { class: "small muted query-sentence" }, row.sentence),
          row.tags.length === 0 ? null : h("div", { class: "row row-wrap" }, ...row.tags.map((tag) => h("span", { class: "badge" }, tag))),
          stoppedNote(row),
        ),
      ),
    ),
    h("td", { class: "nowrap" }, familyName(row.family)),
    h(
      "td",
      { class: "nowrap" },
      h(
        "a",
        { href: address("/", { feed: row.feed }), class: "quiet-link" },
        shell.feeds.find((feed) => feed.name === row.feed)?.title ?? row.feed,
      ),
    ),
    h(
      "td",
      {},
      row.alert_kinds.length === 0
        ? h("span", { class: "faint" }, h("span", { class: "narrow-only" }, t("Alerts: ")), t("none"))
        : h(
            "div",
            { class: "row row-wrap" },
            h("span", { class: `badge badge-${row.severity}` }, SEVERITY_NAMES[row.severity]),
            h("span", { class: "small muted" }, row.alert_kinds.map((kind) => inSentence(kindName(kind))).join(", ")),
          ),
    ),
    h("td", { class: "num faint nowrap" }, `v${row.version}`, row.updated_at > 0 ? ` · ${formatAgo(row.updated_at, Date.now())}` : ""),
    h("td", {}, h("label", { class: "switch" }, box, h("span", {}))),
  );
}

/** The rows that match search, feed, tag and owner. */
function chosen(): QueryRow[] {
  return matching(rows, { text: search.value, feed: feedSelect.value, tag: tagSelect.value, owner: mine.checked ? shell.me.id : null });
}

function isWholeFeed(): boolean {
  return search.value.trim() === "" && tagSelect.value === "" && !mine.checked;
}

/**
 * Switches everything that the list shows of one feed, at once; without a search including rows
 * of the feed not listed yet.
 */
async function removeShown(): Promise<void> {
  const feed = feedSelect.value;
  const which = isWholeFeed() ? { feed, partial: true } : { feed, partial: true, ids: chosen().map((row) => Number(row.id)) };
  try {
    const { removed } = await post("queries/remove", { ...which, dry_run: true }, removedHere);
    const words = tn("1 query", "{count} queries", removed.length);
    if (removed.length === 0) toast(t("None of these is yours to remove."), "info");
    if (
      removed.length === 0 ||
      !(await confirmDanger(
        t("Remove {words}?", { words }),
        t("All of them stop giving answers. Those they have given are kept. Queries that others registered stay."),
        t("Remove {words}", { words }),
      ))
    )
      return;
    const done = await unlessOthersStop(
      (stop) => post("queries/remove", { ...which, ids: removed.map(Number), stop_dependents: stop }, removedHere),
      t("Remove {words}", { words }),
    );
    if (done === null) return;
    const gone = new Set(done.removed);
    rows = rows.filter((row) => !gone.has(row.id));
    find();
    toast(tn("1 query is removed.", "{count} queries are removed.", removed.length), "good");
  } catch (error) {
    fail(error);
  }
}

/** A table body for each folder, under its name; without folders one body. */
function folderBodies(shown: readonly QueryRow[]): HTMLElement[] {
  const folders = byFolder(shown);
  const isFlat = folders.every(([folder]) => folder === "");
  const heading = (folder: string): HTMLElement =>
    h(
      "tr",
      { class: "folder-row" },
      h("th", { scope: "rowgroup", colspan: 6 }, icon("folder"), folder === "" ? t("In no folder") : folder),
    );
  return folders.map(([folder, inside]) => h("tbody", {}, isFlat ? null : heading(folder), ...inside.map(tableRow)));
}

function showTags(): void {
  const chosenTag = tagSelect.value;
  replace(
    tagSelect,
    h("option", { value: "" }, t("All tags")),
    ...tagsOf(rows).map((tag) => h("option", { value: tag, selected: tag === chosenTag }, tag)),
  );
  tagSelect.disabled = tagSelect.options.length === 1;
}

function show(): void {
  const shown = chosen();
  removal.hidden = feedSelect.value === "" || !shown.some((row) => row.editable);
  count.textContent =
    rows.length === 0 ? "" : t("{shown} of {count}", { shown: formatNumber(shown.length), count: formatNumber(rows.length) });
  if (rows.length === 0)
    replace(
      panel,
      empty(
        "waypoints",
        t("No queries yet"),
        t("A query runs continuously: draw a region, choose what counts, and Vedette notifies you each time it happens."),
        linkButton(t("Register the first one"), "/queries/new", "plus", "button-primary"),
      ),
    );
  else if (shown.length === 0) replace(panel, empty("search", t("Nothing matches"), t("Clear the search or choose another feed.")));
  else
    replace(
      panel,
      h(
        "table",
        { class: "table queries-table" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...[t("Query"), t("Kind"), t("Feed"), t("Alerts"), t("Version"), t("On")].map((text) => h("th", { scope: "col" }, text)),
          ),
        ),
        ...folderBodies(shown.slice(0, most)),
      ),
      shown.length > most
        ? h(
            "div",
            { class: "panel-body" },
            button(t("Show more: {count} are left", { count: formatNumber(shown.length - most) }), {
              icon: "chevron-down",
              onClick: showMore,
            }),
          )
        : null,
    );
}

/** Below the list: removed queries whose answers are kept. */
async function showRemoved(): Promise<void> {
  const { results } = await get("detections/removed-queries", removedQueries);
  if (results.length === 0) return;
  panel.after(
    h(
      "details",
      { class: "panel removed-queries" },
      h("summary", {}, t("Removed queries: {count}", { count: formatNumber(results.length) })),
      h(
        "table",
        { class: "table" },
        h(
          "thead",
          {},
          h("tr", {}, ...[t("Query"), t("Kind"), t("Feed"), t("Removed"), t("Answers")].map((text) => h("th", { scope: "col" }, text))),
        ),
        h("tbody", {}, ...results.map(removedRow)),
      ),
    ),
  );
}

function removedRow(row: RemovedQuery): HTMLElement {
  const file = address("/api/v1/detections/export", { feed: row.feed, query: row.id, format: "csv" });
  return h(
    "tr",
    {},
    h("td", {}, row.name),
    h("td", {}, familyName(row.family)),
    h("td", {}, row.feed),
    h("td", { class: "faint nowrap" }, formatAgo(row.removed_at, Date.now())),
    h(
      "td",
      { class: "num nowrap" },
      row.answers === 0
        ? t("none")
        : h(
            "a",
            { href: file, "aria-label": t("{answers} answers of {name} as CSV", { answers: formatNumber(row.answers), name: row.name }) },
            t("{answers} as CSV", { answers: formatNumber(row.answers) }),
          ),
    ),
  );
}

function showMore(): void {
  most += PAGE;
  show();
}

/** Starts again from the first row: the filters have changed. */
function find(): void {
  most = PAGE;
  show();
}

search.addEventListener("input", find);
for (const control of [feedSelect, tagSelect, mine]) control.addEventListener("change", find);
const registered = Number(parameters.get("registered") ?? "");
if (registered > 0) {
  toast(
    tn("1 query is registered. It acts within seconds.", "{count} queries are registered. They act within seconds.", registered),
    "good",
  );
  history.replaceState(null, "", address("/queries/", { feed: parameters.get("feed") }));
}
getAll(address("queries/", { page_size: 1000 }), queryRow, 20_000).then(
  (found) => {
    rows = found;
    for (const feed of new Set(rows.map((row) => row.feed))) spreadColours(rows.filter((row) => row.feed === feed).map((row) => row.id));
    panel.removeAttribute("aria-busy");
    showTags();
    show();
    showRemoved().catch(fail);
  },
  (error: unknown) => {
    replace(
      panel,
      empty("circle-alert", t("The queries could not be loaded"), t("Check the connection, then load the page again.")),
      h("span", {}, icon("refresh-cw")),
    );
    fail(error);
  },
);
