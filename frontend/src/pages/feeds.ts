import "uplot/dist/uPlot.min.css";
import uPlot from "uplot";
import { ApiError, call, get, getAll, post } from "../lib/api";
import { button, empty, h, icon, linkButton, replace } from "../lib/dom";
import { onThemeChange, token } from "../lib/colours";
import { feedMeasures, feedStatus, job as jobParser, type FeedStatus, type Happened, type Job } from "../lib/shapes";
import { mayOperate } from "../lib/roles";
import { formatAgo, formatClock, formatNumber, formatSpan } from "../lib/time";
import { JOB_EVENTS, JOB_STATES, kindName } from "../lib/words";
import { confirmDanger, openDialog } from "../views/dialog_view";
import { showDeadLetters } from "../views/dead_letters_view";
import { showFaults } from "../views/faults_view";
import { openConnectors } from "../views/connectors/list_view";
import { openFeedSettings } from "../views/feed_form_view";
import { fail, openShell, pageFrame, toast } from "../views/shell_view";
import { OutdatedView } from "../views/outdated_view";
import { rowsFileButton } from "../views/rows_file_view";
import { warningNotice } from "../views/warning_view";
import { samplesView } from "../views/wizard/samples_view";
import { formatCompact, t } from "../lib/texts";
import { failingSentence } from "../data/connector_data";

const EVERY_MS = 3000;
/**
 * Points of a chart: half an hour of stored measurements (one per ten
 * seconds), then one per refresh.
 */
const KEPT = 800;
const shell = openShell();
/** Teams for which the reader may create feeds and jobs. */
const teams = shell.me.teams.filter((one) => one.role === "operator" || one.role === "admin");
const mayMake = mayOperate(shell.me);
const newFeed = (kind: string): HTMLElement => linkButton(t("New feed"), "/feeds/new", "plus", kind);
const body = pageFrame(shell.root, t("Feeds and jobs"), [
  ...(teams.length > 0 ? [button(t("New job"), { icon: "plus", onClick: newJob })] : []),
  ...(mayMake ? [newFeed("")] : []),
]);
/** The last response of the server; offered by each feed's card. */
let jobs: readonly Job[] = [];
const jobsPlace = h("section", { class: "stack-lg", "aria-label": t("Jobs") });
const feedsPlace = h("section", { class: "stack-lg", "aria-label": t("Feeds") });
const outdated = new OutdatedView(shell.me.time_zone);
body.append(outdated.element, jobsPlace, feedsPlace);
/** Shown while there is no feed. */
const samplesPlace = h("div", { "data-empty": true });
if (mayMake) samplesPlace.append(samplesView(teams[0]?.id ?? null));

// ---- Jobs

const STATE_BADGES: Record<string, string> = {
  running: "badge-good",
  starting: "badge-accent",
  stopping: "badge-accent",
  backoff: "badge-high",
  crash_loop: "badge-critical",
};

function eventList(events: readonly Happened[]): HTMLElement {
  return h(
    "ol",
    { class: "events" },
    ...events.map((event) =>
      h(
        "li",
        {},
        h("span", { class: "faint num" }, formatAgo(event.at, Date.now())),
        h("span", { class: "badge" }, JOB_EVENTS[event.kind] ?? kindName(event.kind)),
        h("span", { class: "grow" }, event.text),
      ),
    ),
  );
}

