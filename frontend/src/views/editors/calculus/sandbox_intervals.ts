/** Intervals of the sandbox as text: one with the rules of its edges, and all of them as a list. */

import { laneName, type Edge, type Lane, type SandboxAnswer, type SandboxInterval } from "../../../data/calculus_sandbox_data";
import { h } from "../../../lib/dom";
import { t } from "../../../lib/texts";
import { formatClock, formatNumber, formatSpan, type TimeUnit, type Zone } from "../../../lib/time";

const MOST_ROWS = 400;

export interface Current {
  lane: number;
  interval: SandboxInterval;
}

/** The context needed to show intervals. */
export interface IntervalContext {
  rules: SandboxAnswer["rules"];
  time: TimeUnit;
  zone: Zone;
}

export function spanText(lane: Lane, { start, end }: SandboxInterval, { time, zone }: IntervalContext): string {
  const from = formatClock(start, time, zone);
  if (lane.kind === "event") return t("at {moment}", { moment: from });
  return end === null
    ? t("from {from}, and it still holds", { from })
    : t("from {from} to {end} ({end2})", { from, end: formatClock(end, time, zone), end2: formatSpan(end - start, time) });
}

/** The rules that began and ended an interval, and why. */
export function edgesOf(lane: Lane, { began, ended, end }: SandboxInterval, context: IntervalContext): HTMLElement[] {
  const source = lane.kind === "input" ? t("the feed's rows") : t("the initial state of this period");
  const edge = (title: string, cause: Edge): HTMLElement => {
    const rule = cause === null ? undefined : context.rules[cause.rule];
    if (cause === null || rule === undefined)
      return h("div", { class: "sandbox-edge" }, h("span", { class: "badge" }, title), h("span", { class: "small muted" }, source));
    return h(
      "div",
      { class: "sandbox-edge" },
      h("span", { class: "badge badge-accent" }, t("{title}: line {line}", { title, line: rule.line })),
      h("pre", { class: "mono" }, rule.text),
      ...cause.because.map((text) => h("code", { class: "mono small muted" }, readable(text, context))),
    );
  };
  const isEvent = lane.kind === "event";
  return [edge(isEvent ? t("Happened") : t("Began"), began), ...(isEvent || end === null ? [] : [edge(t("Ended"), ended)])];
}

/** The conditions that a rule satisfied, with its instant as a clock time. */
function readable(text: string, { time, zone }: IntervalContext): string {
  return time === "ticks" ? text : text.replace(/, (\d{9,16})\)$/, (_, t: string) => `, ${formatClock(Number(t), time, zone)})`);
}

/** All intervals as a table, oldest first. `look` is called when a row is hovered or focused. */
export function intervalList(
  lanes: readonly Lane[],
  { rules, time, zone }: IntervalContext,
  look: (current: Current) => void,
): HTMLElement {
  const rows = lanes
    .flatMap((lane, place) => lane.intervals.map((interval) => ({ lane, place, interval })))
    .sort((a, b) => a.interval.start - b.interval.start);
  const line = (cause: Edge): string => (cause === null ? "–" : t("line {line}", { line: rules[cause.rule]?.line ?? "?" }));
  const clock = (at: number | null): string => (at === null ? t("still holds") : formatClock(at, time, zone));
  const row = ({ lane, place, interval }: (typeof rows)[number]): HTMLElement => {
    const lookAt = (): void => look({ lane: place, interval });
    const cells = [
      clock(interval.start),
      lane.kind === "event" ? "" : clock(interval.end),
      line(interval.began),
      lane.kind === "event" || interval.end === null ? "" : line(interval.ended),
    ];
    // A list that scrolls under a resting pointer is not hovered.
    const point = (event: Event): void => {
      if (event instanceof MouseEvent && (event.movementX !== 0 || event.movementY !== 0)) lookAt();
    };
    return h(
      "tr",
      { onMousemove: point },
      h("td", {}, h("button", { type: "button", class: "query-name mono", onFocus: lookAt, onClick: lookAt }, laneName(lane))),
      ...cells.map((text) => h("td", { class: "num" }, text)),
    );
  };
  const note =
    rows.length > MOST_ROWS
      ? h(
          "p",
          { class: "hint" },
          t("The first {MOSTROWS} of {count} are listed; filter to see the others.", {
            MOSTROWS: MOST_ROWS,
            count: formatNumber(rows.length),
          }),
        )
      : null;
  return h(
    "div",
    { class: "sandbox-list" },
    h(
      "table",
      { class: "table table-tight" },
      h("caption", { class: "visually-hidden" }, t("Intervals of all lanes shown, oldest first")),
      h(
        "thead",
        {},
        h("tr", {}, ...[t("What"), t("From"), t("Until"), t("Began by"), t("Ended by")].map((text) => h("th", { scope: "col" }, text))),
      ),
      h("tbody", {}, ...rows.slice(0, MOST_ROWS).map(row)),
    ),
    note,
  );
}
