/**
 * One region: who is inside, who entered and left, how long they stayed,
 * and the queries that use it.
 */

import { activity as activityParser, type Activity } from "../data/entity_page_data";
import { region as regionParser } from "../lib/shapes";
import { get, query as address } from "../lib/api";
import { empty, h, linkButton, replace } from "../lib/dom";
import { bounds, describe } from "../lib/regions";
import { formatMoment, formatNumber, formatSpan, zoneName } from "../lib/time";
import { bars } from "../views/bars_view";
import { openMap } from "../views/map_view";
import { fail, openShell, pageFrame } from "../views/shell_view";
import { t } from "../lib/texts";

const HOURS: [string, string][] = [
  ["1", t("Last hour")],
  ["6", t("Last 6 hours")],
  ["24", t("Last 24 hours")],
  ["168", t("Last 7 days")],
];
const TICKS: [string, string][] = HOURS.map(([count]) => [count, t("Last {count} ticks", { count: formatNumber(Number(count) * 1000) })]);
const AGAIN_MS = 15_000;

const shell = openShell();
const region = regionParser(shell.data["region"], "/region");
const feed = shell.feeds.find((one) => one.name === region.feed)!;
const isGeographic = feed.crs === "geographic";
const span = h(
  "select",
  { class: "select", "aria-label": t("Span") },
  ...(feed.time === "ms" ? HOURS : TICKS).map(([value, text]) => h("option", { value }, text)),
);
const map = h("div", { class: "small-map" });
const figures = h("div", { class: "stack-lg" });
const body = pageFrame(shell.root, region.name, [
  linkButton(t("Query on it"), address("/queries/new", { feed: feed.name, region: region.name }), "plus"),
  linkButton(t("All regions"), address("/regions/", { feed: feed.name }), "shapes"),
]);
body.append(
  h("div", { class: "toolbar" }, h("div", { class: "toolbar-select" }, span)),
  h(
    "div",
    { class: "numbers-two" },
    h("section", { class: "panel" }, map),
    panel(
      t("About it"),
      h("p", {}, describe(region.geometry, isGeographic)),
      region.tags.length === 0
        ? null
        : h("div", { class: "row row-wrap" }, ...region.tags.map((tag) => h("span", { class: "badge" }, tag))),
      h("h3", { class: "section-title" }, t("Queries that use it")),
      region.used_by.length === 0
        ? h("p", { class: "muted" }, t("No query uses it yet."))
        : h("ul", { class: "stack-tight" }, ...region.used_by.map((one) => h("li", {}, h("a", { href: `/queries/${one.id}` }, one.name)))),
    ),
  ),
  figures,
);
const feedMap = openMap(map, feed, { isSmall: true });
feedMap.regions.set([{ id: region.id, name: region.name, geometry: region.geometry, colour: null }]);
const box = bounds(region.geometry, isGeographic);
if (box !== null) feedMap.fit(box, 15);

function panel(title: string, ...content: (Element | null)[]): HTMLElement {
  return h(
    "section",
    { class: "panel" },
    h("div", { class: "panel-head" }, h("h2", {}, title)),
    h("div", { class: "panel-body stack" }, ...content),
  );
}

async function load(): Promise<void> {
  try {
    show(await get(address(`regions/${region.id}/activity`, { hours: span.value }), activityParser));
  } catch (error) {
    fail(error);
  }
}

function show(found: Activity): void {
  const { from, to } = found;
  if (from === null || to === null) {
    replace(figures, empty("radio", t("No rows yet"), t("The feed has no row so far.")));
    return;
  }
  const moment = (t: number): string => formatMoment(t, feed.time, shell.me.time_zone);
  const ends: [string, string] = [moment(from), moment(to)];
  const sum = (counts: readonly number[]): string => formatNumber(counts.reduce((one, other) => one + other, 0));
  const facts: [string, string][] = [
    [t("Inside now"), formatNumber(found.inside_count)],
    [t("Entered"), sum(found.entries)],
    [t("Left"), sum(found.exits)],
    [
      t("Half of the visits last"),
      found.median_dwell === null ? "—" : t("up to {mediandwell}", { mediandwell: formatSpan(found.median_dwell, feed.time) }),
    ],
  ];
  const since = found.complete ? "" : t(" The span has more rows than are read at once: earlier ones are not counted.");
  replace(
    figures,
    h(
      "dl",
      { class: "facts panel panel-body" },
      ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { class: "num" }, value))),
    ),
    h(
      "p",
      { class: "small muted" },
      t("By reports from {from} to {until}.", {
        from: ends[0],
        until: feed.time === "ms" ? `${ends[1]} ${zoneName(shell.me.time_zone)}` : ends[1],
      }) + since,
    ),
    h(
      "div",
      { class: "numbers-two" },
      panel(t("Entries"), bars({ title: t("Entries"), counts: found.entries, ends })),
      panel(t("Exits"), bars({ title: t("Exits"), counts: found.exits, ends })),
      panel(
        t("How long visits lasted"),
        found.dwells.length === 0
          ? h("p", { class: "muted" }, t("No visit has ended in this span."))
          : bars({
              title: t("Visits"),
              counts: found.dwells,
              ends: [formatSpan(found.dwell_edges[0]!, feed.time), formatSpan(found.dwell_edges[found.dwell_edges.length - 1]!, feed.time)],
            }),
      ),
      panel(t("Inside now"), inside(found)),
    ),
  );
}

function inside({ inside: present, inside_count: count, to }: Activity): HTMLElement {
  if (present.length === 0) return h("p", { class: "muted" }, t("Nobody, according to the last reports."));
  const rows = present.map(([entity, since, last]) =>
    h(
      "tr",
      {},
      h("td", {}, h("a", { href: address(`/feeds/${feed.name}/entity`, { id: entity }) }, entity)),
      h("td", { class: "right num" }, formatSpan(last - since, feed.time)),
      h("td", { class: "right num" }, to === null || last === to ? t("now") : t("{to} ago", { to: formatSpan(to - last, feed.time) })),
    ),
  );
  return h(
    "div",
    { class: "table-wrap scroll-box" },
    h(
      "table",
      { class: "table table-tight" },
      h(
        "thead",
        {},
        h("tr", {}, h("th", {}, t("Entity")), h("th", { class: "right" }, t("Inside for")), h("th", { class: "right" }, t("Last report"))),
      ),
      h("tbody", {}, ...rows),
    ),
    count > present.length ? h("p", { class: "hint" }, t("{count} more", { count: formatNumber(count - present.length) })) : null,
  );
}

span.addEventListener("change", () => void load());
setInterval(() => {
  if (!document.hidden) void load();
}, AGAIN_MS);
void load();
