/**
 * The rules tried on a period of history: each fluent as a lane, the rule of each edge, and the
 * same as a list for the keyboard.
 */

import {
  answered,
  groundings,
  intervalAt,
  laneName,
  ruleLines,
  sandboxAnswer,
  shownLanes,
  type Edge,
  type Lane,
  type SandboxAnswer,
} from "../../../data/calculus_sandbox_data";
import type { Feed } from "../../../lib/shapes";
import type { Answer, TrialRequest } from "../../../data/period";
import { ApiError, post, reason } from "../../../lib/api";
import { onThemeChange, queryColour } from "../../../lib/colours";
import { awaiting, button, empty, h, icon, replace } from "../../../lib/dom";
import { Latest } from "../../../lib/latest";
import { formatNumber, formatSpan, type Zone } from "../../../lib/time";
import { readInk, type Ink } from "../../ink";
import { HEAD_PX, LANE_PX, paintLanes, type LaneScene } from "./lane_painter";
import type { Lines } from "./rule_editor";
import { edgesOf, intervalList, spanText, type Current, type IntervalContext } from "./sandbox_intervals";
import { PeriodField, whichPeriod } from "../../period_field";
import { formatTenths, t, tn } from "../../../lib/texts";

const MOST_GROUNDINGS = 300;
const TALLEST_PX = 420;
const EVERYBODY = "";
const MINUTES = [1, 5, 10, 30, 60, 6 * 60, 24 * 60];

export interface SandboxOptions {
  feed: Feed;
  zone: Zone;
  specification: () => Record<string, unknown>;
  /** The rules of the highlighted edges; empty if none are. */
  onPoint: (lines: readonly Lines[]) => void;
  onFaults: (error: ApiError) => void;
}

export class SandboxView {
  readonly element: HTMLElement;
  private readonly period: PeriodField;
  private readonly run = button(t("Try it"), {
    icon: "circle-play",
    kind: "button-primary",
    id: "run-sandbox",
    onClick: () => this.ask(),
  });
  private readonly who = h("select", {
    class: "select select-sm",
    id: "sandbox-who",
    "aria-label": t("Whose lanes"),
    onChange: () => this.refresh(),
  });
  private readonly words = h("input", {
    class: "input input-sm",
    id: "sandbox-filter",
    placeholder: t("Filter: fluent, entity"),
    "aria-label": t("Filter lanes"),
    autocomplete: "off",
    onInput: () => this.refresh(),
  });
  private readonly twin = h(
    "button",
    { type: "button", class: "button button-sm toggle", "aria-pressed": "false", onClick: () => this.toggle() },
    icon("list"),
    t("List"),
  );
  private readonly tools = h("div", { class: "sandbox-tools", hidden: true }, this.who, this.words, this.twin);
  private readonly body = h("div", { class: "sandbox-body" });
  private readonly canvas = h("canvas", {});
  private readonly spacer = h("div", { class: "sandbox-spacer" });
  private readonly scroller = h(
    "div",
    {
      class: "sandbox-lanes",
      tabindex: 0,
      role: "application",
      "aria-label": t("Lanes of fluents: arrow keys go from interval to interval"),
    },
    h("div", { class: "sandbox-canvas" }, this.canvas),
    this.spacer,
  );
  private readonly detail = h("div", { class: "sandbox-detail", role: "status", "aria-live": "polite" });
  private readonly stop = new AbortController();
  private readonly question = new Latest(
    (signal) => this.asked(signal),
    (error) => this.failed(error),
  );
  private answer: SandboxAnswer | null = null;
  private lanes: Lane[] = [];
  private current: Current | null = null;
  /** The answer to explain: only lanes of its entities are asked for. */
  private toExplain: Answer | null = null;
  private ink: Ink | null = null;
  private isStale = false;
  private frame = 0;

