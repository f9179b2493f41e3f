/** A new feed: from a file, in three steps, or an empty one. */

import { ApiError, call, get, page, post, query as address, reason } from "../lib/api";
import { button, empty, h, icon, linkButton, replace } from "../lib/dom";
import { Latest } from "../lib/latest";
import { anything } from "../lib/parse";
import { oneAtATime } from "../lib/presses";
import { mayOperate, orWhyNot } from "../lib/roles";
import { formatMoment, formatSpan, type TimeUnit } from "../lib/time";
import {
  afterChange,
  differences,
  feedName,
  feedTitle,
  freeFeedName,
  inspection,
  samples,
  STATE_WORDS,
  UTM,
  upload as uploadParser,
  type Chosen,
  type Inspection,
  type Upload,
} from "../data/upload_data";
import { noChoice, toSearch } from "../data/view_state";
import { showFaults } from "../views/faults_view";
import { openNewFeed } from "../views/feed_form_view";
import { fail, openShell, pageFrame } from "../views/shell_view";
import { loadView } from "../views/wizard/load_view";
import { readingForm } from "../views/wizard/reading_form";
import { samplesView } from "../views/wizard/samples_view";
import { SampleView } from "../views/wizard/sample_view";
import { uploadStep } from "../views/wizard/upload_step";
import { t } from "../lib/texts";
import { formField } from "../views/form_field";

const RATES: readonly (readonly [string, string])[] = [
  ["1", t("As fast as it was")],
  ["10", t("10 times as fast")],
  ["60", t("60 times as fast: a minute a second")],
  ["600", t("600 times as fast")],
  ["3600", t("3,600 times as fast: an hour a second")],
];
const shell = openShell();
const teams = shell.me.teams.filter((one) => one.role === "operator" || one.role === "admin");
const wanted = new URLSearchParams(location.search);
/** `?into=NAME`: the file is loaded into an existing feed. */
const into = wanted.get("into");
const target = shell.feeds.find(({ name }) => name === into) ?? null;
const body = pageFrame(shell.root, target === null ? t("New feed") : t("Add a file to {title}", { title: target.title || target.name }), [
  ...(target !== null || !mayOperate(shell.me) ? [] : [newWithoutFile()]),
  linkButton(t("Feeds"), "/feeds/", "arrow-left"),
]);

function newWithoutFile(): HTMLElement {
  return button(t("Without a file"), { icon: "plus", onClick: () => openNewFeed(teams, () => location.assign("/feeds/")) });
}

/** Puts the upload into the address, so that the page can be reloaded. */
function addressOf(id: string): string {
  return address("", { upload: id, into: target?.name ?? null });
}

function steps(at: number): HTMLElement {
  const names = [t("Choose a file"), t("Check what it means"), t("Load it")];
  return h(
    "ol",
    { class: "wizard-steps" },
    ...names.map((name, number) =>
      h(
        "li",
        { class: number === at ? "now" : number < at ? "past" : "", ...(number === at ? { "aria-current": "step" } : {}) },
        `${number + 1}. ${name}`,
      ),
    ),
  );
}

function chooseFile(): void {
  const others = h("div", { hidden: true });
  replace(
    body,
    steps(0),
    h(
      "div",
      { class: "panel panel-body" },
      uploadStep((id) => {
        history.replaceState(null, "", addressOf(id));
        void open(id);
      }),
    ),
    others,
    target !== null ? null : samplesView(teams[0]?.id ?? null),
  );
  get("uploads/", page(uploadParser)).then(({ results }) => {
    const list = onTheWay(results);
    others.hidden = list === null;
    replace(others, list);
  }, fail);
}

/** Earlier uploads that wait or are being loaded. */
function onTheWay(rows: readonly Upload[]): HTMLElement | null {
  const shown = rows.filter(({ state }) => !["uploading", "done", "cancelled"].includes(state));
  if (shown.length === 0) return null;
  const items = shown.map((row) =>
    h(
      "li",
      { class: "row spread" },
      h("a", { href: `?upload=${row.id}` }, row.name),
      h("span", { class: "badge" }, STATE_WORDS[row.state]),
    ),
  );
  return h(
    "section",
    { class: "panel panel-body stack wizard-load" },
    h("h2", { class: "section-title" }, t("Uploads in progress")),
    h("ul", { class: "stack" }, ...items),
  );
}

