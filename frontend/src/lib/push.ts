/**
 * This browser's subscription to push messages, with the reader's
 * permission, under the server's key.
 */

import { toBytes, toText } from "./base64url";
import { t } from "./texts";

/** The worker imports nothing: its texts are passed in its address. */
const WORDS = new URLSearchParams({
  ended: t("Alerts no longer reach this browser"),
  again: t("The browser ended its subscription. Open your account and press “Notify this browser”."),
  news: t("There are new alerts."),
});
const WORKER = `${import.meta.env.BASE_URL}push_worker.js?${WORDS.toString()}`;

/** Why this browser cannot be notified, as a sentence for the reader. */
export class NoPush extends Error {}

export interface Subscription {
  url: string;
  browser_keys: string;
}

/** Asks for permission, starts the worker and subscribes. `key`: the server's. Throws NoPush. */
export async function subscribe(key: string): Promise<Subscription> {
  if (!("serviceWorker" in navigator) || !("PushManager" in window))
    throw new NoPush(t("This browser accepts no push messages here: they need https, and on an iPhone the page on the home screen."));
  if ((await Notification.requestPermission()) !== "granted")
    throw new NoPush(t("The browser does not allow notifications for this page. Allow them in its site settings first."));
  const registration = await navigator.serviceWorker.register(WORKER);
  await active(registration);
  const known = await registration.pushManager.getSubscription();
  // A subscription under another key of the server would refuse its messages.
  if (known !== null && toText(known.options.applicationServerKey ?? new ArrayBuffer(0)) !== key) await known.unsubscribe();
  try {
    return parts(await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: toBytes(key) }));
  } catch (error) {
    throw new NoPush(t("The browser's push service refused: {reason}", { reason: error instanceof Error ? error.message : String(error) }));
  }
}

/** Ends this browser's subscription, if it has one. */
export async function unsubscribe(): Promise<void> {
  if (!("serviceWorker" in navigator)) return;
  const registration = await navigator.serviceWorker.getRegistration(WORKER);
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
}

/** `serviceWorker.ready` waits for a worker that controls the page: this one controls none. */
async function active(registration: ServiceWorkerRegistration): Promise<void> {
  const worker = registration.installing ?? registration.waiting;
  if (worker === null) return;
  await new Promise<void>((resolve) => {
    const look = (): void => {
      if (worker.state === "activated" || worker.state === "redundant") resolve();
    };
    worker.addEventListener("statechange", look);
    look();
  });
}

function parts(one: PushSubscription): Subscription {
  const written = one.toJSON();
  return { url: one.endpoint, browser_keys: `${written.keys?.["p256dh"] ?? ""} ${written.keys?.["auth"] ?? ""}` };
}

/** "Firefox on Linux", so that its owner can distinguish it from others. */
export function browserName(agent: string): string {
  const names: [RegExp, string][] = [
    [/Edg\//, "Edge"],
    [/OPR\//, "Opera"],
    [/Firefox\//, "Firefox"],
    [/Chrom(e|ium)\//, "Chrome"],
    [/Safari\//, "Safari"],
  ];
  const systems: [RegExp, string][] = [
    [/Android/, "Android"],
    [/iPhone|iPad/, "iOS"],
    [/Windows/, "Windows"],
    [/Mac OS X/, "macOS"],
    [/Linux/, "Linux"],
  ];
  const of = (table: [RegExp, string][], usual: string): string => table.find(([sign]) => sign.test(agent))?.[1] ?? usual;
  return t("{browser} on {system}", { browser: of(names, t("A browser")), system: of(systems, t("this device")) });
}
