/**
 * Browser notifications for new alerts: only if the reader asked for them, and only while the
 * page is in the background.
 */

import { t } from "../lib/texts";
import type { Alert } from "../lib/shapes";
import { wantsNotifications } from "../lib/preferences";
import { soundAlert } from "../lib/sound";
import { inSentence, kindName, SEVERITY_NAMES } from "../lib/words";
import { countedToast } from "./shell_view";

export function notifyAlert(alert: Alert): void {
  soundAlert(alert.severity);
  const title = `${SEVERITY_NAMES[alert.severity]}: ${alert.query_name}`;
  const text = [...(alert.entities.length > 0 ? [alert.entities.join(", ")] : []), inSentence(kindName(alert.kind))].join(" · ");
  if (alert.severity === "critical" || alert.severity === "high") {
    const kind = alert.severity === "critical" ? "critical" : "info";
    countedToast(
      "alerts",
      `${title} — ${text}`,
      kind,
      { text: t("Open alert"), href: `/alerts/${alert.id}` },
      { text: t("Open alerts"), href: "/alerts/" },
    );
  }
  if (!wantsNotifications() || !("Notification" in window) || Notification.permission !== "granted" || !document.hidden) return;
  const note = new Notification(title, { body: text, tag: `alert-${alert.id}` });
  note.onclick = () => {
    window.focus();
    location.assign(`/alerts/${alert.id}`);
  };
}