  constructor(private readonly options: SandboxOptions) {
    this.period = new PeriodField({ feed: options.feed, zone: options.zone, minutes: MINUTES, ofHistory: 60, prefix: "sandbox" });
    this.element = h(
      "section",
      { class: "panel calculus-sandbox", "aria-label": t("Sandbox") },
      h("div", { class: "panel-head" }, h("h2", {}, t("Try it on past data")), this.period.select, this.run),
      this.period.ends,
      this.tools,
      this.body,
    );
    replace(
      this.body,
      empty(
        "layers",
        t("See what each rule does"),
        t("The rules run over a part of the feed’s history. Each fluent gets a lane, with the rules that began and ended each interval."),
      ),
    );
    const signal = this.stop.signal;
    this.scroller.addEventListener("scroll", () => this.draw(), { signal });
    this.scroller.addEventListener("pointermove", (event) => this.point(event), { signal });
    this.scroller.addEventListener("pointerdown", (event) => this.point(event), { signal });
    this.scroller.addEventListener("keydown", (event) => this.key(event), { signal });
    const resized = new ResizeObserver(() => this.draw());
    resized.observe(this.scroller);
    signal.addEventListener("abort", () => resized.disconnect());
    onThemeChange(() => {
      this.ink = null;
      this.draw();
    });
  }

  /**
   * Runs immediately, for the lanes of one entity: a busy period has too
   * many lanes for all of them.
   */
  tryRequested(request: TrialRequest): void {
    this.period.set(request);
    this.toExplain = request.answer;
    void this.ask();
  }

  close(): void {
    this.question.drop();
    this.stop.abort();
  }

  /** The rules changed: the result shown is out of date. */
  changed(): void {
    if (this.answer === null || this.isStale) return;
    this.isStale = true;
    this.body.classList.add("stale");
    this.options.onPoint([]);
    this.body.prepend(h("p", { class: "notice" }, icon("refresh-cw"), h("span", {}, t("The rules have changed since. Try them again."))));
  }

  private async ask(): Promise<void> {
    this.body.classList.remove("stale");
    replace(this.body, awaiting());
    await this.question.now();
  }

  private async asked(signal: AbortSignal): Promise<void> {
    const { feed, specification } = this.options;
    const period = this.period.value();
    if (period === null) {
      this.nowhere();
      return;
    }
    this.show(
      await post(
        "queries/sandbox",
        { feed: feed.name, specification: specification(), ...period, entities: this.toExplain?.args ?? [] },
        sandboxAnswer,
        signal,
      ),
    );
  }

  private nowhere(): void {
    this.answer = null;
    this.tools.hidden = true;
    replace(this.body, whichPeriod());
  }

  private failed(error: unknown): void {
    this.answer = null;
    this.tools.hidden = true;
    const isRefused = error instanceof ApiError && error.status === 400;
    replace(
      this.body,
      empty("circle-alert", t("Not tried"), isRefused ? t("The rules still have errors: see the marked places.") : reason(error)),
    );
    if (isRefused) this.options.onFaults(error);
  }

  private show(answer: SandboxAnswer): void {
    this.answer = answer;
    this.isStale = false;
    this.current = null;
    this.tools.hidden = answer.lanes.length === 0;
    const found = groundings(answer.lanes).slice(0, MOST_GROUNDINGS);
    const isOutput = new Set(answer.lanes.filter((lane) => lane.is_output).map((lane) => JSON.stringify(lane.args)));
    const { toExplain } = this;
    const asked = toExplain === null ? undefined : answered(answer.lanes, toExplain)?.lane.args;
    const first =
      found.find((args) => JSON.stringify(args) === JSON.stringify(asked)) ?? found.find((args) => isOutput.has(JSON.stringify(args)));
    replace(
      this.who,
      h("option", { value: EVERYBODY }, t("Everybody")),
      ...found.map((args) => h("option", { value: JSON.stringify(args), selected: args === first }, args.join(", "))),
    );
    this.refresh();
    this.explain();
  }

  /**
   * The answer itself is selected first: the rules that began and ended it
   * are explained and marked.
   */
  private explain(): void {
    const found = this.toExplain === null ? null : answered(this.lanes, this.toExplain);
    if (found === null) return;
    const place = this.lanes.indexOf(found.lane);
    this.look({ lane: place, interval: found.interval });
    this.scrollTo(place);
  }

