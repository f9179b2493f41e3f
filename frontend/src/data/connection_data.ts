/**
 * How current the page is: the word in its bar, from the state of connection, publisher and job.
 */

import type { ConnectionState } from "../live/socket";
import { t, tn } from "../lib/texts";
import { formatRough } from "../lib/time";

export type ConnectionStatus =
  "past" | "live" | "behind" | "ended" | "empty" | "down" | "failing" | "silent" | "loading" | Exclude<ConnectionState, "open">;

export interface Known {
  connection: ConnectionState;
  /** The first snapshot has arrived. */
  isLoaded: boolean;
  /** The page's clock is live, not paused or playing. */
  isClockLive: boolean;
  /** Milliseconds since the server's last status of the feed; it sends one every second. */
  silentMs: number;
  /** The state of the feed's job. */
  job: unknown;
  /** Milliseconds from the newest event to now; null if the feed's clock is not the wall clock. */
  lagMs: number | null;
  latenessMs: number;
  /** Milliseconds since the newest rows were processed; null before any. */
  restMs: number | null;
  /** Rows have been waiting for a while. */
  isStalled: boolean;
  /** A connector of the feed keeps failing or does not run. */
  isFailing: boolean;
}

/** How long beyond the feed's lateness before it counts as behind. */
const BEHIND_MS = 15_000;
/**
 * After this long without rows the page shows when the last ones came: a recording has ended, or
 * its source is silent.
 */
export const QUIET_MS = 60_000;
/**
 * A busy machine may be silent for several seconds; a hung database or
 * publisher is silent for longer.
 */
export const SILENT_MS = 6_000;
const WORKING = new Set<unknown>(["running", "starting"]);
/** Whether a job in this state processes rows or soon will. */
export const isWorking = (job: unknown): boolean => WORKING.has(job);

/**
 * The first cause that applies: no connection, then a silent server, then a job that does not run.
 */
export function connectionStatus(known: Known): ConnectionStatus {
  if (known.connection !== "open") return known.connection;
  if (!known.isLoaded) return "loading";
  if (!known.isClockLive) return "past";
  if (known.silentMs > SILENT_MS) return "silent";
  if (!isWorking(known.job)) return "down";
  if (known.isStalled) return "behind";
  if (known.isFailing) return "failing";
  if (known.restMs === null) return "empty";
  if (known.restMs > QUIET_MS) return "ended";
  return known.lagMs !== null && known.lagMs > known.latenessMs + BEHIND_MS ? "behind" : "live";
}

interface Words {
  text: string;
  title: string;
}

/** The states of a connection that carries nothing, on every live page. */
export const UNCONNECTED: Record<"connecting" | "reconnecting" | "refused", Words> = {
  connecting: { text: t("Connecting"), title: t("Opening the live connection") },
  reconnecting: {
    text: t("Reconnecting"),
    title: t("The connection was lost; press to try again now. Nothing is lost: missed changes are fetched."),
  },
  refused: { text: t("Logged out"), title: t("Log in again to continue") },
};

/** Connectors that keep failing or do not run, in the page's bar, and the consequences. */
export const failingWords = (names: readonly string[]): Words => ({
  text: tn("Connector fails", "{count} connectors fail", names.length),
  title: t("Rows or answers may be missing, because connectors do not work: {names}. See Feeds.", { names: names.join(", ") }),
});

export const silentText = (silentMs: number): string => t("No news for {silentMs}", { silentMs: formatRough(silentMs) });
