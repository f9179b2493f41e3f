/** One entity: its reports, its track, its answers, and its record in the registry. */

import { entityFacts, entityReports } from "../data/entity_facts";
import {
  attributesFrom,
  attributesText,
  note as noteParser,
  profile as profileParser,
  trackFeature,
  watch as watchParser,
} from "../data/entity_page_data";
import type { Note, Profile, Visit } from "../data/entity_page_data";
import {
  alert as alertParser,
  detection as detectionParser,
  queryRow,
  region as regionParser,
  tracks as tracksParser,
} from "../lib/shapes";
import type { Alert, Detection, Track } from "../lib/shapes";
import { call, get, getAll, page, post, query as address } from "../lib/api";
import { token } from "../lib/colours";
import { button, h, icon, iconButton, linkButton, replace } from "../lib/dom";
import { string } from "../lib/parse";
import { around } from "../lib/regions";
import { formatAgo, formatMoment, formatNumber, formatSpan, zoneName } from "../lib/time";
import { kindName, SEVERITY_NAMES, STATE_NAMES } from "../lib/words";
import { openMap } from "../views/map_view";
import { fail, openShell, pageFrame, toast } from "../views/shell_view";
import { t } from "../lib/texts";

/** In milliseconds; on a feed of ticks an hour is a thousand ticks. */
const SPANS: [number, string][] = [
  [600_000, t("Last 10 minutes")],
  [3_600_000, t("Last hour")],
  [6 * 3_600_000, t("Last 6 hours")],
  [24 * 3_600_000, t("Last 24 hours")],
];
const TICK_SPANS: [number, string][] = [1_000, 10_000, 100_000].map((ticks) => [
  ticks,
  t("Last {ticks} ticks", { ticks: formatNumber(ticks) }),
]);
const MOST_ROWS = 100;

const shell = openShell();
const entity = string(shell.data["entity"], "/entity");
const feed = shell.feeds.find((one) => one.name === shell.data["feed"])!;
const zone = shell.me.time_zone;
const moment = (t: number): string => formatMoment(t, feed.time, zone);
const about = (path: string): string => address(`feeds/${feed.name}/${path}`, { id: entity });

const span = h(
  "select",
  { class: "select", "aria-label": t("Span") },
  ...(feed.time === "ms" ? SPANS : TICK_SPANS).map(([value, text], i) => h("option", { value: String(value), selected: i === 1 }, text)),
);
const map = h("div", { class: "small-map", "aria-label": t("Its track") });
const place = (): HTMLElement => h("div", { class: "stack" });
const [facts, registry, watching, visits, answers, alerts, notes] = [place(), place(), place(), place(), place(), place(), place()];
let way: Track | null = null;

const exporter = button(t("Its track as GeoJSON"), { icon: "download", onClick: () => saveWay() });
const live = linkButton(t("On the live map"), address("/", { feed: feed.name, entity }), "map");
const body = pageFrame(shell.root, entity, [exporter, live]);
body.append(
  h("div", { class: "toolbar" }, h("div", { class: "toolbar-select" }, span), watching),
  h("section", { class: "panel" }, map),
  h("div", { class: "numbers-two" }, panel(t("Last report"), facts), panel(t("Registry"), registry), panel(t("Notes"), notes)),
  h("div", { class: "numbers-two" }, panel(t("Regions visited"), visits), panel(t("Answers"), answers), panel(t("Alerts"), alerts)),
);
const feedMap = openMap(map, feed);

function panel(title: string, content: Element): HTMLElement {
  return h(
    "section",
    { class: "panel" },
    h("div", { class: "panel-head" }, h("h2", {}, title)),
    h("div", { class: "panel-body" }, content),
  );
}

let isKnownShown = false;

/** Another span does not change the forms, because the reader may be typing in them. */
async function load(): Promise<void> {
  try {
    const reports = await get(about("entity"), entityReports);
    showFacts(entityFacts(reports, feed, reports.last?.t ?? 0), reports.last?.t ?? null);
    if (!isKnownShown) showKnown(await get(about("profile"), profileParser));
    isKnownShown = true;
    await loadSpan(reports.last?.t ?? null);
  } catch (error) {
    fail(error);
  }
}

/**
 * The parts that depend on the span, which ends with the entity's last report or, without one, with
 * the newest row of the feed.
 */
