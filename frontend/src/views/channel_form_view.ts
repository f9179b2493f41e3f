/** The form of a channel, new or stored. */

import { atOnce } from "../lib/timing";
import { SEVERITIES, type Channel, type Me } from "../lib/shapes";
import { call, post } from "../lib/api";
import { newChannel } from "../lib/answers";
import { button, h } from "../lib/dom";
import { fromSeverity } from "../lib/words";
import { keepEntries, openDialog } from "./dialog_view";
import { changesIn, choice, field, refusedIn } from "./form_parts";
import { TimingFields } from "./timing_fields";
import { showSecret } from "./secret_view";
import { toast } from "./shell_view";
import { t } from "../lib/texts";

const KINDS = [
  ["webhook", t("Signed webhook")],
  ["mail", t("E-mail")],
  ["mqtt", t("MQTT topic")],
  ["kafka", t("Kafka topic")],
  ["apprise", t("Chat, pager or SMS (Apprise)")],
] as const;
/** Created by the browser itself. */
const BROWSER = ["push", t("This or another browser")] as const;
const URL_HINTS: Readonly<Record<string, string>> = {
  webhook: t("Each message is signed according to Standard Webhooks."),
  mqtt: t("As mqtts://user:password@broker.example.org/vedette/alerts: the path is the topic."),
  kafka: t(
    "As kafkas://user:password@broker.example.org:9093/alerts, more brokers after commas. The path is the topic, a message's key its id.",
  ),
  apprise: t(
    "As slack://TokenA/TokenB/TokenC, tgram://BotToken/ChatID, ntfys://ntfy.example.org/topic or another service that docs/api.md lists.",
  ),
};
const KEPT = t("chosen, as now");

/** The secret with which a receiver checks signatures. */
export function showChannelSecret(secret: string): void {
  showSecret(t("The channel's secret"), t("Give it to the receiver, which checks signatures with it. It is shown only once."), secret);
}

export function openChannelForm(me: Me, stored: Channel | null, reload: () => Promise<void>): void {
  const name = h("input", { class: "input", id: "channel-name", placeholder: t("Duty desk"), maxlength: 100, value: stored?.name ?? "" });
  const isBrowser = stored?.kind === "push";
  const kind = choice("channel-kind", isBrowser ? [BROWSER] : KINDS, stored?.kind ?? "webhook");
  kind.disabled = stored !== null;
  const recipient = h("input", {
    class: "input",
    id: "channel-recipient",
    type: "email",
    placeholder: "duty@example.org",
    value: stored?.recipient ?? "",
  });
  const recipientField = field("recipient", t("Recipient"), recipient, t("Each mail has a link that acknowledges alerts in your name."));
  const url = h("input", {
    class: "input",
    id: "channel-url",
    type: "url",
    placeholder: "https://hooks.example.org/alerts",
    value: stored?.url ?? "",
  });
  const urlHint = h("span", {});
  const urlField = field("url", t("Address"), url, urlHint);
  const show = (): void => {
    urlHint.textContent = URL_HINTS[kind.value] ?? "";
    urlField.hidden = kind.value === "mail" || isBrowser;
    recipientField.hidden = kind.value !== "mail";
  };
  kind.addEventListener("change", show);
  show();
  const severities = SEVERITIES.map((one) => [one, fromSeverity(one)] as const);
  const severity = choice("channel-severity", severities, stored?.min_severity ?? "high");
  const isChosen = stored !== null && !stored.all_queries;
  const scope = choice(
    "channel-scope",
    [
      ["all", t("Every query")],
      [isChosen ? KEPT : "chosen", t("Chosen queries: tick it on their forms")],
    ],
    isChosen ? KEPT : "all",
  );
  const rate = h("input", { class: "input", type: "number", id: "channel-rate", min: 1, max: 600, value: stored?.per_minute ?? 30 });
  const timing = new TimingFields("channel", stored ?? atOnce(me.time_zone));
  const dialog = openDialog(
    stored === null ? t("New channel") : t("The channel “{name}”", { name: stored.name }),
    field("name", t("Name"), name),
    field("kind", t("How"), kind),
    urlField,
    recipientField,
    field("min_severity", t("Alerts of"), severity),
    field("all_queries", t("Queries whose alerts it carries"), scope),
    field("per_minute", t("Messages a minute, at most"), rate, t("Alerts beyond that go in one message.")),
    timing.element,
  );
  keepEntries(dialog);
  const body = (): Record<string, unknown> => ({
    name: name.value.trim(),
    ...(stored === null ? { kind: kind.value } : {}),
    ...(isBrowser ? {} : kind.value === "mail" ? { recipient: recipient.value.trim() } : { url: url.value.trim() }),
    min_severity: severity.value,
    per_minute: Number(rate.value),
    ...(scope.value === KEPT ? {} : { all_queries: scope.value === "all" }),
    ...timing.values(),
  });
  const before = body();
  const save = async (): Promise<void> => {
    const made = newChannel(
      await (stored === null
        ? post("channels/", body(), newChannel)
        : call(`channels/${stored.id}/`, { method: "PATCH", body: changesIn(body(), before) })),
    );
    dialog.close();
    toast(stored === null ? t("The channel is on.") : t("The channel is changed."), "good");
    await reload();
    if (made.secret !== "" && kind.value === "webhook") showChannelSecret(made.secret);
  };
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    button(stored === null ? t("Make channel") : t("Save channel"), {
      kind: "button-primary",
      onClick: () => save().catch(refusedIn(dialog)),
    }),
  );
}