  private scrollTo(place: number): void {
    const top = place * LANE_PX;
    const room = this.scroller.clientHeight - HEAD_PX - LANE_PX;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
  }

  private refresh(): void {
    const { answer } = this;
    if (answer === null) return;
    const grounding = this.who.value === EVERYBODY ? null : (JSON.parse(this.who.value) as string[]);
    this.lanes = shownLanes(answer.lanes, { grounding, words: this.words.value });
    this.look(null);
    const isList = this.twin.getAttribute("aria-pressed") === "true";
    replace(
      this.body,
      this.summary(answer),
      this.lanes.length === 0
        ? this.nothing(answer)
        : isList
          ? intervalList(this.lanes, this.context(answer), (current) => this.look(current))
          : this.scroller,
      this.lanes.length > 0 ? this.detail : null,
    );
    this.spacer.style.setProperty("--tall", `${HEAD_PX + this.lanes.length * LANE_PX}px`);
    this.scroller.style.setProperty("--shown", `${Math.min(TALLEST_PX, HEAD_PX + this.lanes.length * LANE_PX)}px`);
    this.draw();
  }

  private summary(answer: SandboxAnswer): HTMLElement {
    const { time } = this.options.feed;
    const restricted =
      answer.entities === null
        ? null
        : this.toExplain !== null
          ? this.only(this.toExplain.args)
          : h(
              "p",
              { class: "small muted row" },
              icon("info"),
              t("Too much to show at once: lanes of the {count} entities with the most answers.", {
                count: formatNumber(answer.entities.length),
              }),
            );
    const outputs = this.lanes.filter((lane) => lane.is_output).reduce((sum, lane) => sum + lane.intervals.length, 0);
    const [some, all] = [formatNumber(this.lanes.length), formatNumber(answer.lanes.length)];
    const answers = tn("1 answer", "{count} answers", outputs);
    const absent = absentWords(answer);
    const text = answer.lanes.length === 0 ? "" : t("{some} of {all} lanes, {answers} among them. ", { some, all, answers });
    return h(
      "div",
      { class: "sandbox-summary" },
      h(
        "p",
        { class: "small" },
        text,
        h(
          "span",
          { class: "faint num" },
          t("{to} of history, {rows} events, {seconds} s", {
            to: formatSpan(answer.to - answer.from, time),
            rows: formatNumber(answer.rows),
            seconds: formatTenths(answer.seconds),
          }),
        ),
      ),
      absent === null || answer.lanes.length === 0 ? null : h("p", { class: "notice" }, icon("triangle-alert"), h("span", {}, absent)),
      restricted,
    );
  }

  private only(who: readonly string[]): HTMLElement {
    const everybody = (): void => {
      this.toExplain = null;
      void this.ask();
    };
    return h(
      "p",
      { class: "small muted row row-wrap" },
      icon("info"),
      h("span", {}, t("Only what mentions {who}.", { who: who.join(t(" or ")) })),
      button(t("Everybody"), { kind: "button-sm button-quiet", onClick: everybody }),
    );
  }

  private nothing(answer: SandboxAnswer): HTMLElement {
    if (answer.lanes.length > 0) return empty("filter", t("No lane of that name"), t("Look for another word, or choose Everybody."));
    if (answer.rows === 0)
      return empty(
        "history",
        t("No events in this period"),
        t("The feed’s history does not reach it, or holds it no longer."),
        this.tryLonger(),
      );
    return empty(
      "history",
      t("Nothing holds in this period"),
      absentWords(answer) ?? t("No rule began anything in this time. Look further back, or make the thresholds wider."),
      this.tryLonger(),
    );
  }

  private tryLonger(): HTMLElement | null {
    return this.period.longer(
      (period) => t("Try the {period}", { period }),
      () => this.ask(),
    );
  }

  // ---- Lanes

