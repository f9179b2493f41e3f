import { alertNumbers, SEVERITIES, type AlertNumbers } from "../lib/shapes";
import { get } from "../lib/api";
import { h, linkButton, replace } from "../lib/dom";
import { formatNumber } from "../lib/time";
import { SEVERITY_NAMES } from "../lib/words";
import { severityLines } from "../views/severity_lines_view";
import { fail, openShell, pageFrame } from "../views/shell_view";
import { t } from "../lib/texts";

const SPANS: [string, string][] = [
  ["24", t("Last 24 hours")],
  ["168", t("Last 7 days")],
  ["720", t("Last 30 days")],
  ["2160", t("Last 90 days")],
];
const shell = openShell();
const span = h(
  "select",
  { class: "select", "aria-label": t("Span") },
  ...SPANS.map(([hours, text]) => h("option", { value: hours, selected: hours === "168" }, text)),
);
const feed = h(
  "select",
  { class: "select", "aria-label": t("Feed") },
  h("option", { value: "" }, t("All feeds")),
  ...shell.feeds.map((one) => h("option", { value: one.name }, one.title === "" ? one.name : one.title)),
);
const place = h("div", { class: "stack-lg" });
const csv = linkButton("CSV", "/api/v1/alerts/export", "download");
const body = pageFrame(shell.root, t("Alert numbers"), [csv, linkButton(t("Alerts"), "/alerts/", "bell")]);
body.append(
  h("div", { class: "toolbar" }, h("div", { class: "toolbar-select" }, span), h("div", { class: "toolbar-select" }, feed)),
  place,
);

async function load(): Promise<void> {
  const ofFeed: Record<string, string> = feed.value === "" ? {} : { feed: feed.value };
  const since = new Date(Date.now() - Number(span.value) * 3_600_000).toISOString();
  const search = new URLSearchParams({ hours: span.value, ...ofFeed });
  csv.href = `/api/v1/alerts/export?${new URLSearchParams({ opened_from: since, ...ofFeed }).toString()}`;
  try {
    show(await get(`alerts/numbers?${search.toString()}`, alertNumbers));
  } catch (error) {
    fail(error);
  }
}

function show(numbers: AlertNumbers): void {
  const figures: [string, string][] = [
    [t("Opened"), formatNumber(numbers.opened)],
    [t("Time to acknowledge, median"), howLong(numbers.seconds_to_acknowledge.median)],
    [t("Time to acknowledge, 90th percentile"), howLong(numbers.seconds_to_acknowledge.p90)],
    [t("Time to resolve by a user, median"), howLong(numbers.seconds_to_resolve.median)],
    [t("Ended, not acknowledged"), formatNumber(numbers.ended_unattended)],
    [t("Judged right"), formatNumber(numbers.verdicts["right"] ?? 0)],
    [t("False alarms"), formatNumber(numbers.verdicts["false"] ?? 0)],
    [t("Right, but not useful"), formatNumber(numbers.verdicts["not_useful"] ?? 0)],
  ];
  replace(
    place,
    panel(
      t("Open alerts over time"),
      severityLines(numbers.times, numbers.open, shell.me.time_zone),
      h(
        "div",
        { class: "row small" },
        ...SEVERITIES.map((one) => h("span", { class: `badge badge-dot badge-${one}` }, SEVERITY_NAMES[one])),
      ),
    ),
    panel(
      t("Figures"),
      h("dl", { class: "facts" }, ...figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { class: "num" }, value)))),
    ),
    h(
      "div",
      { class: "numbers-two" },
      panel(t("Noisiest queries"), noisiest(numbers.noisiest_queries, "query")),
      panel(t("Noisiest entities"), noisiest(numbers.noisiest_entities, "entity")),
    ),
  );
}

function panel(title: string, ...content: Element[]): HTMLElement {
  return h(
    "section",
    { class: "panel" },
    h("div", { class: "panel-head" }, h("h2", {}, title)),
    h("div", { class: "panel-body stack" }, ...content),
  );
}

function noisiest(rows: AlertNumbers["noisiest_queries"], filter: "query" | "entity"): HTMLElement {
  if (rows.length === 0) return h("p", { class: "muted" }, t("No alert was opened in this time."));
  const most = Math.max(...rows.map((one) => one.count));
  return h(
    "ul",
    { class: "noisy" },
    ...rows.map((one) =>
      h(
        "li",
        {},
        h("a", { class: "truncate", href: `/alerts/?${filter}=${encodeURIComponent(filter === "query" ? one.key : one.name)}` }, one.name),
        h("span", { class: "num" }, formatNumber(one.count)),
        h("span", { class: "progress" }, h("i", { vars: { "--w": `${(100 * one.count) / most}%` } })),
      ),
    ),
  );
}

/** A length of time in the largest suitable unit. */
function howLong(seconds: number | null): string {
  if (seconds === null) return "—";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${tenths(seconds / 3600)} h` : t("{days} days", { days: tenths(seconds / 86_400) });
}

const tenths = (value: number): string => formatNumber(Math.round(value * 10) / 10);

for (const one of [span, feed]) one.addEventListener("change", () => void load());
void load();