function jobCard(row: Job): HTMLElement {
  const act = (action: "start" | "stop") => (): void => {
    const ask =
      action === "stop"
        ? confirmDanger(
            t("Stop the job “{name}”?", { name: row.name }),
            t("Rows of its feeds are still received and stored; answers wait until it is started again."),
            t("Stop job"),
          )
        : Promise.resolve(true);
    void ask.then((isSure) => {
      if (isSure) post(`jobs/${row.name}/${action}`, {}, jobParser).then(() => void refresh(), fail);
    });
  };
  const isWanted = row.desired_state === "running";
  const facts: [string, string][] = [
    [t("Started"), row.started_at === null ? "–" : formatAgo(row.started_at, Date.now())],
    [t("Last sign of life"), row.heartbeat === null ? "–" : formatAgo(row.heartbeat, Date.now())],
    [t("Restarts"), formatNumber(row.restarts)],
    [t("Feeds"), row.feeds.join(", ") || "–"],
    ...(row.team === null ? [] : [[t("Team"), row.team.name] satisfies [string, string]]),
  ];
  return h(
    "article",
    { class: "panel" },
    h(
      "div",
      { class: "panel-head" },
      h("h2", {}, t("Job {name}", { name: row.name })),
      h(
        "span",
        { class: `badge badge-dot ${STATE_BADGES[row.observed_state] ?? ""}` },
        JOB_STATES[row.observed_state] ?? row.observed_state,
      ),
      isWanted
        ? button(t("Stop"), { icon: "circle-stop", kind: "button-sm", "data-job": row.name, disabled: !row.editable, onClick: act("stop") })
        : button(t("Start"), {
            icon: "circle-play",
            kind: "button-sm button-primary",
            "data-job": row.name,
            disabled: !row.editable,
            onClick: act("start"),
          }),
      row.team !== null && row.editable && row.observed_state === "stopped" && row.feeds.length === 0
        ? button(t("Remove"), {
            kind: "button-quiet button-danger button-sm",
            "aria-label": t("Remove the job {name}", { name: row.name }),
            onClick: () => removeJob(row),
          })
        : null,
    ),
    h(
      "div",
      { class: "panel-body job-body" },
      h("dl", { class: "facts" }, ...facts.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", { class: "num" }, text)))),
      row.last_error === "" || row.observed_state === "running"
        ? null
        : h("p", { class: "notice notice-critical" }, icon("circle-alert"), h("span", {}, row.last_error)),
      h(
        "div",
        {},
        h("h3", { class: "section-title" }, t("What happened")),
        row.events.length === 0 ? h("p", { class: "small muted" }, t("Nothing yet.")) : eventList(row.events.slice(0, 8)),
      ),
    ),
  );
}

/** The team's own job: its feeds are not affected by those of others. */
function newJob(): void {
  const name = h("input", { class: "input", id: "job-name", maxlength: 63, placeholder: t("quay"), autocomplete: "off" });
  const team = h("select", { class: "select", id: "job-team" }, ...teams.map((one) => h("option", { value: one.id }, one.name)));
  const dialog = openDialog(
    t("New job"),
    h(
      "div",
      { class: "field", "data-pointer": "/name" },
      h("label", { for: "job-name" }, t("Name")),
      name,
      h("span", { class: "hint" }, t("Letters, digits, hyphens and underscores.")),
    ),
    h(
      "div",
      { class: "field", "data-pointer": "/team" },
      h("label", { for: "job-team" }, t("Team")),
      team,
      h("span", { class: "hint" }, t("It evaluates only feeds of this team, and the team's operators start and stop it.")),
    ),
  );
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    button(t("Make job"), {
      kind: "button-primary",
      onClick: () => {
        return post("jobs/", { name: name.value.trim(), team: Number(team.value) }, jobParser).then(
          () => {
            dialog.close();
            void refresh();
          },
          (error: unknown) => (error instanceof ApiError && error.status === 400 ? showFaults(dialog.body, error.faults) : fail(error)),
        );
      },
    }),
  );
}

async function removeJob(row: Job): Promise<void> {
  const title = t("Remove the job “{name}”?", { name: row.name });
  if (!(await confirmDanger(title, t("It has no feeds. Its history is removed too."), t("Remove job")))) return;
  await call(`jobs/${row.name}/`, { method: "DELETE" }).catch(fail);
  await refresh();
}

/**
 * A control that moves the feed to another job that may evaluate it; null if there is no choice.
 */