  private draw(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  private paint(): void {
    const context = this.canvas.getContext("2d");
    const scene = this.scene();
    if (context === null || scene === null || !this.scroller.isConnected) return;
    const ratio = window.devicePixelRatio;
    const [wide, tall] = [Math.round(scene.width * ratio), Math.round(scene.height * ratio)];
    if (this.canvas.width !== wide || this.canvas.height !== tall) [this.canvas.width, this.canvas.height] = [wide, tall];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.ink ??= readInk();
    paintLanes(context, scene, this.ink);
  }

  private scene(): LaneScene | null {
    const { answer } = this;
    if (answer === null) return null;
    const { clientWidth: width, clientHeight: height, scrollTop: scroll } = this.scroller;
    const colour = (lane: Lane): string => queryColour(lane.fluent);
    return {
      lanes: this.lanes,
      colour,
      t0: answer.from,
      t1: answer.to,
      width,
      height,
      gutter: width < 520 ? 130 : 260,
      scroll,
      current: this.current,
      unit: this.options.feed.time,
      zone: this.options.zone,
    };
  }

  private point(event: PointerEvent): void {
    const scene = this.scene();
    const box = this.scroller.getBoundingClientRect();
    if (scene === null) return;
    const place = Math.floor((event.clientY - box.top - HEAD_PX + scene.scroll) / LANE_PX);
    const lane = event.clientY - box.top < HEAD_PX ? undefined : this.lanes[place];
    if (lane === undefined) return;
    const scale = (scene.t1 - scene.t0) / Math.max(1, scene.width - scene.gutter);
    const interval = intervalAt(lane, scene.t0 + (event.clientX - box.left - scene.gutter) * scale, 7 * scale);
    if (interval !== null) this.look({ lane: place, interval });
  }

  private key(event: KeyboardEvent): void {
    const steps: Record<string, [number, number]> = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
    const step = steps[event.key];
    if (step === undefined || this.lanes.length === 0) return;
    event.preventDefault();
    const place = this.current === null ? 0 : Math.min(this.lanes.length - 1, Math.max(0, this.current.lane + step[0]));
    const { intervals } = this.lanes[place]!;
    const before = this.current === null || step[0] !== 0 ? -1 : intervals.indexOf(this.current.interval);
    const same = this.current === null || step[0] === 0 ? null : intervalAt(this.lanes[place]!, this.current.interval.start, Infinity);
    const interval = same ?? intervals[Math.min(intervals.length - 1, Math.max(0, before + step[1]))];
    if (interval === undefined) return;
    this.look({ lane: place, interval });
    this.scrollTo(place);
  }

  /** Shows an interval's rules below, and in the editor. */
  private look(current: Current | null): void {
    if (current !== null && this.current?.interval === current.interval) return;
    this.current = current;
    this.draw();
    const lane = current === null ? undefined : this.lanes[current.lane];
    const { answer } = this;
    if (current === null || lane === undefined || answer === null) {
      replace(
        this.detail,
        h(
          "p",
          { class: "small faint" },
          t("Point at an interval, or go there with the arrow keys, to see the rules that began and ended it."),
        ),
      );
      this.options.onPoint([]);
      return;
    }
    const context = this.context(answer);
    replace(
      this.detail,
      h("p", {}, h("strong", {}, laneName(lane)), " ", h("span", { class: "num muted" }, spanText(lane, current.interval, context))),
      ...edgesOf(lane, current.interval, context),
    );
    if (!this.isStale) this.options.onPoint([current.interval.began, current.interval.ended].flatMap((edge) => this.linesOf(edge)));
  }

  private context({ rules }: SandboxAnswer): IntervalContext {
    return { rules, time: this.options.feed.time, zone: this.options.zone };
  }

  private linesOf(cause: Edge): Lines[] {
    const rule = cause === null ? undefined : this.answer?.rules[cause.rule];
    return rule === undefined ? [] : [ruleLines(rule)];
  }

  // ---- List

  private toggle(): void {
    this.twin.setAttribute("aria-pressed", String(this.twin.getAttribute("aria-pressed") !== "true"));
    this.refresh();
  }
}

/**
 * A misspelt event is a valid event without rows: the list of events shows the existing names.
 */
function absentWords({ absent, events }: SandboxAnswer): string | null {
  return absent.length === 0 || events.length === 0
    ? null
    : t("No row of this period is the event {absent}. The events here are: {events}.", {
        absent: absent.join(", "),
        events: events.join(", "),
      });
}
