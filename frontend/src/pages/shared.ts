/**
 * The live view behind a link: read-only, of one feed, with the data that the page contains and
 * the frames of its socket.
 */

import { t } from "../lib/texts";
import "../styles/main.css";
import { copyLink } from "../views/secret_view";
import { LiveView } from "../views/live_view";
import { noChoice } from "../data/view_state";
import { feed as feedParser, moment } from "../lib/shapes";
import { answerFrom, NotShared } from "../lib/api";
import { h, replace } from "../lib/dom";
import { anything, list, record } from "../lib/parse";
import { formatMoment } from "../lib/time";
import { readJson } from "../views/shell_view";

const given = record({ feed: feedParser, queries: list(anything), regions: list(anything), expires_at: moment })(
  readJson("page-data"),
  "/page-data",
);
answerFrom(
  new Map<string, unknown>([
    ["queries/", given.queries],
    ["regions/", given.regions],
  ]),
);
// Extras that need the API, such as partial matches, are left out.
addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof NotShared) event.preventDefault();
});

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const title = given.feed.title === "" ? given.feed.name : given.feed.title;
document.title = `${title} · Vedette`;
const page = document.getElementById("page");
if (page === null) throw new Error("the template has no #page");
page.className = "live";
const bar = h("header", { class: "bar" }, h("h1", { class: "truncate" }, title));
replace(page, bar);
const view = new LiveView(
  given.feed,
  zone,
  { ...noChoice(given.feed.name), feed: given.feed.name },
  { onState: () => undefined, onCopyLink: () => void copyLink(location.href) },
);
const until = h(
  "span",
  { class: "small muted truncate shared-until" },
  t("Shared until {expires_at}", { expires_at: formatMoment(given.expires_at, "ms", zone) }),
);
bar.append(view.search.element, h("div", { class: "bar-actions" }, until, view.bar.clock, view.bar.state));