/** Shows the current step of the upload. */
async function open(id: string): Promise<void> {
  const row = await get(`uploads/${id}/`, uploadParser);
  if (row.state === "uploading") chooseFile();
  else if (row.state === "ready") describe(row);
  else load(row);
}

function load(row: Upload): void {
  // A sample has queries: the live page shows their answers.
  const ready = wanted.has("sample") ? (feed: string): void => void showSample(feed) : undefined;
  replace(
    body,
    steps(2),
    loadView(row.id, () => describe(row), ready),
  );
}

/** The address of the live page at an interesting place and time of the sample. */
async function showSample(feed: string): Promise<void> {
  const found = await get("samples/", samples).catch(() => []);
  const opens = found.find(({ name }) => name === wanted.get("sample"))?.opens ?? null;
  location.assign(`/${toSearch({ ...noChoice(feed), ...opens })}`);
}

function describe(row: Upload): void {
  let chosen: Chosen = {};
  let found: Inspection | null = null;
  let isFirst = true;
  const sample = new SampleView(shell.me.time_zone);
  const formPlace = h(
    "div",
    { class: "stack-lg" },
    h("div", { class: "skeleton" }),
    h("div", { class: "skeleton" }),
    h("div", { class: "skeleton" }),
  );
  const settings = target === null ? feedSettings(row) : fileSettings(target.name, target.time);
  const form = h(
    "div",
    { class: "panel panel-body wizard-form stack-lg", "aria-busy": true, "aria-label": t("How {name} is read", { name: row.name }) },
    formPlace,
    settings.element,
    h("div", { class: "wizard-foot stack" }, settings.why, settings.action),
  );
  const look = new Latest(
    async (signal) => {
      form.setAttribute("aria-busy", "true");
      settings.allow(null);
      found = null;
      found = await post(
        `uploads/${row.id}/inspection`,
        { reading: chosen, ...(target === null ? {} : { into: target.name }) },
        inspection,
        signal,
      );
      isFirst = false;
      replace(formPlace, readingForm(found, shell.me.time_zone, change));
      sample.show(found);
      settings.show(found);
      settings.allow(found);
      form.setAttribute("aria-busy", "false");
    },
    (error) => {
      form.setAttribute("aria-busy", "false");
      settings.why.textContent = t("The file cannot be read: the form shows the reason.");
      // There are no choices yet that would make it readable.
      if (isFirst)
        replace(
          formPlace,
          unreadable(error, () => void look.now()),
        );
      else refused(form, error);
    },
  );
  const change = (changes: Chosen): void => {
    chosen = afterChange(chosen, changes);
    void look.now();
  };
  const make = (): Promise<void> | undefined =>
    found === null
      ? undefined
      : post(`uploads/${row.id}/load`, { ...settings.body(), reading: found.reading }, anything).then(
          () => load(row),
          (error: unknown) => refused(form, error),
        );
  settings.action.addEventListener("click", oneAtATime(settings.action, make));
  const discard = button(t("Another file"), {
    icon: "file-up",
    kind: "button-quiet",
    onClick: () => {
      call(`uploads/${row.id}/`, { method: "DELETE" }).then(() => {
        history.replaceState(null, "", target === null ? location.pathname : address("", { into: target.name }));
        chooseFile();
      }, fail);
    },
  });
  replace(
    body,
    h("div", { class: "row spread" }, steps(1), discard),
    h("div", { class: "wizard" }, form, h("div", { class: "panel panel-body" }, sample.element)),
  );
  void look.now();
}

