/**
 * The bar over the timeline: live, paused or playing; the instant as a field; zoom, the
 * brushed range, timeline or list.
 */

import { t } from "../../lib/texts";
import { parseWhen } from "../../clock/when";
import { button, download, h, icon, iconButton, replace } from "../../lib/dom";
import { formatClock, formatMoment, formatSpan, zoneName } from "../../lib/time";
import { attachExport } from "../export_menu";
import { fail, toast } from "../shell_view";
import type { TimelineView } from "../timeline_view";
import { showLegend } from "./legend";
import type { LiveModel } from "./model";
import { showShortcuts } from "./shortcuts";

export interface TimeHandlers {
  /** The reader chose a window, instant, range or mode. */
  onState: () => void;
  onRange: () => void;
  onMode: () => void;
  /** The reader changed the instant or the window: its data have to be loaded. */
  onTime: () => void;
}

/** Multiples of real time. */
const RATES = [1, 2, 5, 10, 30, 60, 120, 300, 600] as const;
const FIRST_RATE = 10;
/** The share of the window that an arrow key moves. */
const STEP = 0.02;

export class TimeControl {
  readonly clock = h("div", { class: "clock" });
  private readonly instant = h("strong", {}, "–");
  readonly element: HTMLElement;
  private readonly listButton = button(t("List"), {
    icon: "table-2",
    kind: "button-sm toggle",
    "aria-pressed": "false",
    onClick: () => this.setMode(this.model.state.mode === "list" ? "timeline" : "list"),
  });
  private readonly exportButton = button(t("Export"), {
    icon: "download",
    kind: "button-sm answers-export",
    title: t("The answers of this time as a file. A stay inside is two answers: entering and leaving."),
    hidden: true,
  });
  private readonly liveButton = button(t("Live"), {
    icon: "skip-forward",
    kind: "button-sm",
    title: t("Follow the present (L)"),
    onClick: () => this.goLive(),
  });
  private readonly playButton = iconButton(t("Pause (space)"), "pause", { kind: "button-sm", onClick: () => this.togglePlay() });
  private readonly backButton = iconButton(t("Play backwards (B)"), "play", {
    kind: "button-sm play-back",
    onClick: () => this.playBackwards(),
  });
  private readonly rateChoice = h(
    "select",
    {
      class: "input input-sm rate",
      "aria-label": t("Playback speed"),
      title: t("Playback speed"),
      onChange: () => this.rateChosen(),
    },
    ...RATES.map((rate) => h("option", { value: rate, selected: rate === FIRST_RATE }, `${rate}×`)),
  );
  private readonly whenField = h("input", {
    class: "input input-sm when num",
    type: "text",
    autocomplete: "off",
    "aria-label": t("Go to a date and time"),
    title: t("14:00, yesterday 14:00, 2026-11-22 07:12:05 or -10 min"),
    onKeydown: (event: Event) => this.whenKey(event as KeyboardEvent),
    onBlur: () => this.showWhen(),
  });
  private readonly rangeNote = h("span", { class: "chip", hidden: true });
  private readonly coverageNote = h("span", { class: "small coverage-note", role: "status", hidden: true });
  private readonly windowNote = h("span", { class: "small faint num wide" });

  constructor(
    private readonly model: LiveModel,
    /** Created after the bar above it. */
    private readonly timeline: () => TimelineView,
    private readonly handlers: TimeHandlers,
  ) {
    const { feed, zone } = this.model;
    replace(this.clock, this.instant, feed.time === "ms" ? h("span", { class: "faint unit" }, zoneName(zone)) : null);
    const zoomIn = iconButton(t("Zoom in (W)"), "plus", { kind: "button-sm", onClick: () => this.timeline().zoom(0.6) });
    const zoomOut = iconButton(t("Zoom out (S)"), "minus", { kind: "button-sm", onClick: () => this.timeline().zoom(1.6) });
    this.element = h(
      "div",
      { class: "timeline-bar" },
      h("div", { class: "button-group" }, this.backButton, this.playButton, this.liveButton),
      this.rateChoice,
      this.whenField,
      h("div", { class: "button-group" }, zoomOut, zoomIn),
      this.windowNote,
      this.coverageNote,
      this.rangeNote,
      h("span", { class: "grow" }),
      iconButton(t("What the marks mean"), "info", { kind: "button-quiet button-sm", onClick: () => showLegend() }),
      iconButton(t("Keyboard shortcuts (?)"), "keyboard", { kind: "button-quiet button-sm", onClick: () => showShortcuts() }),
      this.exportButton,
      this.listButton,
    );
    attachExport(this.exportButton, (format) => this.exportAs(format));
    this.showPlaying();
  }

