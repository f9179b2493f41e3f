/** Whether new alerts reach the desk: the state of its live connection, in the page's bar. */

import { t } from "../lib/texts";
import { h } from "../lib/dom";
import { formatRough } from "../lib/time";
import { SILENT_MS } from "../data/connection_data";
import type { ConnectionState } from "../live/socket";

const LOOK_EVERY_MS = 1_000;
type Shown = ConnectionState | "silent";
const TITLES: Record<Shown, string> = {
  open: t("Connected: new alerts appear as they are opened"),
  connecting: t("Opening the live connection"),
  reconnecting: t("The connection was lost; press to try again now. Nothing is lost: missed changes are fetched."),
  silent: t("The server sends nothing: its database or publisher may be down. Nothing is lost; the page recovers by itself."),
  refused: t("Log in again to continue"),
  forbidden: t("Log in again to continue"),
};

export class DeskConnectionView {
  readonly element: HTMLButtonElement;
  private connection: ConnectionState = "connecting";
  private heardAt = performance.now();

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

  private show(): void {
    const silentMs = performance.now() - this.heardAt;
    const kind: Shown = this.connection === "open" && this.isWatching && silentMs > SILENT_MS ? "silent" : this.connection;
    const texts: Record<Shown, string> = {
      open: t("Live"),
      connecting: t("Connecting"),
      reconnecting: t("Reconnecting"),
      silent: t("No news for {silentMs}", { silentMs: formatRough(silentMs) }),
      refused: t("Logged out"),
      forbidden: t("Logged out"),
    };
    if (this.element.textContent === texts[kind]) return;
    this.element.className = `state state-${kind === "open" ? "live" : kind}`;
    this.element.textContent = texts[kind];
    this.element.title = TITLES[kind];
  }
}
