/**
 * The reader's visible channels: each can be tested, inspected, edited, given
 * a new secret and removed.
 */

import { addressWords } from "../data/channel_data";
import { timingWords } from "../lib/timing";
import { channel as channelParser, type Channel, type Me } from "../lib/shapes";
import { call, get, getAll, post } from "../lib/api";
import { newSecret, pushKey, reachability, tested } from "../lib/answers";
import { button, empty, h, replace } from "../lib/dom";
import { pushChannel, setPushChannel } from "../lib/preferences";
import { browserName, NoPush, subscribe, unsubscribe } from "../lib/push";
import { formatAgo, formatMoment } from "../lib/time";
import { fromSeverity } from "../lib/words";
import { openChannelForm, showChannelSecret } from "./channel_form_view";
import { openDeliveryLog } from "./delivery_log_view";
import { confirmDanger } from "./dialog_view";
import { fail, toast } from "./shell_view";
import { warningNotice } from "./warning_view";
import { t, tn } from "../lib/texts";

export class ChannelsView {
  readonly element = h("div", { class: "stack" });

  /** `onLoad` is called each time the channels were read, also after one was made or removed. */
  constructor(
    private readonly me: Me,
    private readonly onLoad: () => void,
  ) {}

  async load(): Promise<void> {
    const warned = get("channels/reach", reachability).catch(() => ({ warning: "" }));
    const rows = await getAll("channels/", channelParser);
    this.onLoad();
    const { warning } = await warned;
    const none = empty(
      "webhook",
      t("No channel yet"),
      t("A channel sends alerts: to this browser while no page is open, by e-mail, to a chat, or by a signed webhook."),
    );
    const notice = warning === "" ? null : warningNotice(warning);
    replace(this.element, notice, ...(rows.length > 0 ? rows.map((row) => this.card(row)) : [none]));
  }

  openNew(): void {
    openChannelForm(this.me, null, () => this.load());
  }

  /** Makes this browser a channel of the reader. */
  async notifyHere(): Promise<void> {
    try {
      const { key } = await get("channels/push-key", pushKey);
      if (key === null) throw new NoPush(t("This installation sends no push messages: an operator gives it a key in VEDETTE_PUSH_KEY."));
      const fields = { name: browserName(navigator.userAgent), kind: "push", min_severity: "high", ...(await subscribe(key)) };
      setPushChannel((await post("channels/", fields, channelParser)).id);
      await this.load();
      toast(t("Alerts now come to this browser, also while no page is open."), "good");
    } catch (error) {
      fail(error);
    }
  }

  private card(row: Channel): HTMLElement {
    const enabled = h("input", {
      type: "checkbox",
      checked: row.enabled,
      disabled: !row.editable,
      "aria-label": t("{name} is on", { name: row.name }),
    });
    enabled.addEventListener("change", () => {
      call(`channels/${row.id}/`, { method: "PATCH", body: { enabled: enabled.checked } }).then(
        () => this.load(),
        (error: unknown) => {
          enabled.checked = !enabled.checked;
          fail(error);
        },
      );
    });
    return h(
      "div",
      { class: "channel", role: "group", "aria-label": row.name },
      h(
        "div",
        { class: "grow" },
        h(
          "div",
          { class: "row" },
          h("strong", {}, row.name),
          isHere(row) ? h("span", { class: "badge badge-accent" }, t("This browser")) : null,
          stateBadge(row),
        ),
        h("div", { class: "small muted truncate mono" }, addressWords(row)),
        h("div", { class: "small faint" }, summary(row)),
        row.enabled && row.failures > 0 ? h("div", { class: "small channel-problem" }, problemWords(row, this.me.time_zone)) : null,
        row.editable ? this.actions(row) : null,
      ),
      h("label", { class: "switch" }, enabled, h("span", {})),
    );
  }

