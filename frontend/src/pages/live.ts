import { t } from "../lib/texts";
import { anotherFeed } from "../lib/words";
import { attachMenu } from "../views/menu_view";
import { LiveView } from "../views/live_view";
import { fromSearch, noChoice, toSearch, type ViewState } from "../data/view_state";
import type { Feed } from "../lib/shapes";
import { empty, h, icon, iconButton, linkButton, replace } from "../lib/dom";
import { lastFeed, setLastFeed } from "../lib/preferences";
import { mayOperate } from "../lib/roles";
import { copyLink } from "../views/secret_view";
import { openShares } from "../views/share_view";
import { openShell, pageFrame, toast } from "../views/shell_view";

const shell = openShell();
let live: LiveView | null = null;
let pending: ReturnType<typeof setTimeout> | null = null;

function writeAddress(state: ViewState): void {
  if (pending !== null) clearTimeout(pending);
  // Browsers refuse more than a few changes of the address per second.
  pending = setTimeout(() => history.replaceState(null, "", `/${toSearch(state)}`), 250);
}

function title(feed: Feed): string {
  return feed.title === "" ? feed.name : feed.title;
}

function open(feed: Feed, state: ViewState): void {
  live?.close();
  setLastFeed(feed.name);
  document.title = `${title(feed)} · Vedette`;
  const page = shell.root;
  page.className = "live";
  const opener = h(
    "button",
    { type: "button", class: "feed-switch", "aria-label": t("Feed: {feed}. Change it", { feed: title(feed) }) },
    h("span", { class: "truncate" }, title(feed)),
    icon("chevron-down"),
  );
  attachMenu(opener, () =>
    shell.feeds.map((other) => ({
      content: [icon(other.crs === "planar" ? "maximize" : "map"), h("span", {}, title(other)), h("span", { class: "hint" }, other.name)],
      isCurrent: other.name === feed.name,
      onPick: () => open(other, noChoice(other.name)),
    })),
  );
  const bar = h("header", { class: "bar" }, h("h1", { class: "visually-hidden" }, t("Live view")), opener);
  replace(page, bar);
  const onCopyLink = (): void => void copyLink(`${location.origin}/${toSearch(view.stateNow())}`);
  const view: LiveView = new LiveView(
    feed,
    shell.me.time_zone,
    { ...state, feed: feed.name },
    { onState: () => live !== null && writeAddress(live.state), onCopyLink },
  );
  live = view;
  const link = iconButton(t("Copy a link to this view (C)"), "link", { kind: "wide", onClick: onCopyLink });
  const share = feed.editable
    ? iconButton(t("Share this view with a link"), "share-2", { onClick: () => openShares(feed, view.shownQueries, shell.me.time_zone) })
    : null;
  bar.append(view.search.element, h("div", { class: "bar-actions" }, view.bar.clock, link, share, view.bar.state));
}

const state = fromSearch(location.search);
const first =
  shell.feeds.find((feed) => feed.name === state.feed) ?? shell.feeds.find((feed) => feed.name === lastFeed()) ?? shell.feeds[0];
if (first === undefined) {
  pageFrame(shell.root, t("Live view")).append(
    empty(
      "radio",
      t("No feed yet"),
      t("A feed is a stream of moving things: vessels, cars, people, tags. Create one, or ask for access to an existing one."),
      mayOperate(shell.me)
        ? linkButton(t("New feed"), "/feeds/new", "plus", "button-primary")
        : linkButton(t("Feeds and jobs"), "/feeds/", "activity"),
    ),
  );
} else {
  open(first, first.name === state.feed ? state : { ...noChoice(first.name), mode: state.mode });
  if (state.feed !== null && first.name !== state.feed) toast(anotherFeed(state.feed), "critical");
}