async function loadSpan(last: number | null): Promise<void> {
  const from = last === null ? null : last - Number(span.value);
  const visited = (await get(address(`feeds/${feed.name}/profile`, { id: entity, from }), profileParser)).visited;
  const found = await get(address(`feeds/${feed.name}/tracks`, { entity, from }), tracksParser);
  const queries = new Map(
    (await getAll(address("queries/", { feed: feed.name, page_size: 1000 }), queryRow)).map((one) => [one.id, one.name]),
  );
  const parts = { feed: feed.name, entity, from, page_size: MOST_ROWS };
  const answered = await get(address("detections/", parts), page(detectionParser));
  const raised = await get(address("alerts/", { feed: feed.name, entity, page_size: MOST_ROWS }), page(alertParser));
  way = found.tracks[0] ?? null;
  await showMap(visited.visits);
  showVisits(visited.visits, visited.complete);
  showAnswers(answered.results, queries);
  showAlerts(raised.results);
}

function showFacts(rows: [string, string][], last: number | null): void {
  if (last === null) {
    replace(facts, h("p", { class: "muted" }, t("It has not reported lately.")));
    return;
  }
  const zoned = `${moment(last)}${feed.time === "ms" ? ` ${zoneName(zone)}` : ""}`;
  const shown: [string, string][] = [[t("Last report"), zoned], ...rows.filter(([name]) => name !== t("Last report"))];
  replace(facts, h("dl", { class: "dl num" }, ...shown.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])));
}

function showName({ name }: Profile): void {
  document.querySelector(".bar h1")!.textContent = name === "" ? entity : `${name} (${entity})`;
  document.title = `${name === "" ? entity : name} · Vedette`;
}

function showKnown(known: Profile): void {
  showName(known);
  showRegistry(known);
  showWatch(known.watch);
  showNotes(known.notes);
}

function showRegistry({ name, attributes }: Profile): void {
  const nameField = h("input", { class: "input", id: "entity-name", value: name, maxlength: 100, disabled: !feed.editable });
  const texts = attributesText(attributes);
  const field = h(
    "textarea",
    { class: "textarea", id: "entity-attributes", rows: 4, placeholder: "flag = NO", disabled: !feed.editable },
    texts,
  );
  const save = async (): Promise<void> => {
    const found = attributesFrom(field.value);
    if ("fault" in found) {
      toast(found.fault, "critical");
      return;
    }
    try {
      await call(about("profile"), { method: "PUT", body: { name: nameField.value.trim(), attributes: found.attributes } });
      toast(t("The registry is saved."), "good");
      const known = await get(about("profile"), profileParser);
      showName(known);
      showRegistry(known);
    } catch (error) {
      fail(error);
    }
  };
  replace(
    registry,
    h("div", { class: "field" }, h("label", { for: "entity-name" }, t("Name")), nameField),
    h("div", { class: "field" }, h("label", { for: "entity-attributes" }, t("Attributes, one per line")), field),
    feed.editable
      ? h("div", { class: "row" }, button(t("Save"), { icon: "save", onClick: () => save() }))
      : h("p", { class: "hint" }, t("Users who may change the feed may change its registry.")),
  );
}

function showWatch(watch: Profile["watch"]): void {
  const reported = watch?.reported_t ?? null;
  const change = async (method: "PUT" | "DELETE"): Promise<void> => {
    try {
      const answer = await call(about("watch"), { method });
      showWatch(method === "PUT" ? watchParser(answer) : null);
    } catch (error) {
      fail(error);
    }
  };
  // The reader sees these here and need not be notified.
  if (reported !== null) void call(about("watch"), { method: "DELETE" }).catch(fail);
  const isWaiting = watch !== null && reported === null;
  replace(
    watching,
    h(
      "div",
      { class: "row row-wrap" },
      button(isWaiting ? t("Stop waiting") : t("Notify me when it reports again"), {
        icon: "bell-ring",
        "aria-pressed": String(isWaiting),
        onClick: () => change(isWaiting ? "DELETE" : "PUT"),
      }),
      reported === null ? null : h("span", { class: "badge badge-dot" }, t("Reported again at {reported}", { reported: moment(reported) })),
    ),
  );
}

