/** One alert with its evidence: small map, events, comments, deliveries. */

import { t } from "../lib/texts";
import { ApiError, get, post } from "../lib/api";
import { age } from "../lib/ages";
import { button, h, icon, iconButton, linkButton, replace } from "../lib/dom";
import { query as address } from "../lib/api";
import {
  alert as alertParser,
  alertDetail,
  alertStep,
  queryVersion,
  type Alert,
  type AlertDetail,
  type AlertStep,
  type Feed,
  type Me,
  type QueryVersion,
} from "../lib/shapes";
import { onceAtATime } from "../lib/presses";
import { escalatedWords } from "../data/channel_data";
import { hasPlaces, orderedEvidence } from "../data/evidence";
import { formatAgo, formatMoment, formatSpan, zoneName, type Zone } from "../lib/time";
import { answerTitle, SEVERITY_NAMES, STATE_NAMES, STEP_NAMES, versionWords } from "../lib/words";
import { answersBehind } from "./answers_behind_view";
import { rulesBehind } from "./drawer_view";
import { feedbackForm } from "./alert_feedback_view";
import type { ShownAnswer } from "./alert_map_view";
import { evidenceList } from "./evidence_list_view";
import { measure } from "./interval_words";
import { attachMenu, type MenuItem } from "./menu_view";
import { openMute } from "./mutes_view";
import { evidenceFile } from "./evidence_file";
import { fail } from "./shell_view";

/** Loaded when an alert is opened: the map is most of what the page would load. */
const mapView = (): Promise<typeof import("./alert_map_view")> => import("./alert_map_view");

export class AlertDetailView {
  readonly element = h("section", { class: "panel alert-detail", "aria-label": t("Alert"), tabindex: -1 });
  /** The open alert as the page knows it now. */
  private shown: Alert | null = null;
  /**
   * Drops responses about an alert that was closed or loaded again. Updates of the same state do
   * not.
   */
  private loads = 0;
  private readonly zone: Zone;
  private readonly field = h("textarea", {
    class: "textarea",
    rows: 2,
    placeholder: t("Add a comment"),
    "aria-label": t("Comment"),
    maxlength: 4000,
  });
  /** Comments that were begun and neither sent nor emptied, by alert. */
  private readonly begun = new Map<string, string>();
  private closeMap: (() => void) | null = null;
  private readonly once = onceAtATime();
  /** The reader's last decision; null in it: it was refused. */
  private decided: { id: string; answer: Promise<Alert | null> } | null = null;

