/** The deliveries of a channel: when, the result and its reason, and a button to retry. */

import { contentWords, delivery, escalationWords, reasonWords, stateOf, type Delivery } from "../data/channel_data";
import type { Channel } from "../lib/shapes";
import { get, page, post } from "../lib/api";
import { button, h, replace } from "../lib/dom";
import { formatMoment } from "../lib/time";
import { anything } from "../lib/parse";
import { openDialog } from "./dialog_view";
import { fail, toast } from "./shell_view";
import { t } from "../lib/texts";

const STATE_NAMES = { sent: t("sent"), waiting: t("waiting"), "given up": t("given up") };
const STATE_BADGES = { sent: "badge-good", waiting: "badge-high", "given up": "badge-critical" };

export async function openDeliveryLog(channel: Channel, zone: string): Promise<void> {
  const place = h("div", { class: "stack" });
  const show = async (): Promise<void> => {
    const found = await get(`channels/${channel.id}/deliveries`, page(delivery));
    const rows = found.results.map((one) => row(one));
    replace(place, rows.length > 0 ? table(rows) : h("p", { class: "muted" }, t("Nothing was sent to this channel yet.")));
  };
  const again = async (one: Delivery): Promise<void> => {
    await post(`channels/${channel.id}/deliveries/${one.id}/retry`, {}, anything);
    toast(t("It is tried again now."), "good");
    await show();
  };
  const row = (one: Delivery): HTMLElement => {
    const state = stateOf(one);
    return h(
      "tr",
      {},
      h("td", { class: "num" }, formatMoment(one.created_at, "ms", zone)),
      h(
        "td",
        {},
        one.alerts.length === 1 && !one.test ? h("a", { href: `/alerts/${one.alerts[0]!}` }, contentWords(one)) : contentWords(one),
        h("div", { class: "small muted" }, escalationWords(one)),
      ),
      h(
        "td",
        {},
        h("span", { class: `badge ${STATE_BADGES[state]}` }, STATE_NAMES[state]),
        h("div", { class: "small muted delivery-reason" }, reasonWords(one)),
        state === "waiting" && one.attempts > 0
          ? h("div", { class: "small faint" }, t("again {nextat}", { nextat: formatMoment(one.next_at, "ms", zone) }))
          : null,
        state === "sent" || one.test ? null : button(t("Try again"), { kind: "button-sm", onClick: () => again(one).catch(fail) }),
      ),
    );
  };
  await show();
  const dialog = openDialog(t("Sent to “{name}”", { name: channel.name }), place);
  dialog.element.classList.add("dialog-wide");
  dialog.foot.append(
    button(t("Look again"), { icon: "refresh-cw", onClick: () => show().catch(fail) }),
    button(t("Close"), { kind: "button-primary", onClick: dialog.close }),
  );
}

function table(rows: readonly HTMLElement[]): HTMLElement {
  const head = [t("When"), t("What"), t("Result")].map((text) => h("th", { scope: "col" }, text));
  return h(
    "div",
    { class: "table-wrap" },
    h("table", { class: "table table-tight" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)),
  );
}