/** `text`: a note that is being written. */
function showNotes(all: readonly Note[], text = ""): void {
  const field = h("textarea", {
    class: "textarea",
    rows: 2,
    "aria-label": t("Note"),
    maxlength: 4000,
    placeholder: t("Note for others"),
  });
  field.value = text;
  const add = button(t("Add"), { icon: "plus", onClick: () => addNote() });
  const change = async (work: Promise<unknown>, stored: string): Promise<void> => {
    try {
      await work;
      const known = await get(about("profile"), profileParser);
      // Text typed meanwhile, in the field that is now on the page.
      const written = notes.querySelector("textarea")?.value ?? "";
      showNotes(known.notes, written.trim() === stored ? "" : written);
    } catch (error) {
      fail(error);
    }
  };
  const addNote = (): Promise<void> | undefined => {
    const text = field.value.trim();
    return text === "" ? undefined : change(post(`feeds/${feed.name}/notes`, { entity, text }, noteParser), text);
  };
  const remove = (one: Note): Promise<void> => change(call(`feeds/${feed.name}/notes/${one.id}`, { method: "DELETE" }), "");
  replace(
    notes,
    h("div", { class: "row" }, field, add),
    h(
      "ul",
      { class: "stack" },
      ...all.map((one) =>
        h(
          "li",
          {},
          h(
            "div",
            { class: "row spread small faint" },
            `${one.author} · ${formatAgo(one.at, Date.now())}`,
            one.author === shell.me.name || shell.me.superuser
              ? iconButton(t("Remove this note"), "trash-2", { kind: "button-quiet button-sm", onClick: () => remove(one) })
              : null,
          ),
          h("p", { class: "note-text" }, one.text),
        ),
      ),
    ),
  );
}

async function showMap(all: readonly Visit[]): Promise<void> {
  const ids = new Set(all.map((one) => one.region));
  const stored = ids.size === 0 ? [] : await getAll(address("regions/", { feed: feed.name, page_size: 1000 }), regionParser, 20_000);
  const shown = stored.filter((one) => ids.has(one.id));
  feedMap.regions.set(shown.map((one) => ({ id: one.id, name: one.name, geometry: one.geometry, colour: null })));
  feedMap.tracks.set(way === null ? [] : [{ track: way, colour: token("--accent"), from: null, to: null }], []);
  const box = way === null ? null : around(way.points.map(([, x, y]) => [x, y] as const));
  if (box !== null) feedMap.fit(box, 15);
  exporter.disabled = way === null;
}

function showVisits(all: readonly Visit[], isComplete: boolean): void {
  const rows = [...all]
    .reverse()
    .map((one) => [
      h("a", { href: `/regions/${one.region}` }, one.name),
      moment(one.start),
      one.end === null ? t("still there") : formatSpan(one.end - one.start, feed.time),
    ]);
  replace(
    visits,
    table(
      [t("Region"), t("Since"), t("For")],
      rows,
      t("According to its reports in this span, it was in none of the regions that you see."),
    ),
    isComplete ? null : h("p", { class: "hint" }, t("There are more: choose a shorter span.")),
  );
}

function showAnswers(all: readonly Detection[], names: ReadonlyMap<string, string>): void {
  const rows = all.map((one) => [
    h("a", { href: address("/", { feed: feed.name, entity, detection: one.id, t: one.start }) }, kindName(one.kind)),
    names.get(one.query) ?? t("Query {query}", { query: one.query }),
    moment(one.start),
  ]);
  replace(answers, table([t("Answer"), t("Query"), t("From")], rows, t("It is in no answer of this period.")));
}

function showAlerts(all: readonly Alert[]): void {
  const rows = all.map((one) => [
    h("a", { href: `/alerts/${one.id}` }, one.query_name),
    h("span", { class: `badge badge-dot badge-${one.severity}` }, SEVERITY_NAMES[one.severity]),
    STATE_NAMES[one.state],
    formatAgo(one.opened_at, Date.now()),
  ]);
  replace(alerts, table([t("Alert"), t("Severity"), t("State"), t("Opened")], rows, t("No alert is about it.")));
}

function table(names: readonly string[], rows: readonly (readonly (Element | string)[])[], none: string): HTMLElement {
  if (rows.length === 0) return h("p", { class: "muted" }, none);
  return h(
    "div",
    { class: "table-wrap scroll-box" },
    h(
      "table",
      { class: "table table-tight" },
      h("thead", {}, h("tr", {}, ...names.map((name) => h("th", {}, name)))),
      h("tbody", {}, ...rows.map((cells) => h("tr", {}, ...cells.map((cell) => h("td", {}, cell))))),
    ),
  );
}

function saveWay(): void {
  if (way === null) return;
  const file = new Blob([JSON.stringify(trackFeature(way))], { type: "application/geo+json" });
  const link = h("a", { href: URL.createObjectURL(file), download: `${entity.replaceAll(/[^\w.-]/g, "_")}.geojson` }, icon("download"));
  link.click();
  URL.revokeObjectURL(link.href);
}

span.addEventListener("change", () => void load());
void load();