  private actions(row: Channel): HTMLElement {
    const quiet = "button-quiet button-sm";
    return h(
      "div",
      { class: "row row-wrap channel-actions" },
      button(t("Test"), { icon: "send", kind: quiet, onClick: () => this.test(row) }),
      button(t("Edit"), { kind: quiet, onClick: () => openChannelForm(this.me, row, () => this.load()) }),
      button(t("What was sent"), { kind: quiet, onClick: () => openDeliveryLog(row, this.me.time_zone).catch(fail) }),
      row.kind === "webhook" ? button(t("New secret"), { kind: quiet, onClick: () => this.rotate(row) }) : null,
      button(t("Remove"), { kind: `${quiet} button-danger`, onClick: () => this.remove(row) }),
    );
  }

  private async test(row: Channel): Promise<void> {
    try {
      const answer = await post(`channels/${row.id}/test`, {}, tested);
      const why = answer.error === "" ? t("status {code}", { code: answer.status ?? t("unknown") }) : answer.error;
      toast(
        answer.ok ? arrivalWords(row, answer.status) : t("“{name}” failed: {why}", { name: row.name, why }),
        answer.ok ? "good" : "critical",
      );
      // The card shows failures and when the last message was sent. A browser may have ended its
      // subscription.
      await this.load();
    } catch (error) {
      fail(error);
    }
  }

  private async rotate(row: Channel): Promise<void> {
    const text = t("Messages carry signatures by the old and the new secret for a day: give the receiver the new one in that time.");
    if (!(await confirmDanger(t("Make a new secret?"), text, t("Make secret")))) return;
    try {
      showChannelSecret((await post(`channels/${row.id}/rotate`, {}, newSecret)).secret);
    } catch (error) {
      fail(error);
    }
  }

  private async remove(row: Channel): Promise<void> {
    if (!(await confirmDanger(t("Remove this channel?"), t("“{name}” gets no more alerts.", { name: row.name }), t("Remove channel"))))
      return;
    try {
      await call(`channels/${row.id}/`, { method: "DELETE" });
      if (isHere(row)) await unsubscribe();
      await this.load();
    } catch (error) {
      fail(error);
    }
  }
}

const isHere = (row: Channel): boolean => row.kind === "push" && row.id === pushChannel();

function stateBadge(row: Channel): HTMLElement | null {
  if (row.disabled_reason !== "") return h("span", { class: "badge badge-critical" }, row.disabled_reason);
  return row.failures > 0 ? h("span", { class: "badge badge-high" }, tn("one failure", "{count} failures", row.failures)) : null;
}

/** Why messages do not arrive, and when the next one is sent. */
function problemWords(row: Channel, zone: string): string {
  if (row.not_before === null || row.not_before <= Date.now()) return row.problem;
  const next = t("next attempt {time}", { time: formatMoment(row.not_before, "ms", zone) });
  return [row.problem, next].filter((words) => words !== "").join(" · ");
}

function arrivalWords(row: Channel, status: number | null): string {
  if (row.kind === "mail") return t("The mail server accepted the test for {recipient}.", { recipient: row.recipient });
  const { name } = row;
  return status === null ? t("“{name}” answered well.", { name }) : t("“{name}” answered {status}.", { name, status });
}

function summary(row: Channel): string {
  const chosen = row.queries.length === 1 ? t("one chosen query") : t("{count} chosen queries", { count: row.queries.length });
  return [
    fromSeverity(row.min_severity),
    row.all_queries ? t("all queries") : chosen,
    row.last_sent_at === null
      ? t("nothing sent yet")
      : t("last sent {lastsentat}", { lastsentat: formatAgo(row.last_sent_at, Date.now()) }),
    row.waiting === 0 ? "" : t("{count} waiting", { count: row.waiting }),
    row.held_back === 0 ? "" : tn("one alert is held back for now", "{count} alerts are held back for now", row.held_back),
    timingWords(row),
  ]
    .filter((text) => text !== "")
    .join(" · ");
}