  /** Shows the state of the clock: ten times a second, and for each frame while it plays. */
  beat(): void {
    const { feed, zone, clock } = this.model;
    const timeline = this.timeline();
    const wasPlaying = clock.isPlaying;
    clock.tick();
    if (wasPlaying !== clock.isPlaying) this.changed();
    const now = clock.now();
    if (now > 0) {
      const [t0, t1] = clock.window();
      timeline.setWindow(t0, t1, now, this.model.present());
    }
    showText(this.instant, now > 0 ? formatClock(Math.floor(now), feed.time, zone) : "–");
    showText(this.windowNote, now > 0 ? t("{span} shown", { span: formatSpan(Math.round(timeline.t1 - timeline.t0), feed.time) }) : "");
    if (document.activeElement !== this.whenField) this.showWhen();
    this.showCoverage();
  }

  /** If single answers are not shown, the page shows a notice. */
  private showCoverage(): void {
    const { clock, loading } = this.model;
    const { coverage, counts } = loading;
    const [t0, t1] = clock.window();
    const gaps = clock.present === 0 ? [] : coverage.gaps(t0, Math.min(t1, clock.present));
    const isCounted = counts !== null && gaps.every(([a, b]) => counts.from <= a && b <= counts.to + 1);
    const isWhole = gaps.length === 0;
    this.coverageNote.hidden = isWhole;
    const text = !isCounted ? t("Loading older answers") : t("Older answers are counted: zoom in for single ones");
    if (!isWhole && this.coverageNote.textContent !== text) this.coverageNote.textContent = text;
  }

  /** Applies the window and the instant of the address. */
  open(): void {
    this.model.openClock();
    this.changed();
  }

  /** Shows the window, and in it the instant `at`. */
  show(window: [number, number], at?: number): void {
    this.model.clock.show(window, at);
    this.changed();
  }

  seek(t: number): void {
    this.model.clock.seek(t);
    this.changed();
  }

  pan(dt: number): void {
    this.model.clock.pan(dt);
    this.changed();
  }

  zoom(factor: number, about: number): void {
    this.model.clock.zoom(factor, about);
    this.changed();
  }

  /** An arrow key: a small step; the clock is then paused. */
  step(direction: 1 | -1): void {
    const [t0, t1] = this.model.window();
    this.seek(this.model.now() + Math.max(1, (t1 - t0) * STEP) * direction);
  }

  /**
   * A window of the current length, or of the answer's, that ends a little after its end, so that
   * earlier answers are visible too.
   */
  goTo({ start, end }: { start: number; end: number | null }): void {
    const [t0, t1] = this.model.window();
    const last = end ?? this.model.present();
    const span = Math.max(t1 - t0, (last - start) * 1.3);
    this.show([last + span * 0.15 - span, last + span * 0.15], start);
  }

  goLive(): void {
    this.model.clock.goLive();
    this.changed();
  }

  /** Pauses a live or playing clock; a paused one plays. */
  togglePlay(): void {
    const { clock } = this.model;
    if (clock.isLive || clock.isPlaying) clock.pause();
    else clock.play(this.rate);
    this.changed();
    // A link that is copied now contains this instant, so the clock shows it too.
    this.beat();
  }

  playBackwards(): void {
    const { clock } = this.model;
    if (clock.rate < 0) clock.pause();
    else clock.play(-this.rate);
    this.changed();
  }

