/** How the live connection stands, in the page's bar. */

import { h } from "../../lib/dom";
import { formatRough } from "../../lib/time";
import type { StatusFrame } from "../../live/frames";
import type { ConnectionState } from "../../live/socket";
import type { Feed } from "../../data/shapes";

/** Milliseconds beyond the feed's own lateness before it counts as behind. */
const BEHIND_MS = 15_000;
const TITLES = {
  past: "The page shows the past; press to go back to live",
  live: "Connected: answers appear as they are found",
  behind: "Events arrive later than they happened: see Feeds",
  connecting: "Opening the live connection",
  loading: "Connected: the answers so far are on their way",
  reconnecting: "The connection was lost; press to try now. Nothing is lost: what was missed is fetched.",
  refused: "Log in again to go on",
  forbidden: "This feed is not shared with you any more",
};

export class ConnectionView {
  readonly element: HTMLButtonElement;
  private lag: number | null = null;
  private connection: ConnectionState = "connecting";
  private isLoaded = false;
  private past: string | null = null;

  constructor(
    private readonly feed: Feed,
    onRetry: () => void,
  ) {
    this.element = h("button", { type: "button", class: "state state-connecting", onClick: onRetry }, "Connecting");
  }

  setStatus(status: StatusFrame): void {
    const isOnTheWallClock = this.feed.wall_clock && this.feed.time === "ms";
    this.lag = status.max_t === null || !isOnTheWallClock ? null : Date.now() - status.max_t;
    this.show();
  }

  /** What the page's clock does while it is not live; null: it is. */
  setClock(past: string | null): void {
    this.past = past;
    this.show();
  }

  /** The first snapshot is there: what the page shows is the feed's. */
  loaded(): void {
    this.isLoaded = true;
    this.show();
  }

  setState(connection: ConnectionState): void {
    this.connection = connection;
    this.show();
    if (connection === "refused") location.assign(`/login/?next=${encodeURIComponent(location.pathname + location.search)}`);
  }

  private show(): void {
    const isOpen = this.connection === "open" && this.isLoaded;
    const isBehind = isOpen && this.lag !== null && this.lag > this.feed.lateness + BEHIND_MS;
    const kind = isOpen && this.past !== null ? "past" : isBehind ? "behind" : isOpen ? "live" : this.connection === "open" ? "loading" : this.connection;
    const texts = { past: this.past ?? "", live: "Live", behind: `Behind ${formatRough(this.lag ?? 0)}`, connecting: "Connecting", loading: "Loading", reconnecting: "Reconnecting", refused: "Logged out", forbidden: "Not shared" };
    this.element.className = `state state-${kind}`;
    this.element.textContent = texts[kind];
    this.element.title = TITLES[kind];
  }
}
