/**
 * Runs by itself, whether a page is open or not: shows pushed messages, and opens their page when
 * one is clicked. It controls no page: there is none below its own address. It imports nothing,
 * because not every browser supports modules here.
 */

interface Extended extends Event {
  waitUntil(promise: Promise<unknown>): void;
}
interface Pushed extends Extended {
  data: { text(): string } | null;
}
interface Pressed extends Extended {
  notification: Notification & { data: unknown };
}
interface Changed extends Extended {
  oldSubscription?: PushSubscription | null;
  newSubscription?: PushSubscription | null;
}
interface Page {
  url: string;
  focus(): Promise<unknown>;
}
interface Scope {
  addEventListener(type: "push", listener: (event: Pushed) => void): void;
  addEventListener(type: "notificationclick", listener: (event: Pressed) => void): void;
  addEventListener(type: "pushsubscriptionchange", listener: (event: Changed) => void): void;
  registration: ServiceWorkerRegistration;
  location: Location;
  clients: {
    matchAll(options: { type: "window"; includeUncontrolled: true }): Promise<Page[]>;
    openWindow(address: string): Promise<unknown>;
  };
}
interface Message {
  title: string;
  body: string;
  link: string;
  tag: string;
}

const scope = self as unknown as Scope;
const RENEWAL = "/api/v1/channels/push-renewal";
/**
 * In the reader's language, in this script's own address; English in one that
 * was registered without them.
 */
const WORDS = new URLSearchParams(scope.location.search);
const ENDED: Message = {
  title: WORDS.get("ended") ?? "Alerts no longer reach this browser",
  body: WORDS.get("again") ?? "The browser ended its subscription. Open your account and press “Notify this browser”.",
  link: "/account/",
  tag: "push-ended",
};

/**
 * The content of a message; browsers require that each message shows something, so an unreadable
 * one shows a general text.
 */
function read(text: string): Message {
  const usual = { title: "Vedette", body: WORDS.get("news") ?? "There are new alerts.", link: "/alerts/", tag: "alerts" };
  try {
    const message = JSON.parse(text) as Record<string, unknown>;
    const of = (name: keyof Message): string => (typeof message[name] === "string" ? message[name] : usual[name]);
    return { title: of("title"), body: of("body"), link: of("link"), tag: of("tag") };
  } catch {
    return usual;
  }
}

function show(message: Message): Promise<void> {
  // `renotify` is missing in TypeScript's types: a message about the same alert replaces the
  // previous one, and notifies again.
  const options = { body: message.body, tag: message.tag, renotify: true, icon: "/static/icons/favicon.svg", data: message.link };
  return scope.registration.showNotification(message.title, options);
}

/** A page of this site alone; the one that shows it already, if there is one. */
async function open(link: unknown): Promise<void> {
  const address = new URL(typeof link === "string" ? link : "/alerts/", scope.location.origin);
  if (address.origin !== scope.location.origin) return;
  const pages = await scope.clients.matchAll({ type: "window", includeUncontrolled: true });
  const shown = pages.find((page) => page.url === address.href);
  await (shown === undefined ? scope.clients.openWindow(address.href) : shown.focus());
}

/**
 * The server replaces the old subscription by the new one; the old keys prove that it was this
 * browser's. Throws.
 */
async function renew(event: Changed): Promise<void> {
  const old = event.oldSubscription;
  const key = old?.options.applicationServerKey;
  if (!old || !key) throw new Error("the browser does not say which subscription ended");
  const subscribe = (): Promise<PushSubscription> =>
    scope.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const fresh = event.newSubscription ?? (await subscribe());
  const parts = (one: PushSubscription): { url: string; browser_keys: string } => {
    const keys = one.toJSON().keys;
    return { url: one.endpoint, browser_keys: `${keys?.["p256dh"] ?? ""} ${keys?.["auth"] ?? ""}` };
  };
  const body = JSON.stringify({ old: parts(old), ...parts(fresh) });
  const answer = await fetch(RENEWAL, { method: "POST", credentials: "omit", headers: { "Content-Type": "application/json" }, body });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
}

scope.addEventListener("push", (event) => event.waitUntil(show(read(event.data?.text() ?? ""))));
scope.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data));
});
scope.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renew(event).catch(() => show(ENDED))));