  private get rate(): number {
    return Number(this.rateChoice.value);
  }

  private rateChosen(): void {
    const { clock } = this.model;
    if (clock.isPlaying) clock.play(this.rate * Math.sign(clock.rate));
    this.changed();
  }

  /** The next slower or faster speed. */
  changeRate(direction: 1 | -1): void {
    const at = RATES.findIndex((rate) => rate === this.rate) + direction;
    this.rateChoice.value = String(RATES[Math.max(0, Math.min(RATES.length - 1, at))]);
    this.rateChosen();
  }

  private changed(): void {
    this.beatNow();
    this.showPlaying();
    this.handlers.onTime();
    this.handlers.onState();
  }

  private beatNow(): void {
    const { clock } = this.model;
    if (clock.now() > 0) this.timeline().setWindow(...clock.window(), clock.now(), this.model.present());
  }

  private showPlaying(): void {
    const { clock } = this.model;
    const isForward = clock.isLive || clock.rate > 0;
    replace(this.playButton, icon(isForward ? "pause" : "play"));
    const text = isForward ? t("Pause (space)") : t("Play (space)");
    this.playButton.setAttribute("aria-label", text);
    this.playButton.title = text;
    this.backButton.setAttribute("aria-pressed", String(clock.rate < 0));
    this.liveButton.setAttribute("aria-pressed", String(clock.isLive));
  }

  private whenKey(event: KeyboardEvent): void {
    if (event.key === "Escape") this.whenField.blur();
    if (event.key !== "Enter") return;
    const { feed, zone } = this.model;
    const found = parseWhen(this.whenField.value, this.model.present(), feed.time, zone);
    if (found === null) {
      toast(
        feed.time === "ms"
          ? t('Write a time as "14:00", "yesterday 14:00", "2026-11-22 07:12:05" or "-10 min".')
          : t('Write a tick as "1200", or "-100" for a tick 100 before the present.'),
        "critical",
      );
      return;
    }
    this.sayIfElsewhere(found);
    this.seek(found);
    this.whenField.blur();
  }

  /** For an instant without data, the nearest one with data is shown. */
  private sayIfElsewhere(t0: number): void {
    const { feed, zone, clock } = this.model;
    if (t0 < clock.earliest) {
      toast(t("The first rows are of {moment}: nothing older is kept.", { moment: formatMoment(clock.earliest, feed.time, zone) }));
    } else if (t0 > clock.present) {
      toast(t("That is in the future: the present is shown."));
    }
  }

  private showWhen(): void {
    const { feed, zone, clock } = this.model;
    const now = clock.now();
    const text = now > 0 ? formatMoment(Math.floor(now), feed.time, zone) : "";
    if (this.whenField.value !== text) this.whenField.value = text;
  }

  /** A brushed range filters list and map; null removes it. */
  setRange(range: [number, number] | null): void {
    const { feed, zone, state } = this.model;
    state.range = range;
    this.timeline().setRange(range);
    this.rangeNote.hidden = range === null;
    if (range !== null) {
      const text = `${formatClock(range[0], feed.time, zone)} – ${formatClock(range[1], feed.time, zone)}`;
      replace(
        this.rangeNote,
        h("span", { class: "num" }, text),
        h("button", { type: "button", "aria-label": t("Clear the time range"), onClick: () => this.setRange(null) }, icon("x")),
      );
    }
    this.handlers.onState();
    this.handlers.onRange();
  }

  private exportAs(format: string): void {
    const { t0, t1 } = this.timeline();
    try {
      download(this.model.answersFile(format, this.model.state.range ?? [t0, t1]));
    } catch (error) {
      fail(error);
    }
  }

  setMode(mode: "timeline" | "list"): void {
    this.model.state.mode = mode;
    this.exportButton.hidden = mode !== "list";
    this.listButton.setAttribute("aria-pressed", String(mode === "list"));
    this.handlers.onMode();
    this.handlers.onState();
  }
}

/** This runs for each frame: unchanged parts must not cause a new layout. */
function showText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
