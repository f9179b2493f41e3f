/**
 * The one clock of the live page: the instant that map, timeline, counts and panels show, and
 * the time window around it.
 *
 * Live, it follows the feed's present. Paused, it stays at an instant. Playing, it runs from an
 * instant at `rate` times real time, backwards if `rate` is negative, until it reaches the present
 * (then it is live) or the beginning of the history (then it pauses). Pure: present and wall clock
 * are passed in, and nothing is drawn. Times are in the feed's unit.
 */

export type ClockMode = { kind: "live" } | { kind: "paused"; t: number } | { kind: "playing"; t: number; since: number; rate: number };

export interface ClockSources {
  /** The feed's present: the greatest event time seen; 0 before any. */
  present: () => number;
  /** Milliseconds of a monotonic clock. */
  wall: () => number;
  /** Units of the feed's time per millisecond at rate 1. */
  unitsPerMs: number;
  /** The minimum length of the window. */
  leastSpan: number;
}

/** The share of the live window after the present. */
const AHEAD = 0.04;
/**
 * The share of the window that stays visible on both sides of the instant after it
 * was moved into the window.
 */
const MARGIN = 0.02;

export class Clock {
  private mode: ClockMode = { kind: "live" };
  /** The share of the window before the instant, while the clock is not live. */
  private before = 1 - AHEAD;
  /** The oldest instant of the history; -Infinity until it is known. */
  earliest = -Infinity;

  constructor(
    private readonly sources: ClockSources,
    private spanShown: number,
    private readonly onMode: () => void = () => undefined,
  ) {}

  get isLive(): boolean {
    return this.mode.kind === "live";
  }

  get isPlaying(): boolean {
    return this.mode.kind === "playing";
  }

  /** The multiple of real time, negative backwards; 0 while paused, 1 while live. */
  get rate(): number {
    return this.mode.kind === "playing" ? this.mode.rate : this.mode.kind === "live" ? 1 : 0;
  }

  get span(): number {
    return this.spanShown;
  }

  get present(): number {
    return this.sources.present();
  }

  /** The instant shown. */
  now(): number {
    const { mode } = this;
    if (mode.kind === "live") return this.present;
    if (mode.kind === "paused") return mode.t;
    return mode.t + (this.sources.wall() - mode.since) * mode.rate * this.sources.unitsPerMs;
  }

  /** The window shown, [from, to], which contains the instant. */
  window(): [number, number] {
    const now = this.now();
    const before = this.isLive ? 1 - AHEAD : this.before;
    return [now - this.spanShown * before, now + this.spanShown * (1 - before)];
  }

  /**
   * Ends a playback that has reached the present or the beginning of the history.
   * Called on each animation beat.
   */
  tick(): void {
    if (this.mode.kind !== "playing") return;
    const now = this.now();
    if (this.mode.rate > 0 && now >= this.present) this.goLive();
    else if (this.mode.rate < 0 && now <= this.earliest) this.change({ kind: "paused", t: this.earliest });
  }

  goLive(): void {
    this.change({ kind: "live" });
  }

  pause(): void {
    if (this.mode.kind === "paused") return;
    if (this.mode.kind === "live") this.before = 1 - AHEAD;
    this.change({ kind: "paused", t: this.now() });
  }

  play(rate: number): void {
    if (this.mode.kind === "live") {
      if (rate > 0) return;
      this.before = 1 - AHEAD;
    }
    this.change({ kind: "playing", t: this.now(), since: this.sources.wall(), rate });
  }

  /**
   * Shows the instant `t`; the window does not move if it contains `t`. At or after the
   * present the clock is live.
   */
  seek(t: number): void {
    const [t0, t1] = this.window();
    const at = Math.max(this.earliest, t);
    if (at >= this.present) {
      this.goLive();
      return;
    }
    if (at >= t0 && at <= t1) this.before = (at - t0) / this.spanShown;
    else this.before = Math.max(MARGIN, Math.min(1 - MARGIN, this.before));
    this.moveTo(at);
  }

  /** Moves instant and window together by `dt`. The live clock cannot move forwards. */
  pan(dt: number): void {
    if (this.isLive && dt >= 0) return;
    if (this.isLive) this.before = 1 - AHEAD;
    const at = Math.max(this.earliest, this.now() + dt);
    if (at >= this.present) this.goLive();
    else this.moveTo(at);
  }

  /**
   * Makes the window `factor` times as long, keeping `about`, or the nearest past instant of the
   * window, in place; a live clock stays live.
   */
  zoom(factor: number, about = this.now()): void {
    const span = Math.max(this.sources.leastSpan, this.spanShown * factor);
    if (!this.isLive) {
      const [t0, t1] = this.window();
      const centre = Math.max(t0, Math.min(t1, this.present, about));
      const share = (centre - t0) / this.spanShown;
      this.show([centre - span * share, centre + span * (1 - share)]);
    }
    this.spanShown = span;
    this.onMode();
  }

  /**
   * Shows the window [t0, t1] and in it the instant `at`, or by default the instant nearest to the
   * current one. The clock is paused unless it plays.
   */
  show([t0, t1]: readonly [number, number], at = this.now()): void {
    this.spanShown = Math.max(this.sources.leastSpan, t1 - t0);
    const instant = Math.max(t0, Math.min(t1, at));
    this.before = (instant - t0) / this.spanShown;
    this.moveTo(instant);
  }

  private moveTo(t: number): void {
    if (this.mode.kind === "playing") this.change({ ...this.mode, t, since: this.sources.wall() });
    else this.change({ kind: "paused", t });
  }

  private change(mode: ClockMode): void {
    this.mode = mode;
    this.onMode();
  }
}
