/** The bar over the timeline: follow the present, pause, zoom, the brushed range, timeline or list. */

import { button, h, icon, iconButton, replace } from "../../lib/dom";
import { formatClock, formatSpan, zoneName } from "../../lib/time";
import { fail } from "../shell_view";
import type { TimelineView } from "../timeline_view";
import { showShortcuts } from "./keyboard";
import type { LiveModel } from "./model";

export interface TimeHandlers {
  /** Window, range or mode was chosen. */
  onState: () => void;
  onRange: () => void;
  onMode: () => void;
  onWindow: () => void;
}

export class TimeControl {
  readonly clock = h("div", { class: "clock" });
  readonly element: HTMLElement;
  private readonly listButton = button("List", { icon: "table-2", kind: "button-sm toggle", "aria-pressed": "false", onClick: () => this.setMode(this.model.state.mode === "list" ? "timeline" : "list") });
  private readonly liveButton = button("Live", { icon: "skip-forward", kind: "button-sm", title: "Follow the present (L)", onClick: () => this.goLive() });
  private readonly pauseButton = iconButton("Pause (space)", "pause", { kind: "button-sm", onClick: () => this.togglePause() });
  private readonly rangeNote = h("span", { class: "chip", hidden: true });
  private readonly windowNote = h("span", { class: "small faint num wide" });

  constructor(
    private readonly model: LiveModel,
    /** Made later than the bar that stands over it. */
    private readonly timeline: () => TimelineView,
    private readonly handlers: TimeHandlers,
  ) {
    const zoomIn = iconButton("Zoom in (W)", "plus", { kind: "button-sm", onClick: () => this.timeline().zoom(0.6) });
    const zoomOut = iconButton("Zoom out (S)", "minus", { kind: "button-sm", onClick: () => this.timeline().zoom(1.6) });
    this.element = h(
      "div",
      { class: "timeline-bar" },
      h("div", { class: "button-group" }, this.pauseButton, this.liveButton),
      h("div", { class: "button-group" }, zoomOut, zoomIn),
      this.windowNote,
      this.rangeNote,
      h("span", { class: "grow" }),
      iconButton("Keyboard shortcuts (?)", "keyboard", { kind: "button-quiet button-sm", onClick: () => showShortcuts() }),
      this.listButton,
    );
    this.showPause();
  }

  /** Ten times a second: the window follows the present, or stands still while the present moves on. */
  beat(): void {
    const { feed, zone } = this.model;
    const timeline = this.timeline();
    const now = this.model.now();
    if (now > 0) {
      const [t0, t1] = this.model.window();
      timeline.setWindow(t0, t1, now);
    }
    replace(this.clock, h("strong", {}, now > 0 ? formatClock(Math.floor(now), feed.time, zone) : "–"), feed.time === "ms" ? h("span", { class: "faint unit" }, zoneName(zone)) : null);
    this.windowNote.textContent = now > 0 ? `${formatSpan(Math.round(timeline.t1 - timeline.t0), feed.time)} shown` : "";
  }

  setWindow(window: [number, number]): void {
    this.model.state.window = window;
    this.model.state.span = window[1] - window[0];
    this.timeline().setWindow(...window, this.model.now());
    this.showPause();
    this.model.loadHistory(window).catch(fail);
    this.handlers.onWindow();
    this.handlers.onState();
  }

  /** As much time as is shown now, or as the answer takes, up to a little after its end: those before it are in sight too. */
  goTo({ start, end }: { start: number; end: number | null }): void {
    const [t0, t1] = this.model.window();
    const last = end ?? this.model.now();
    const span = Math.max(t1 - t0, (last - start) * 1.3);
    this.setWindow([last + span * 0.15 - span, last + span * 0.15]);
  }

  goLive(): void {
    this.model.state.window = null;
    this.showPause();
    this.handlers.onState();
  }

  togglePause(): void {
    const { t0, t1 } = this.timeline();
    if (this.model.state.window !== null) this.goLive();
    else this.setWindow([t0, t1]);
  }

  private showPause(): void {
    const isFollowing = this.model.state.window === null;
    replace(this.pauseButton, icon(isFollowing ? "pause" : "play"));
    this.pauseButton.setAttribute("aria-label", isFollowing ? "Pause (space)" : "Follow the present (space)");
    this.liveButton.setAttribute("aria-pressed", String(isFollowing));
  }

  /** A brushed stretch of time narrows down the list and the map; null takes it away. */
  setRange(range: [number, number] | null): void {
    const { feed, zone, state } = this.model;
    state.range = range;
    this.timeline().setRange(range);
    this.rangeNote.hidden = range === null;
    if (range !== null) {
      const text = `${formatClock(range[0], feed.time, zone)} – ${formatClock(range[1], feed.time, zone)}`;
      replace(this.rangeNote, h("span", { class: "num" }, text), h("button", { type: "button", "aria-label": "Clear the time range", onClick: () => this.setRange(null) }, icon("x")));
    }
    this.handlers.onState();
    this.handlers.onRange();
  }

  setMode(mode: "timeline" | "list"): void {
    this.model.state.mode = mode;
    this.listButton.setAttribute("aria-pressed", String(mode === "list"));
    this.handlers.onMode();
    this.handlers.onState();
  }
}
