/** Whether new alerts reach the desk: the state of its live connection, in the page's bar. */

import { t } from "../lib/texts";
import { h } from "../lib/dom";
import { failingWords, isWorking, SILENT_MS, silentText, UNCONNECTED } from "../data/connection_data";
import type { StatusFrame } from "../live/frames";
import type { ConnectionState } from "../live/socket";

const LOOK_EVERY_MS = 1_000;
const SILENT = t("The server sends nothing: its database or publisher may be down. Nothing is lost; the page recovers by itself.");
const FORBIDDEN = { text: t("Not available"), title: t("Your feeds no longer exist, or are no longer shared with you") };

export class DeskConnectionView {
  readonly element: HTMLButtonElement;
  private connection: ConnectionState = "connecting";
  private heardAt = performance.now();
  /** Feeds whose job does not run: nothing opens alerts of theirs. */
  private readonly down = new Set<string>();
  /** The names of connectors that keep failing or do not run, by feed. */
  private readonly failing = new Map<string, readonly string[]>();

  /** `isWatching`: the socket follows a feed, of which the server sends the status every second. */
  constructor(
    private readonly isWatching: boolean,
    onRetry: () => void,
  ) {
    this.element = h("button", { type: "button", class: "state", onClick: onRetry });
    this.show();
    setInterval(() => this.show(), LOOK_EVERY_MS);
  }

  setState(connection: ConnectionState): void {
    this.connection = connection;
    this.heard();
  }

  /** A frame has come. */
  heard(): void {
    this.heardAt = performance.now();
    this.show();
  }

  /** The server sent the state of a feed. */
  setStatus({ feed, job, failing_connectors }: StatusFrame): void {
    if (isWorking(job)) this.down.delete(feed);
    else this.down.add(feed);
    this.failing.set(feed, failing_connectors);
    this.show();
  }

  private show(): void {
    const silentMs = performance.now() - this.heardAt;
    const isSilent = this.connection === "open" && this.isWatching && silentMs > SILENT_MS;
    const [kind, { text, title }] = isSilent
      ? ["silent", { text: silentText(silentMs), title: SILENT }]
      : this.connection === "open"
        ? this.open()
        : [this.connection, this.connection === "forbidden" ? FORBIDDEN : UNCONNECTED[this.connection]];
    if (this.element.textContent === text && this.element.title === title) return;
    this.element.className = `state state-${kind}`;
    this.element.textContent = text;
    this.element.title = title;
  }

  /** The feed is no longer watched. */
  forget(feed: string): void {
    this.down.delete(feed);
    this.failing.delete(feed);
  }

  private open(): [string, { text: string; title: string }] {
    const feeds = [...this.down].join(", ");
    const failing = [...this.failing].flatMap(([feed, names]) => names.map((name) => `${name} (${feed})`));
    if (this.down.size === 0 && failing.length > 0) return ["failing", failingWords(failing)];
    if (this.down.size === 0) return ["live", { text: t("Live"), title: t("Connected: new alerts appear as they are opened") }];
    return ["down", { text: t("Job is down"), title: t("No new alerts of {feeds}: the job does not run.", { feeds }) }];
  }
}