/** Why a file cannot be read; the reader may try again if the server was the reason. */
function unreadable(error: unknown, again: () => void): HTMLElement {
  const isRefused = error instanceof ApiError && error.status === 400;
  return h(
    "div",
    { class: "stack", role: "alert" },
    h("p", { class: "notice notice-critical" }, icon("triangle-alert"), h("span", {}, reason(error))),
    isRefused ? null : button(t("Try again"), { icon: "rotate-ccw", onClick: again }),
  );
}

function refused(form: HTMLElement, error: unknown): void {
  if (!(error instanceof ApiError) || error.status !== 400) {
    fail(error);
    return;
  }
  const rest = showFaults(form, error.faults);
  if (rest.length > 0) fail(new ApiError(400, rest));
}

interface Settings {
  element: HTMLElement;
  action: HTMLButtonElement;
  /** Why the file cannot be loaded now. */
  why: HTMLElement;
  show: (found: Inspection) => void;
  /** Whether the file can be loaded with this mapping; null: the server is still inspecting it. */
  allow: (found: Inspection | null) => void;
  body: () => Record<string, unknown>;
}

/** The button that loads the file, and why it is disabled. */
function loading(text: string): Pick<Settings, "action" | "why" | "allow"> {
  const why = h("span", { class: "hint", id: "wizard-why", role: "status" });
  const action = button(text, { kind: "button-primary", icon: "check", disabled: true, "aria-describedby": why.id });
  const allow = (found: Inspection | null): void => {
    action.disabled = found === null || found.good === 0;
    why.hidden = !action.disabled;
    why.textContent =
      found === null
        ? t("The server inspects the file ...")
        : found.reading.crs === UTM
          ? t("Choose the UTM zone of the coordinates first.")
          : t("With these settings no row can be used: the list next to the sample shows the reasons.");
  };
  allow(null);
  return { action, why, allow };
}

/** How the file will be used in the feed `into`. */
function fileSettings(name: string, time: TimeUnit): Settings {
  const list = h("ul", { class: "stack wizard-differences" });
  const moment = (at: number): string => (time === "ms" ? formatMoment(at, time, shell.me.time_zone) : t("tick {t}", { t: at }));
  return {
    element: h(
      "section",
      { class: "stack", "data-pointer": "/into" },
      h("h3", { class: "section-title" }, t("How the feed uses it")),
      list,
    ),
    ...loading(t("Load the file into the feed")),
    show: (found) => {
      const lines = differences(found, moment);
      replace(list, ...(lines.length === 0 ? [t("The whole file.")] : lines).map((line) => h("li", {}, line)));
    },
    body: () => ({ into: name }),
  };
}

