/** One alert with its evidence: small map, events, comments, deliveries. */

import { get, post } from "../lib/api";
import { button, h, icon, iconButton, linkButton, replace } from "../lib/dom";
import { query as address } from "../lib/api";
import { alert as alertParser, alertDetail, comment as commentParser, queryVersion, type Alert, type AlertDetail, type Feed, type QueryVersion } from "../data/shapes";
import { around, asGeometry, bounds, type Box } from "../lib/regions";
import { queryColour } from "../lib/colours";
import { orderedEvidence, type EvidencePoint } from "../data/evidence";
import { formatAgo, formatClock, formatMoment, formatSpan, zoneName, type Zone } from "../lib/time";
import { answerTitle, SEVERITY_NAMES, STATE_NAMES, versionWords } from "../lib/words";
import { answersBehind } from "./answers_behind_view";
import { rulesBehind } from "./drawer_view";
import { evidenceList } from "./evidence_list_view";
import { openMap, type FeedMap } from "./map_view";
import { fail } from "./shell_view";

export class AlertDetailView {
  readonly element = h("section", { class: "panel alert-detail", "aria-label": "Alert" });
  private feedMap: FeedMap | null = null;
  private shown: string | null = null;

  constructor(
    private readonly zone: Zone,
    private readonly feedOf: (name: string) => Feed | undefined,
    private readonly onChanged: (alert: Alert) => void,
    private readonly onClose: () => void,
  ) {}

  close(): void {
    this.shown = null;
    this.feedMap?.remove();
    this.feedMap = null;
    this.element.replaceChildren();
  }

  async open(alert: Alert): Promise<void> {
    this.close();
    this.shown = alert.id;
    replace(this.element, this.head(alert), h("div", { class: "panel-body stack" }, h("div", { class: "skeleton alert-map" }), h("div", { class: "skeleton" }), h("div", { class: "skeleton" })));
    try {
      const detail = await get(`alerts/${alert.id}/`, alertDetail);
      // A removed query has no page to try its rules on.
      const rules = await get(`queries/${alert.query}/versions/${detail.version}`, queryVersion).catch(() => null);
      if (this.shown === alert.id) this.show(alert, detail, rules);
    } catch (error) {
      fail(error);
    }
  }

  private head(alert: Alert): HTMLElement {
    return h(
      "div",
      { class: "panel-head alert-head" },
      h("div", { class: "grow" }, h("div", { class: "row small" }, h("span", { class: `badge badge-dot badge-${alert.severity}` }, SEVERITY_NAMES[alert.severity]), h("span", { class: "muted" }, STATE_NAMES[alert.state], alert.acknowledged_by && alert.state !== "new" ? ` by ${alert.acknowledged_by}` : "")), h("h2", { class: "alert-title" }, answerTitle(alert.entities, alert.kind)), h("a", { href: `/queries/${alert.query}`, class: "small" }, alert.query_name)),
      iconButton("Close", "x", { kind: "button-quiet button-sm", onClick: this.onClose }),
    );
  }

  private show(alert: Alert, detail: AlertDetail, rules: QueryVersion | null): void {
    const feed = this.feedOf(alert.feed);
    const unit = feed?.time ?? "ms";
    const map = h("div", { class: "alert-map" });
    const end = alert.end ?? detail.evidence.closing?.start ?? null;
    const events = orderedEvidence([detail.evidence.detection, detail.evidence.closing].filter((row) => row !== null));
    const zone = unit === "ms" ? ` ${zoneName(this.zone)}` : "";
    replace(
      this.element,
      this.head(alert),
      h(
        "div",
        { class: "panel-body stack-lg" },
        map,
        h(
          "dl",
          { class: "dl num" },
          h("dt", {}, "From"), h("dd", {}, formatMoment(alert.start, unit, this.zone) + zone),
          ...(end === null ? [h("dt", {}, "Until"), h("dd", {}, "still going")] : end === alert.start ? [] : [h("dt", {}, "Until"), h("dd", {}, `${formatMoment(end, unit, this.zone)} (${formatSpan(end - alert.start, unit)})`)]),
          h("dt", {}, "Opened"), h("dd", {}, formatAgo(alert.opened_at, Date.now())),
        ),
        detail.sentence === "" ? null : h("div", {}, h("h3", { class: "section-title" }, "Why"), h("p", { class: "small muted" }, detail.sentence), rules === null ? null : h("p", { class: "small faint" }, `By ${versionWords(rules)}`)),
        rules === null ? null : rulesBehind(alert.query, rules, { kind: alert.kind, start: alert.start, end, entities: alert.entities }, unit),
        events.length === 0 ? null : h("div", {}, h("h3", { class: "section-title" }, "Events that explain it"), evidenceList(events, unit, this.zone)),
        alert.detection === null || rules === null || !("derive" in rules.specification) ? null : answersBehind(alert.detection, unit, this.zone),
        this.comments(alert, detail),
        this.deliveries(detail),
      ),
      this.foot(alert),
    );
    if (feed !== undefined) this.drawMap(map, feed, alert, detail, events);
    else map.remove();
  }

