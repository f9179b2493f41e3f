/** Details of one answer: what, who, when, its events, its alert. */

import { t } from "../lib/texts";
import { post } from "../lib/api";
import { alert as alertParser, type Alert, type Detection, type Feed, type QueryRow, type QueryVersion } from "../lib/shapes";
import { orderedEvidence } from "../data/evidence";
import type { Interval } from "../data/interval";
import { periodsOf, tryAddress } from "../data/period";
import { button, h, icon, iconButton, linkButton, replace } from "../lib/dom";
import { queryColour } from "../lib/colours";
import { formatAgo, formatMoment, formatSpan, parseDuration, zoneName, type TimeUnit, type Zone } from "../lib/time";
import { UNATTENDED } from "../data/desk_view";
import { familyOf } from "../lib/families";
import { kindName, SEVERITY_NAMES, STATE_NAMES, versionWords } from "../lib/words";
import { answersBehind } from "./answers_behind_view";
import { evidenceList } from "./evidence_list_view";
import { evidenceFile } from "./evidence_file";
import { headline, measure, revisionText } from "./interval_words";
import type { GoneQuery } from "./live/model";
import { fail, toast } from "./shell_view";

export { headline };

export interface DrawerContent {
  interval: Interval;
  detections: Detection[];
  query: QueryRow | null;
  /** The specification that gave the answer; null if it is not available. */
  rules: QueryVersion | "coming" | null;
  alert: Alert | null;
  /** Of an answer whose query is not listed. */
  gone: GoneQuery | "coming" | null;
}

export interface DrawerHandlers {
  onClose: () => void;
  onZoom: (interval: Interval) => void;
  onEntity: (entity: string) => void;
  onAlert: (alert: Alert) => void;
}

export class DrawerView {
  readonly element = h("aside", { class: "live-drawer", hidden: true, "aria-label": t("Details") });
  private shown: DrawerContent | null = null;

  constructor(
    private readonly feed: Feed,
    private readonly zone: Zone,
    private readonly handlers: DrawerHandlers,
  ) {}

  private get unit(): TimeUnit {
    return this.feed.time;
  }

