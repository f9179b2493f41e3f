/**
 * The reader's settings, kept in this browser: theme (a cookie, so that the server can render it),
 * sizes, notifications.
 */

import { SEVERITIES, type Severity } from "./shapes";

export type Theme = "system" | "light" | "dark";
const YEAR_S = 31_536_000;
const MOST_DISMISSED = 200;

export function theme(): Theme {
  const chosen = document.documentElement.dataset["theme"];
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

export function setTheme(choice: Theme): void {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  if (choice === "system") {
    delete document.documentElement.dataset["theme"];
    document.cookie = `theme=; Path=/; Max-Age=0; SameSite=Lax${secure}`;
    return;
  }
  document.documentElement.dataset["theme"] = choice;
  document.cookie = `theme=${choice}; Path=/; Max-Age=${YEAR_S}; SameSite=Lax${secure}`;
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // Storage is switched off: defaults hold.
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Storage is switched off: the choice lasts until the page is closed.
  }
}

export function lastFeed(): string | null {
  return read("vedette.feed");
}

export function setLastFeed(name: string): void {
  write("vedette.feed", name);
}

/** Announcements that the reader has dismissed in this browser. */
export function dismissed(): string[] {
  return (read("vedette.dismissed") ?? "").split("\n").filter((one) => one !== "");
}

/** The newest are kept. */
export function dismiss(keys: readonly string[]): void {
  write("vedette.dismissed", [...new Set([...dismissed(), ...keys])].slice(-MOST_DISMISSED).join("\n"));
}

export function timelineHeight(): number | null {
  const value = Number(read("vedette.timeline"));
  return Number.isFinite(value) && value > 0 ? value : null;
}

export function setTimelineHeight(px: number): void {
  write("vedette.timeline", String(Math.round(px)));
}

export function wantsNotifications(): boolean {
  return read("vedette.notify") === "yes";
}

export function setWantsNotifications(value: boolean): void {
  write("vedette.notify", value ? "yes" : "no");
}

/** From which severity on new alerts make a sound; null: never. */
export function soundFrom(): Severity | null {
  return SEVERITIES.find((one) => one === read("vedette.sound")) ?? null;
}

export function setSoundFrom(severity: Severity | null): void {
  write("vedette.sound", severity ?? "");
}

/** The channel of this browser, as the page created it. */
export function pushChannel(): string | null {
  return read("vedette.push-channel");
}

export function setPushChannel(id: string): void {
  write("vedette.push-channel", id);
}

/** The name of the base map; null: the first one. */
export function baseMapName(): string | null {
  return read("vedette.base-map");
}

export function setBaseMapName(name: string): void {
  write("vedette.base-map", name);
}

/** Overlays that this reader has hidden, as `feed/name`. */
export function hiddenOverlays(): Set<string> {
  return new Set((read("vedette.hidden-overlays") ?? "").split("\n").filter((one) => one !== ""));
}

export function setHiddenOverlays(hidden: ReadonlySet<string>): void {
  write("vedette.hidden-overlays", [...hidden].join("\n"));
}

/** The map settings of a feed, as its page stored them; null: the defaults. */
export function mapLooks(feed: string): string | null {
  return read(`vedette.looks.${feed}`);
}

export function setMapLooks(feed: string, looks: string): void {
  write(`vedette.looks.${feed}`, looks);
}