function jobChoice(row: FeedStatus): HTMLSelectElement | null {
  const possible = jobs.filter(({ team }) => team === null || team.id === row.team?.id);
  const present = row.head?.job ?? null;
  if (!row.editable || present === null || possible.length < 2) return null;
  const field = h(
    "select",
    { class: "select select-sm", "aria-label": t("Job of {name}", { name: row.name }) },
    ...possible.map(({ name }) => h("option", { value: name, selected: name === present }, t("Job {name}", { name }))),
  );
  field.addEventListener("change", () => {
    call(`feeds/${encodeURIComponent(row.name)}/`, { method: "PATCH", body: { job: field.value } }).then(() => {
      toast(t("The job {field} continues with {name}.", { field: field.value, name: row.name }), "good");
      void refresh();
    }, fail);
  });
  return field;
}

// ---- Feeds

interface Series {
  t: number[];
  rate: (number | null)[];
  lag: (number | null)[];
  batch: (number | null)[];
}

function add(series: Series, at: number, rate: number | null, lag: number | null, batch: number | null): void {
  series.t.push(at / 1000);
  series.rate.push(rate);
  series.lag.push(lag);
  series.batch.push(batch);
  for (const list of Object.values(series) as unknown[][]) if (list.length > KEPT) list.shift();
}

interface FeedCard {
  element: HTMLElement;
  show: (row: FeedStatus) => void;
  redraw: () => void;
}

const COUNTERS = [
  ["processed", t("Processed"), "--accent"],
  ["duplicates", t("Duplicates"), "--low"],
  ["late", t("Late"), "--high"],
  ["dead", t("Refused"), "--critical"],
  ["lost", t("Lost"), "--critical"],
  ["waiting", t("Waiting"), "--line-strong"],
] as const;

function chart(
  place: HTMLElement,
  title: string,
  unit: string,
  colour: string,
): { set: (t: number[], values: (number | null)[]) => void; redraw: () => void } {
  const value = h("strong", { class: "chart-value num" }, "–");
  const canvas = h("div", { class: "chart-canvas" });
  place.append(
    h(
      "figure",
      { class: "chart" },
      h(
        "figcaption",
        { class: "row spread" },
        h("span", { class: "small muted" }, title),
        h("span", {}, value, h("span", { class: "small faint" }, ` ${unit}`)),
      ),
      canvas,
    ),
  );
  let plot: uPlot | null = null;
  let data: [number[], (number | null)[]] = [[], []];
  const make = (): void => {
    plot?.destroy();
    const ink = token("--text-3");
    const line = token("--line");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "11px 'Inter Variable', sans-serif" };
    plot = new uPlot(
      {
        width: Math.max(120, canvas.clientWidth),
        height: 96,
        legend: { show: false },
        cursor: { y: false, points: { size: 6 } },
        padding: [6, 4, 0, 0],
        scales: { x: { time: true }, y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.15)] } },
        axes: [
          { ...axis, size: 22, space: 84, values: (_plot, marks) => marks.map((t) => formatClock(t * 1000, "ms", shell.me.time_zone)) },
          { ...axis, size: 44, space: 30, values: (_plot, marks) => marks.map((mark) => formatCompact(mark)) },
        ],
        series: [{}, { stroke: token(colour), width: 1.75, fill: token("--accent-soft"), spanGaps: true, points: { show: false } }],
      },
      data,
      canvas,
    );
  };
  new ResizeObserver(() => plot?.setSize({ width: Math.max(120, canvas.clientWidth), height: 96 })).observe(canvas);
  return {
    set: (t, values) => {
      data = [t, values];
      const last = values[values.length - 1];
      value.textContent =
        last === null || last === undefined ? "–" : formatNumber(last < 100 ? Math.round(last * 10) / 10 : Math.round(last));
      if (plot === null) make();
      else plot.setData(data);
    },
    redraw: make,
  };
}

