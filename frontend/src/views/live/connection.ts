/** The state of the live connection in the page's bar. */

import { t } from "../../lib/texts";
import { type ConnectionStatus, connectionStatus, failingWords, silentText, UNCONNECTED } from "../../data/connection_data";
import type { Feed } from "../../lib/shapes";
import { h } from "../../lib/dom";
import { formatAgo, formatMoment, formatRough, type Zone } from "../../lib/time";
import type { StatusFrame } from "../../live/frames";
import type { ConnectionState } from "../../live/socket";

const LOOK_EVERY_MS = 1_000;
const TITLES: Record<Exclude<ConnectionStatus, "ended" | "failing">, string> = {
  past: t("The page shows the past; press to go back to live"),
  live: t("Connected: answers appear as they are found"),
  behind: t("Rows wait to be processed, or arrive later than they happened: see Feeds"),
  empty: t("Nothing has been received yet: load a file, or send rows (see Feeds)"),
  down: t("Rows are stored, but not evaluated until the feed's job runs again: see Feeds"),
  silent: t(
    "The server does not report the feed's state: its database or publisher may be down. Nothing is lost; the page recovers by itself.",
  ),
  connecting: UNCONNECTED.connecting.title,
  loading: t("Connected: loading the answers so far"),
  reconnecting: UNCONNECTED.reconnecting.title,
  refused: UNCONNECTED.refused.title,
  forbidden: t("This feed no longer exists, or is no longer shared with you"),
};
const endedTitle = (time: string): string =>
  t("The last row came {time}: the recording has ended, or its source is quiet. New rows appear as they come.", { time });

export class ConnectionView {
  readonly element: HTMLButtonElement;
  private lag: number | null = null;
  private job: unknown = "running";
  /** When the newest rows were processed, by the wall clock; undefined before the first status. */
  private rowsAt: number | null | undefined;
  /** Since when rows wait unprocessed. */
  private stalledAt: number | null = null;
  /** The names of connectors that keep failing or do not run. */
  private failing: readonly string[] = [];
  private heardAt = performance.now();
  private connection: ConnectionState = "connecting";
  private isLoaded = false;
  private past: string | null = null;

  constructor(
    private readonly feed: Feed,
    private readonly zone: Zone,
    onRetry: () => void,
  ) {
    this.element = h("button", { type: "button", class: "state state-connecting", onClick: onRetry }, t("Connecting"));
    // A silent server sends nothing that could trigger an update, so it is checked regularly.
    setInterval(() => this.show(), LOOK_EVERY_MS);
  }

  setStatus(status: StatusFrame): void {
    const isOnTheWallClock = this.feed.wall_clock && this.feed.time === "ms";
    this.lag = status.max_t === null || !isOnTheWallClock ? null : Date.now() - status.max_t;
    this.job = status.job;
    this.rowsAt = status.updated_at;
    this.stalledAt = status.stalled_at;
    this.failing = status.failing_connectors;
    this.heardAt = performance.now();
    this.show();
  }

  /** The state of the page's clock while it is not live; null: it is live. */
  setClock(past: string | null): void {
    this.past = past;
    this.show();
  }

  /** The first snapshot has arrived: the page shows the feed. */
  loaded(): void {
    this.isLoaded = true;
    this.show();
  }

  setState(connection: ConnectionState): void {
    this.connection = connection;
    this.heardAt = performance.now();
    this.show();
    if (connection === "refused") location.assign(`/login/?next=${encodeURIComponent(location.pathname + location.search)}`);
  }

  private show(): void {
    const silentMs = performance.now() - this.heardAt;
    const now = Date.now();
    const { connection, isLoaded, job, rowsAt, stalledAt, failing, lag: lagMs } = this;
    const kind = connectionStatus({
      connection,
      isLoaded,
      isClockLive: this.past === null,
      silentMs,
      job,
      lagMs,
      latenessMs: this.feed.lateness,
      // Until the first status the page does not know, and assumes the usual.
      restMs: rowsAt === undefined ? 0 : rowsAt === null ? null : now - rowsAt,
      isStalled: stalledAt !== null,
      isFailing: failing.length > 0,
    });
    const texts: Record<ConnectionStatus, string> = {
      past: this.past ?? "",
      live: t("Live"),
      behind: t("Behind {formatRough}", { formatRough: formatRough(lagMs ?? now - (stalledAt ?? now)) }),
      ended: t("Last row {ago}", { ago: formatAgo(rowsAt ?? now, now) }),
      empty: t("No rows yet"),
      down: t("Job is down"),
      failing: failingWords(failing).text,
      silent: silentText(silentMs),
      connecting: UNCONNECTED.connecting.text,
      loading: t("Loading"),
      reconnecting: UNCONNECTED.reconnecting.text,
      refused: UNCONNECTED.refused.text,
      forbidden: t("Not available"),
    };
    const title =
      kind === "ended"
        ? endedTitle(formatMoment(rowsAt ?? now, "ms", this.zone))
        : kind === "failing"
          ? failingWords(failing).title
          : TITLES[kind];
    const isShown = this.element.textContent === texts[kind] && this.element.classList.contains(`state-${kind}`);
    if (isShown && this.element.title === title) return;
    this.element.className = `state state-${kind}`;
    this.element.textContent = texts[kind];
    this.element.title = title;
  }
}