/** The name of the feed, and how the file is loaded into it. */
function feedSettings(row: Upload): Settings {
  const freeName = freeFeedName(
    feedName(row.name),
    shell.feeds.map((feed) => feed.name),
  );
  const name = h("input", { class: "input", id: "wizard-name", value: freeName, maxlength: 63, autocomplete: "off" });
  const title = h("input", { class: "input", id: "wizard-title", value: feedTitle(row.name), maxlength: 100, autocomplete: "off" });
  const team = h(
    "select",
    { class: "select", id: "wizard-team" },
    ...teams.map((one) => h("option", { value: one.id }, one.name)),
    h("option", { value: "" }, t("Nobody else")),
  );
  const lateness = h("input", { class: "input num", id: "wizard-lateness", inputmode: "decimal", value: "0" });
  const tick = h("input", { class: "input num", id: "wizard-tick", inputmode: "numeric", value: "1" });
  const units = [h("span", { class: "unit" }, "s"), h("span", { class: "unit" }, "ms")];
  const rate = h(
    "select",
    { class: "select", id: "wizard-rate", "aria-label": t("Playback speed") },
    ...RATES.map(([value, text]) => h("option", { value }, text)),
  );
  const history = h("input", { type: "radio", name: "manner", checked: true });
  const now = h("input", { type: "radio", name: "manner" });
  const ordered = h("input", { type: "checkbox", checked: true });
  const paceField = formField(t("Playback speed"), "/rate", rate);
  const orderField = h("label", { class: "check" }, ordered, t("In the order of time, instead of the file's"));
  let seen: Inspection | null = null;
  let isLatenessTyped = false;
  lateness.addEventListener("input", () => (isLatenessTyped = true));
  const showManner = (): void => {
    paceField.hidden = !now.checked;
    orderField.hidden = now.checked;
    showLateness();
  };
  // Answers wait for late rows: if the rows are ordered by time, the end of the
  // file would get no answers.
  const showLateness = (): void => {
    if (seen === null) return;
    const isSorted = history.checked && ordered.checked;
    if (!isLatenessTyped) lateness.value = String((isSorted ? 0 : seen.lateness) / perSecond);
    hint.textContent = isSorted ? t("The file is loaded in the order of its times: nothing comes late.") : orderWords(seen);
  };
  ordered.addEventListener("change", showLateness);
  history.addEventListener("change", showManner);
  now.addEventListener("change", showManner);
  const hint = h("span", { class: "hint" });
  let perSecond = 1000;
  showManner();
  const element = h(
    "div",
    { class: "stack-lg wizard-feed" },
    h(
      "section",
      { class: "stack" },
      h("h2", { class: "section-title" }, t("Feed")),
      formField(t("Name"), "/feed/name", name),
      formField(t("Title"), "/feed/title", title),
      formField(t("Team"), "/feed/team", team),
      h(
        "div",
        { class: "field", "data-pointer": "/feed/lateness" },
        h("label", { for: lateness.id }, t("How late a row may come")),
        h("div", { class: "row" }, lateness, units[0]),
        hint,
      ),
      h(
        "div",
        { class: "field", "data-pointer": "/feed/tick" },
        h("label", { for: tick.id }, t("Tick: distance between neighbouring times")),
        h("div", { class: "row" }, tick, units[1]),
      ),
    ),
    h(
      "section",
      { class: "stack", "data-pointer": "/as_now" },
      h("h2", { class: "section-title" }, t("Load it")),
      h("label", { class: "check" }, history, t("As history: with the times of the file, immediately")),
      h("label", { class: "check" }, now, t("As if it happened now")),
      paceField,
      orderField,
    ),
  );
  return {
    element,
    ...loading(t("Make the feed and load the file")),
    show: (found) => {
      const isTicks = found.reading.time_format === "ticks";
      perSecond = isTicks ? 1 : 1000;
      units[0]!.textContent = isTicks ? "ticks" : "s";
      units[1]!.textContent = isTicks ? "ticks" : "ms";
      seen = found;
      showLateness();
      tick.value = String(found.tick);
      now.disabled = isTicks;
    },
    body: () => ({
      feed: {
        name: name.value.trim(),
        title: title.value.trim() === "" ? name.value.trim() : title.value.trim(),
        team: team.value === "" ? null : Number(team.value),
        lateness: numeric(lateness.value, perSecond),
        tick: numeric(tick.value, 1),
      },
      as_now: now.checked,
      rate: Number(rate.value),
      ordered: ordered.checked,
    }),
  };
}

/** The order of the sample's rows. */
function orderWords({ ordered, lateness, reading }: Inspection): string {
  if (ordered) return t("The sample is in the order of time.");
  const isTicks = reading.time_format === "ticks";
  const late =
    lateness === 0
      ? t("it lists one thing after another")
      : t("rows come up to {lateness} late", { lateness: formatSpan(lateness, isTicks ? "ticks" : "ms") });
  return t("The sample is not in the order of time; {late}.", { late });
}

/** An invalid number is sent as typed, for the server to refuse. */
function numeric(text: string, factor: number): number | string {
  const value = Number(text.trim().replace(",", "."));
  return text.trim() === "" || Number.isNaN(value) ? text : Math.round(value * factor);
}

const asked = wanted.get("upload");
if (!mayOperate(shell.me)) replace(body, empty("file-up", t("You cannot make feeds"), orWhyNot(shell.me, t("A feed belongs to a team."))));
else if (asked !== null && /^[0-9a-f-]{36}$/.test(asked))
  open(asked).catch((error: unknown) => {
    fail(error);
    chooseFile();
  });
else chooseFile();