function feedCard(first: FeedStatus): FeedCard {
  const series: Series = { t: [], rate: [], lag: [], batch: [] };
  const facts = h("div", { class: "counter-wrap" });
  const notices = h("div", { class: "stack" });
  const state = h("span", { class: "badge" });
  const chooser = h("div", { class: "job-choice" });
  const charts = h("div", { class: "charts" });
  let shown = first;
  const settings = first.editable
    ? button(t("Settings"), {
        icon: "pencil",
        kind: "button-sm",
        "aria-label": t("Settings of the feed {name}", { name: first.name }),
        onClick: () => openFeedSettings(shown, teams, () => void refresh()),
      })
    : null;
  const connectors = button(t("Connectors"), {
    icon: "radio",
    kind: "button-sm",
    "aria-label": t("Connectors of the feed {name}", { name: first.name }),
    onClick: () => openConnectors(shown),
  });
  const addFile = first.editable
    ? linkButton(t("Add a file"), `/feeds/new?into=${encodeURIComponent(first.name)}`, "file-up", "button-sm")
    : null;
  addFile?.setAttribute("aria-label", t("Add a file to the feed {name}", { name: first.name }));
  const letters = button(t("Dead letters"), {
    icon: "ban",
    kind: "button-sm",
    onClick: () => showDeadLetters(first, shell.me.time_zone),
  });
  const element = h(
    "article",
    { class: "panel", "aria-label": t("Feed {name}", { name: first.name }) },
    h(
      "div",
      { class: "panel-head feed-head" },
      h("h2", {}, first.title === "" ? first.name : first.title, " ", h("span", { class: "faint feed-name" }, first.name)),
      state,
      chooser,
      letters,
      rowsFileButton(first, shell.me.time_zone),
      addFile,
      connectors,
      settings,
      linkButton(t("Live"), `/?feed=${encodeURIComponent(first.name)}`, "map", "button-sm"),
    ),
    h("div", { class: "panel-body stack-lg" }, notices, facts, charts),
  );
  const plots = {
    rate: chart(charts, t("Rate"), t("events/s"), "--accent"),
    lag: chart(charts, t("Watermark lag"), first.time === "ms" ? "s" : "ticks", "--accent"),
    batch: chart(charts, t("Batch"), "ms", "--accent"),
  };
  const perUnit = first.time === "ms" ? 1000 : 1;
  const draw = (): void => {
    plots.rate.set(series.t, series.rate);
    plots.lag.set(series.t, series.lag);
    plots.batch.set(series.t, series.batch);
  };
  void get(`feeds/${first.name}/measures`, feedMeasures).then((kept) => {
    const past: Series = { t: [], rate: [], lag: [], batch: [] };
    kept.at.forEach((at, i) => add(past, at, kept.rows_per_s[i]!, kept.lag[i] === null ? null : kept.lag[i]! / perUnit, kept.batch_ms[i]!));
    for (const name of ["t", "rate", "lag", "batch"] as const) (series[name] as unknown[]).unshift(...past[name]);
    draw();
  }, fail);
  const show = (row: FeedStatus): void => {
    const now = Date.now();
    shown = row;
    const { head, counters } = row;
    const isFresh = head?.updated_at !== null && head !== null && now - head.updated_at < 20_000;
    const isNew = (head?.updated_at ?? null) === null;
    const silence = formatSpan(Math.round((now - (head?.updated_at ?? now)) / 1000) * 1000, "ms");
    const [kind, badge, words] =
      row.damage !== null
        ? ["damaged", "badge-critical", t("Suspended")]
        : isNew
          ? ["new", "", t("No batch yet")]
          : isFresh
            ? ["flowing", "badge-good", t("Flowing")]
            : ["silent", "badge-high", t("Silent for {silence}", { silence })];
    state.className = `badge badge-dot ${badge}`;
    state.dataset["state"] = kind;
    state.textContent = words!;
    replace(
      notices,
      row.damage === null ? null : h("p", { class: "notice notice-critical" }, icon("circle-alert"), h("span", {}, row.damage)),
      row.failing_connectors.length === 0 ? null : warningNotice(failingSentence(row.failing_connectors)),
      row.events.length === 0 ? null : eventList(row.events.slice(0, 4)),
    );
    // The list stays open while the reader chooses.
    if (!chooser.contains(document.activeElement)) replace(chooser, jobChoice(row));
    const isReal = row.time === "ms" && row.wall_clock;
    const reached = isReal ? now : (head?.max_t ?? null);
    const lag = head === null || head.watermark === null || reached === null ? null : (reached - head.watermark) / perUnit;
    add(series, now, isFresh ? (head.rows_per_s ?? null) : 0, lag, head?.batch_ms ?? null);
    draw();
    replace(facts, ...counterView(counters));
    const lost = counters === null ? 0 : counters.dead + counters.late;
    letters.lastChild!.textContent = t("Dead letters{value}", { value: lost > 0 ? ` (${formatNumber(lost)})` : "" });
  };
  return { element, show, redraw: () => Object.values(plots).forEach((plot) => plot.redraw()) };
}