  constructor(
    private readonly me: Me,
    private readonly feedOf: (name: string) => Feed | undefined,
    private readonly onChanged: (alert: Alert) => void,
    private readonly onClose: () => void,
  ) {
    this.zone = me.time_zone;
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.element.focus();
    });
    window.addEventListener("beforeunload", (event) => {
      const isBegun = [...this.begun].some(([id, text]) => id !== this.shown?.id && text.trim() !== "");
      if (isBegun || (this.shown !== null && this.field.value.trim() !== "")) event.preventDefault();
    });
  }

  focusComment(): void {
    this.field.focus();
    // The buttons cover the end of the panel.
    this.field.scrollIntoView({ block: "center" });
  }

  /** Performs a step on the alert as shown; the text in the comment field is sent with it. */
  decide(alert: Alert, action: "acknowledge" | "resolve" | "reopen" | "assign", assignee?: string): Promise<void> {
    if (!alert.editable) {
      fail(new Error(t("You may see this alert but not handle it.")));
      return Promise.resolve();
    }
    const comment = this.shown?.id === alert.id ? this.field.value.trim() : "";
    const body = { comment, ...(assignee === undefined ? {} : { assignee }) };
    // A key pressed twice is one decision, as is a key together with a button.
    return this.once(`${alert.id}/${action}/${assignee ?? ""}`, async () => {
      const before = this.decided?.id === alert.id ? this.decided.answer : Promise.resolve(null);
      this.decided = { id: alert.id, answer: before.then((changed) => this.send(alert, action, body, changed)) };
      await this.decided.answer;
    });
  }

  /** `before`: what the reader's last decision made of the alert, whose buttons may be older. */
  private async send(alert: Alert, action: string, body: object, before: Alert | null): Promise<Alert | null> {
    const revision = Math.max(alert.revision, before?.revision ?? 0);
    try {
      const changed = await post(`alerts/${alert.id}/${action}`, { ...body, revision }, alertParser);
      this.sent(changed.id);
      this.become(changed);
      return changed;
    } catch (error) {
      fail(error);
      // Another user decided before: the reader sees their change before deciding again.
      if (error instanceof ApiError && error.status === 409) this.refresh(alert);
      return null;
    }
  }

  /** The current alert on the server. */
  private refresh(alert: Alert): void {
    get(`alerts/${alert.id}/`, alertParser).then((present) => this.become(present), fail);
  }

  private become(alert: Alert): void {
    this.onChanged(alert);
    if (this.shown?.id === alert.id) void this.load(alert);
  }

  /**
   * An update of an alert: if it is open, and someone decided or its answer ended, it is shown
   * again. Text that the reader typed stays.
   */
  changed(alert: Alert): void {
    const before = this.shown;
    if (before?.id !== alert.id) return;
    // As when its query is removed: there is nothing left to decide.
    const isClosed = before.state !== alert.state && alert.state === "resolved";
    if (before.revision !== alert.revision || before.over_at !== alert.over_at || isClosed) void this.load(alert);
    else this.hold(alert);
  }

  /** The reader's decisions are about this state of the open alert. */
  private hold(alert: Alert): void {
    this.shown = alert;
    const words = this.element.querySelector(".alert-state");
    if (words !== null) words.textContent = stateWords(alert);
  }

  close(): void {
    if (this.shown !== null) this.begun.set(this.shown.id, this.field.value);
    this.shown = null;
    this.loads += 1;
    this.closeMap?.();
    this.closeMap = null;
    this.element.replaceChildren();
  }

  async open(alert: Alert): Promise<void> {
    this.close();
    this.field.value = this.begun.get(alert.id) ?? "";
    replace(
      this.element,
      this.head(alert),
      h(
        "div",
        { class: "panel-body stack" },
        h("div", { class: "skeleton alert-map" }),
        h("div", { class: "skeleton" }),
        h("div", { class: "skeleton" }),
      ),
    );
    // By keyboard, the focus moves to the alert's actions, because the row may be drawn again.
    this.element.focus({ preventScroll: true });
    mapView().catch(() => {
      // The request below reports that the server cannot be reached.
    });
    await this.load(alert);
  }

  private async load(alert: Alert): Promise<void> {
    this.hold(alert);
    const turn = ++this.loads;
    try {
      const detail = await get(`alerts/${alert.id}/`, alertDetail);
      // A removed query has no page on which its rules could be tried.
      const rules = detail.removed ? null : await get(`queries/${alert.query}/versions/${detail.version}`, queryVersion).catch(() => null);
      if (turn !== this.loads) return;
      this.show(alert, detail, rules);
      // Opening an alert is a step too: others see it.
      if (alert.state === "new" && alert.editable) {
        const seen = await post(`alerts/${alert.id}/seen`, {}, alertParser);
        this.onChanged(seen);
        if (turn === this.loads) this.hold(seen);
      }
    } catch (error) {
      fail(error);
      const waiting = this.element.querySelector(".panel-body:has(.skeleton)");
      if (waiting !== null && turn === this.loads)
        replace(waiting, h("div", {}, button(t("Try again"), { onClick: () => this.open(alert) })));
    }
  }

  /** Replaces what is shown; the focus stays inside if it was. */
  private fill(...parts: HTMLElement[]): void {
    const isInside = this.element.contains(document.activeElement);
    this.closeMap?.();
    this.closeMap = null;
    replace(this.element, ...parts);
    if (isInside && !this.element.contains(document.activeElement)) this.element.focus({ preventScroll: true });
  }

  private head(alert: Alert, hasPage = false): HTMLElement {
    return h(
      "div",
      { class: "panel-head alert-head" },
      h(
        "div",
        { class: "grow" },
        h(
          "div",
          { class: "row small" },
          h("span", { class: `badge badge-dot badge-${alert.severity}` }, SEVERITY_NAMES[alert.severity]),
          h("span", { class: "muted alert-state" }, stateWords(alert)),
        ),
        h("h2", { class: "alert-title" }, answerTitle(alert.entities, alert.kind)),
        hasPage
          ? h("a", { href: `/queries/${alert.query}`, class: "small" }, alert.query_name)
          : h("span", { class: "small" }, alert.query_name),
      ),
      iconButton(t("Close"), "x", { kind: "button-quiet button-sm", onClick: this.onClose }),
    );
  }

  private show(alert: Alert, detail: AlertDetail, rules: QueryVersion | null): void {
    const feed = this.feedOf(alert.feed);
    const unit = feed?.time ?? "ms";
    const map = h("div", { class: "alert-map" });
    const end = alert.end ?? detail.evidence.closing?.start ?? null;
    const events = orderedEvidence([detail.evidence.detection, detail.evidence.closing].filter((row) => row !== null));
    const zone = unit === "ms" ? ` ${zoneName(this.zone)}` : "";
    const measured =
      feed === undefined ? null : measure((detail.evidence.closing ?? detail.evidence.detection)?.value, rules?.specification, feed);
    this.fill(
      this.head(alert, !detail.removed),
      h(
        "div",
        { class: "panel-body stack-lg" },
        map,
        h(
          "dl",
          { class: "dl num" },
          h("dt", {}, t("Opened")),
          h("dd", {}, `${formatMoment(alert.opened_at, "ms", this.zone)} ${zoneName(this.zone)} (`, age(alert.opened_at), ")"),
          h("dt", {}, t("From")),
          h("dd", {}, formatMoment(alert.start, unit, this.zone) + zone),
          ...(end === null
            ? [h("dt", {}, t("Until")), h("dd", {}, t("still going"))]
            : end === alert.start
              ? []
              : [h("dt", {}, t("Until")), h("dd", {}, `${formatMoment(end, unit, this.zone)} (${formatSpan(end - alert.start, unit)})`)]),
          ...(measured === null ? [] : [h("dt", {}, measured[0]), h("dd", {}, measured[1])]),
        ),
        detail.mute === null ? null : h("p", { class: "notice small" }, icon("bell-off"), mutedText(detail.mute, this.zone)),
        detail.sentence === ""
          ? null
          : h(
              "div",
              {},
              h("h3", { class: "section-title" }, t("Why")),
              h("p", { class: "small muted" }, detail.sentence),
              rules === null ? null : h("p", { class: "small faint" }, t("By {rules}", { rules: versionWords(rules) })),
            ),
        rules === null
          ? null
          : rulesBehind(alert.query, rules, { kind: alert.kind, start: alert.start, end, entities: alert.entities }, unit),
        events.length === 0
          ? null
          : h("div", {}, h("h3", { class: "section-title" }, t("Events that explain it")), evidenceList(events, unit, this.zone)),
        alert.detection === null || rules === null || !("derive" in rules.specification)
          ? null
          : answersBehind(alert.detection, unit, this.zone),
        this.steps(alert, detail),
        feedbackForm(alert, detail.feedback, this.me.name, () => this.load(this.shown?.id === alert.id ? this.shown : alert)),
        this.deliveries(alert, detail),
      ),
      this.foot(alert, detail),
    );
    if (feed === undefined || !hasPlaces(detail, events)) map.remove();
    else this.drawMap(map, { feed, alert, detail, events, specification: rules?.specification }).catch(fail);
  }

  private async drawMap(place: HTMLElement, shown: ShownAnswer): Promise<void> {
    const { openAlertMap } = await mapView();
    if (!place.isConnected) return;
    this.closeMap = openAlertMap(place, shown, this.zone);
  }

  private steps(alert: Alert, detail: AlertDetail): HTMLElement {
    const items = h("ol", { class: "steps" }, ...detail.steps.map((one) => this.step(one)));
    const send = button(t("Comment"), {
      kind: "button-sm",
      icon: "send",
      disabled: !alert.editable,
      onClick: () => {
        if (this.field.value.trim() === "") return undefined;
        return post(`alerts/${alert.id}/comments`, { text: this.field.value.trim() }, alertStep).then((one) => {
          items.append(this.step(one));
          this.sent(alert.id);
        }, fail);
      },
    });
    return h(
      "div",
      {},
      h("h3", { class: "section-title" }, t("What happened")),
      items,
      h(
        "div",
        { class: "stack comment-form" },
        this.field,
        h(
          "div",
          { class: "row" },
          send,
          h("span", { class: "small faint" }, t("or write it and then decide: it is sent with the decision")),
        ),
      ),
    );
  }

  /** The comment on this alert is stored; one on another alert may be begun. */
  private sent(id: string): void {
    this.begun.delete(id);
    if (this.shown?.id === id) this.field.value = "";
  }

  private step(one: AlertStep): HTMLElement {
    const what = STEP_NAMES[one.action] ?? one.action;
    const words = one.author === null ? what : `${what}${one.action === "assigned" ? ` ${one.assignee ?? t("someone")}` : ""}`;
    return h(
      "li",
      {},
      h(
        "div",
        { class: "row small" },
        one.author === null ? null : h("strong", {}, one.author),
        h("span", {}, words),
        h("span", { class: "faint", title: formatMoment(one.at, "ms", this.zone) }, age(one.at)),
      ),
      one.text === "" ? null : h("p", {}, one.text),
    );
  }

  private deliveries(alert: Alert, detail: AlertDetail): HTMLElement | null {
    if (detail.deliveries.length === 0) return null;
    return h(
      "div",
      {},
      h("h3", { class: "section-title" }, t("Sent to")),
      h(
        "ul",
        { class: "stack" },
        ...detail.deliveries.map((one) =>
          h(
            "li",
            { class: "row small" },
            icon(one.sent_at === null ? "clock" : "check"),
            h("span", {}, one.channel),
            h("span", { class: "faint" }, this.deliveryWords(alert, one)),
            one.after_minutes > 0 && one.due_at === null ? h("span", { class: "faint" }, escalatedWords(one.after_minutes)) : null,
          ),
        ),
      ),
    );
  }

  private deliveryWords(alert: Alert, one: AlertDetail["deliveries"][number]): string {
    if (one.sent_at !== null) return formatAgo(one.sent_at, Date.now());
    if (one.error !== "") return one.error;
    if (one.due_at === null || one.due_at <= Date.now()) return t("waiting");
    if (alert.muted) return t("not while the alert is muted");
    const time = `${formatMoment(one.due_at, "ms", this.zone)} ${zoneName(this.zone)}`;
    return one.after_minutes > 0 ? t("at {time}, if nobody acknowledges it before", { time }) : t("waiting until {time}", { time });
  }

  /** Those who may handle the alert; if it is the reader alone, also where to invite others. */
  private assignees(alert: Alert, handlers: readonly string[]): MenuItem[] {
    const people = handlers.map((name) => ({
      content: [h("span", {}, name === this.me.name ? t("{name} (you)", { name }) : name)],
      isCurrent: name === alert.assignee,
      onPick: () => void this.decide(alert, "assign", name),
    }));
    const isAlone = handlers.every((name) => name === this.me.name);
    const invite = { content: [icon("user-plus"), h("span", {}, t("Invite colleagues…"))], onPick: () => location.assign("/teams/") };
    return isAlone ? [...people, invite] : people;
  }

  private foot(alert: Alert, detail: AlertDetail): HTMLElement {
    const isOff = !alert.editable;
    const give = button(alert.assignee === null ? t("Assign to…") : t("Assigned to {assignee}", { assignee: alert.assignee }), {
      icon: "users",
      kind: "assign",
      disabled: isOff,
    });
    // A menu, not a list: in a list each press of an arrow key would assign it.
    attachMenu(give, () => this.assignees(alert, detail.handlers));
    const isOpen = alert.state !== "resolved";
    return h(
      "div",
      { class: "drawer-foot" },
      isOpen && alert.state !== "acknowledged"
        ? button(t("Acknowledge"), {
            icon: "check",
            kind: "button-primary",
            disabled: isOff,
            onClick: () => this.decide(alert, "acknowledge"),
          })
        : null,
      isOpen
        ? button(t("Resolve"), { icon: "check-check", disabled: isOff, onClick: () => this.decide(alert, "resolve") })
        : button(t("Reopen"), { icon: "rotate-ccw", disabled: isOff, onClick: () => this.decide(alert, "reopen") }),
      isOpen ? give : null,
      isOpen && !isOff && !alert.muted
        ? iconButton(t("Mute…"), "bell-off", { onClick: () => openMute(alert, this.me, () => this.refresh(alert)) })
        : null,
      alert.detection === null
        ? null
        : linkButton(t("Show on the live view"), address("/", { feed: alert.feed, detection: alert.detection }), "map"),
      evidenceFile(alert.feed, alert.detection),
    );
  }
}

/** "Assigned to ben", "Seen, ended by itself". */
function stateWords(alert: Alert): string {
  const who =
    alert.state === "assigned"
      ? t(" to {assignee}", { assignee: alert.assignee ?? t("someone") })
      : alert.state === "acknowledged" && alert.acknowledged_by !== null
        ? t(" by {acknowledgedby}", { acknowledgedby: alert.acknowledged_by })
        : alert.state === "resolved" && alert.resolved_by !== null
          ? t(" by {resolvedby}", { resolvedby: alert.resolved_by })
          : "";
  return `${STATE_NAMES[alert.state]}${who}${alert.over_at !== null && alert.state !== "resolved" ? t(", ended by itself") : ""}`;
}

/** Who muted it, until when and why. */
function mutedText({ by, until, reason }: NonNullable<AlertDetail["mute"]>, zone: Zone): string {
  if (until === null) return t("Muted by {by}: {reason}", { by, reason });
  return t("Muted by {by} until {until}: {reason}", { by, until: `${formatMoment(until, "ms", zone)} ${zoneName(zone)}`, reason });
}