  private drawMap(place: HTMLElement, feed: Feed, alert: Alert, detail: AlertDetail, events: EvidencePoint[]): void {
    this.feedMap = openMap(place, feed, { isSmall: true });
    const colour = queryColour(alert.query);
    const geometries = detail.shapes.flatMap((value) => asGeometry(value) ?? []);
    this.feedMap.regions.set(geometries.map((geometry, i) => ({ id: String(i), name: "", geometry, colour })));
    const isOne = alert.entities.length < 2;
    this.feedMap.tracks.explain(
      detail.evidence.tracks.map((track) => ({ track, colour, from: alert.start, to: alert.end, ...(isOne ? {} : { label: track.entity }) })),
      events,
      ({ variable, t }) => [variable, formatClock(t, feed.time, this.zone)].filter((text) => text !== "").join(" · "),
    );
    const { near } = this.feedMap;
    const within = detail.evidence.tracks.flatMap((track) => track.points.filter(([t]) => t >= alert.start && t <= (alert.end ?? Infinity)).map(([, x, y]): [number, number] => [near(x), y]));
    const box = around([...events.flatMap(({ x, y }): [number, number][] => (x === null || y === null ? [] : [[near(x), y]])), ...within]);
    if (box === null) return;
    // The region that it happened at says where that is.
    const regions = geometries.map((geometry) => bounds(geometry, feed.crs === "geographic")).filter((region) => region !== null && touch(region, box)) as Box[];
    this.feedMap.fit(around([box, ...regions].flatMap(([w, s, e, n]): [number, number][] => [[near(w), s], [near(e), n]])) ?? box);
  }

  private comments(alert: Alert, detail: AlertDetail): HTMLElement {
    const items = h("ul", { class: "comments" }, ...detail.comments.map((one) => h("li", {}, h("div", { class: "row small" }, h("strong", {}, one.author), h("span", { class: "faint" }, formatAgo(one.at, Date.now()))), h("p", {}, one.text))));
    const field = h("textarea", { class: "textarea", rows: 2, placeholder: "Add a comment", "aria-label": "Comment", maxlength: 4000 });
    const send = button("Comment", {
      kind: "button-sm",
      icon: "send",
      onClick: () => {
        if (field.value.trim() === "") return;
        post(`alerts/${alert.id}/comments`, { text: field.value.trim() }, commentParser).then((one) => {
          items.append(h("li", {}, h("div", { class: "row small" }, h("strong", {}, one.author), h("span", { class: "faint" }, "just now")), h("p", {}, one.text)));
          field.value = "";
        }, fail);
      },
    });
    return h("div", {}, h("h3", { class: "section-title" }, "Comments"), items, h("div", { class: "stack comment-form" }, field, h("div", {}, send)));
  }

  private deliveries(detail: AlertDetail): HTMLElement | null {
    if (detail.deliveries.length === 0) return null;
    return h("div", {}, h("h3", { class: "section-title" }, "Sent to"), h("ul", { class: "stack" }, ...detail.deliveries.map((one) => h("li", { class: "row small" }, icon(one.sent_at === null ? "clock" : "check"), h("span", {}, typeof one.channel === "string" ? one.channel : "channel"), h("span", { class: "faint" }, one.sent_at === null ? (one.error === "" ? "waiting" : one.error) : formatAgo(one.sent_at, Date.now()))))));
  }

  private foot(alert: Alert): HTMLElement {
    const act = (action: "acknowledge" | "resolve"): void => {
      post(`alerts/${alert.id}/${action}`, {}, alertParser).then((changed) => {
        this.onChanged(changed);
        void this.open(changed);
      }, fail);
    };
    return h(
      "div",
      { class: "drawer-foot" },
      alert.state === "new" ? button("Acknowledge", { icon: "check", kind: "button-primary", disabled: !alert.editable, onClick: () => act("acknowledge") }) : null,
      alert.state !== "resolved" ? button("Resolve", { icon: "check-check", disabled: !alert.editable, onClick: () => act("resolve") }) : null,
      alert.detection === null ? null : linkButton("Show on the live view", address("/", { feed: alert.feed, detection: alert.detection }), "map"),
    );
  }
}

function touch(a: Box, b: Box): boolean {
  return a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3];
}