function counterView(counters: FeedStatus["counters"]): HTMLElement[] {
  if (counters === null)
    return [h("p", { class: "small muted" }, t("Nothing received yet. Send events to this feed, or start a simulator or a replay."))];
  const total = Math.max(1, counters.received);
  const bar = h(
    "div",
    { class: "progress", role: "img", "aria-label": t("Where the received events went") },
    ...COUNTERS.map(([name, , colour]) =>
      h("i", { vars: { "--w": `${(counters[name] / total) * 100}%`, "--bar-colour": `var(${colour})` } }),
    ),
  );
  // Lost rows are rare, so they are shown only if there are any.
  const shown = COUNTERS.filter(([name]) => name !== "lost" || counters.lost > 0);
  const items = shown.map(([name, text, colour], i) =>
    h(
      "div",
      { class: "counter" },
      h("dt", {}, h("span", { class: "swatch", vars: { "--swatch": `var(${colour})` } }), text),
      h("dd", { class: "num" }, formatNumber(counters[name])),
      i < shown.length - 1 ? h("span", { class: "plus", "aria-hidden": "true" }, "+") : null,
    ),
  );
  return [
    h(
      "dl",
      { class: "counters" },
      h(
        "div",
        { class: "counter" },
        h("dt", {}, t("Received")),
        h("dd", { class: "num" }, formatNumber(counters.received)),
        h("span", { class: "plus", "aria-hidden": "true" }, "="),
      ),
      ...items,
    ),
    bar,
  ];
}

// ---- Refresh

const cards = new Map<string, FeedCard>();

async function refresh(): Promise<void> {
  if (document.hidden) return;
  const [known, feeds] = await Promise.all([getAll("jobs/", jobParser), getAll("feeds/", feedStatus)]);
  jobs = known;
  const focused =
    document.activeElement instanceof HTMLElement && jobsPlace.contains(document.activeElement)
      ? document.activeElement.dataset["job"]
      : undefined;
  replace(
    jobsPlace,
    ...(jobs.length === 0
      ? [
          h(
            "div",
            { class: "panel" },
            empty("activity", t("No job yet"), t("The job that evaluates the queries is created with the first feed.")),
          ),
        ]
      : jobs.map(jobCard)),
  );
  // Keeps the focus on Start or Stop.
  if (focused !== undefined) jobsPlace.querySelector<HTMLElement>(`[data-job="${CSS.escape(focused)}"]`)?.focus();
  if (feeds.length === 0)
    replace(
      feedsPlace,
      h(
        "div",
        { class: "panel", "data-empty": true },
        empty(
          "radio",
          t("No feed yet"),
          t("A feed is a stream of moving things. Operators create one here or through the API; “make demo” provides five."),
          mayMake ? newFeed("button-primary") : null,
        ),
      ),
      mayMake ? samplesPlace : null,
    );
  else feedsPlace.querySelectorAll("[data-empty]").forEach((one) => one.remove());
  for (const row of feeds) {
    let card = cards.get(row.name);
    if (card === undefined) {
      card = feedCard(row);
      cards.set(row.name, card);
      feedsPlace.append(card.element);
    }
    card.show(row);
  }
}

onThemeChange(() => cards.forEach((card) => card.redraw()));
replace(jobsPlace, h("div", { class: "panel panel-body stack" }, h("div", { class: "skeleton" }), h("div", { class: "skeleton" })));
refresh().catch(fail);
setInterval(() => void outdated.follow(refresh()), EVERY_MS);