  close(): void {
    this.shown = null;
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  get isOpen(): boolean {
    return !this.element.hidden;
  }

  open(content: DrawerContent): void {
    this.shown = content;
    this.element.hidden = false;
    const { interval, query, alert } = content;
    const gone = content.gone === "coming" ? null : content.gone;
    const name = query?.name ?? (gone === null || gone.name === "" ? t("Query {query}", { query: interval.query }) : gone.name);
    replace(
      this.element,
      h(
        "div",
        { class: "drawer-head" },
        h(
          "div",
          { class: "grow" },
          h(
            "div",
            { class: "row small muted" },
            h("span", { class: "swatch", vars: { "--swatch": queryColour(interval.query) } }),
            h("span", { class: "truncate" }, name),
          ),
          h("h2", {}, headline(interval)),
        ),
        iconButton(t("Close details"), "x", { kind: "button-quiet button-sm", onClick: this.handlers.onClose }),
      ),
      h(
        "div",
        { class: "drawer-body" },
        alert ? this.alertSection(alert) : null,
        this.when(content),
        this.who(interval),
        this.evidence(content.detections),
        this.behind(content),
        this.about(content),
      ),
      this.foot(interval, alert),
    );
  }

  /** Updates the alert if it is the one shown. */
  alertChanged(alert: Alert): void {
    if (this.shown?.interval.detections.includes(alert.detection ?? "") === true) this.open({ ...this.shown, alert });
  }

  private when({ interval, query, rules }: DrawerContent): HTMLElement {
    const moment = (t: number): string => formatMoment(t, this.unit, this.zone);
    const zone = this.unit === "ms" ? ` ${zoneName(this.zone)}` : "";
    const rows = interval.isMark
      ? [[t("At"), moment(interval.start) + zone]]
      : [
          [t("From"), moment(interval.start) + zone],
          [t("Until"), interval.end === null ? t("still going") : moment(interval.end) + zone],
          [t("Length"), interval.end === null ? t("still going") : formatSpan(interval.end - interval.start, this.unit)],
        ];
    const measured = measure(interval.value, rules === "coming" ? undefined : (rules ?? query)?.specification, this.feed);
    if (measured !== null) rows.push(measured);
    const { value } = interval;
    const named = familyOf(query?.family)?.moment ?? null;
    if (named !== null && typeof value === "number") rows.push([named, moment(value)]);
    const revision = revisionText(interval, this.unit, this.zone);
    if (revision !== null) rows.push([interval.isRetracted || interval.isCut ? t("State") : t("Changed"), revision]);
    return h(
      "section",
      {},
      h("h3", { class: "section-title" }, t("When")),
      h("dl", { class: "dl num" }, ...rows.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
    );
  }

  private who(interval: Interval): HTMLElement | null {
    if (interval.entities.length === 0) return null;
    const items = [...new Set(interval.entities)].map((entity) =>
      button(entity, { icon: "crosshair", kind: "button-sm", onClick: () => this.handlers.onEntity(entity) }),
    );
    return h("section", {}, h("h3", { class: "section-title" }, t("Who")), h("div", { class: "row row-wrap" }, ...items));
  }

  private evidence(detections: Detection[]): HTMLElement | null {
    const points = orderedEvidence(detections);
    if (points.length === 0) return null;
    return h("section", {}, h("h3", { class: "section-title" }, t("Events that explain it")), evidenceList(points, this.unit, this.zone));
  }

  /** If the query derives from others. */
  private behind({ rules, detections }: DrawerContent): HTMLElement | null {
    const last = detections[detections.length - 1];
    if (rules === "coming" || rules === null || last === undefined || !("derive" in rules.specification)) return null;
    return answersBehind(last.id, this.unit, this.zone);
  }

  private about({ rules, detections, interval, gone }: DrawerContent): HTMLElement {
    const isComing = rules === "coming" || gone === "coming";
    const sentence = isComing ? "" : (rules?.sentence ?? gone?.sentence ?? "");
    const last = detections[detections.length - 1];
    const found = last !== undefined && typeof last.detected_at === "number" ? formatAgo(last.detected_at, Date.now()) : null;
    return h(
      "section",
      {},
      h("h3", { class: "section-title" }, t("Why")),
      isComing
        ? h("div", { class: "skeleton" })
        : h("p", { class: "small muted" }, sentence === "" ? t("The query's own text is not available.") : sentence),
      h(
        "p",
        { class: "small faint" },
        [
          kindName(interval.kind),
          rules === "coming" || rules === null ? null : versionWords(rules),
          found ? t("found {found}", { found }) : null,
          last?.backfill === true ? t("from history") : null,
        ]
          .filter((text) => text !== null)
          .join(" · "),
      ),
      rules === "coming" || rules === null ? null : rulesBehind(interval.query, rules, interval, this.unit),
    );
  }

  private alertSection(alert: Alert): HTMLElement {
    const by =
      alert.state === "acknowledged" && alert.acknowledged_by
        ? t(" by {acknowledgedby}", { acknowledgedby: alert.acknowledged_by })
        : alert.state === "resolved" && alert.resolved_by
          ? t(" by {resolvedby}", { resolvedby: alert.resolved_by })
          : "";
    const isWaiting = UNATTENDED.includes(alert.state);
    const kind = isWaiting ? (alert.severity === "critical" ? "notice-critical" : "notice-high") : "notice-good";
    return h(
      "div",
      { class: `notice ${kind}` },
      icon(isWaiting ? "bell-ring" : "circle-check"),
      h(
        "div",
        { class: "grow" },
        h("strong", {}, t("{SEVERITY_NAMES} alert", { SEVERITY_NAMES: SEVERITY_NAMES[alert.severity] })),
        h("div", {}, `${STATE_NAMES[alert.state]}${by}`),
      ),
    );
  }

  private foot(interval: Interval, alert: Alert | null): HTMLElement {
    const act = (action: "acknowledge" | "resolve") => async (): Promise<void> => {
      if (alert === null) return;
      try {
        const changed = await post(`alerts/${alert.id}/${action}`, { revision: alert.revision }, alertParser);
        this.handlers.onAlert(changed);
        this.alertChanged(changed);
        toast(action === "acknowledge" ? t("Alert acknowledged.") : t("Alert resolved."), "good");
      } catch (error) {
        fail(error);
      }
    };
    return h(
      "div",
      { class: "drawer-foot" },
      alert !== null && (UNATTENDED.includes(alert.state) || alert.state === "assigned")
        ? button(t("Acknowledge"), { icon: "check", kind: "button-primary", onClick: act("acknowledge") })
        : null,
      alert !== null && alert.state !== "resolved" ? button(t("Resolve"), { icon: "check-check", onClick: act("resolve") }) : null,
      evidenceFile(this.feed.name, interval.detections[0]),
      button(t("Show it"), { icon: "locate-fixed", onClick: () => this.handlers.onZoom(interval) }),
      alert !== null ? linkButton(t("Open alert"), `/alerts/${alert.id}`, undefined, "button-quiet") : null,
    );
  }
}

const BEHIND = {
  whole: t("Rules and conditions behind it"),
  beginning: t("Rules behind its beginning"),
  end: t("Rules behind its end"),
} as const;

/**
 * Links to the rules, tried on the period that led to the answer; null for other families, whose
 * answers list their events.
 */
export function rulesBehind(
  query: string,
  { version, specification }: QueryVersion,
  answer: { kind: string; start: number; end: number | null; entities: readonly string[] },
  unit: TimeUnit,
): HTMLElement | null {
  const { family, window } = specification;
  if (familyOf(family)?.detail !== "rules") return null;
  const memory = typeof window === "string" || typeof window === "number" ? parseDuration(window) : null;
  return h(
    "div",
    { class: "row row-wrap rules-behind" },
    ...periodsOf(answer, memory, unit).map(({ about, at, period }) =>
      linkButton(
        BEHIND[about],
        tryAddress(query, period, { what: answer.kind, args: answer.entities, at }, version),
        "layers",
        "button-sm",
      ),
    ),
  );
}
