import { LANGUAGES, t } from "../lib/texts";
import { ApiError, call, get, getAll, post } from "../lib/api";
import { button, h, icon, linkButton, replace, type Child } from "../lib/dom";
import { anything } from "../lib/parse";
import { me as meParser, SEVERITIES, token as tokenParser, type Severity, type Token } from "../lib/shapes";
import { quotas } from "../data/quota_data";
import { roleName } from "../data/team_data";
import { madeToken, scopeName, SCOPES } from "../data/token_data";
import { setSoundFrom, setTheme, setWantsNotifications, soundFrom, theme, wantsNotifications, type Theme } from "../lib/preferences";
import { mayOperate, orWhyNot } from "../lib/roles";
import { trySound } from "../lib/sound";
import { formatAgo, formatMoment } from "../lib/time";
import { UNIT_NAMES, UNITS } from "../lib/units";
import { fromSeverity } from "../lib/words";
import { ChannelsView } from "../views/channels_view";
import { confirmDanger, openDialog } from "../views/dialog_view";
import { showFaults } from "../views/faults_view";
import { quotaTable } from "../views/quotas_view";
import { RulesView } from "../views/rules_view";
import { showSecret } from "../views/secret_view";
import { ShiftsView } from "../views/shifts_view";
import { fail, openShell, pageFrame, toast } from "../views/shell_view";

const shell = openShell();
const signOut = h(
  "form",
  { method: "post", action: "/logout/" },
  h("input", {
    type: "hidden",
    name: "csrfmiddlewaretoken",
    value: document.querySelector<HTMLMetaElement>("meta[name=csrf-token]")?.content ?? "",
  }),
  h("button", { type: "submit", class: "button" }, icon("log-out"), t("Log out")),
);
const body = pageFrame(shell.root, t("Account"), [signOut], "page-narrow");

function panel(title: string, text: string, action: Child, id: string, ...content: Child[]): HTMLElement {
  return h(
    "section",
    { class: "panel", id },
    h(
      "div",
      { class: "panel-head" },
      h("div", { class: "grow" }, h("h2", {}, title), text === "" ? null : h("p", { class: "small muted" }, text)),
      action,
    ),
    h("div", { class: "panel-body stack" }, ...content),
  );
}

// ---- Person, theme, notifications

const zones = typeof Intl.supportedValuesOf === "function" ? ["UTC", ...Intl.supportedValuesOf("timeZone")] : ["UTC", shell.me.time_zone];
const zone = h(
  "select",
  { class: "select", id: "zone" },
  ...[...new Set([shell.me.time_zone, ...zones])].map((name) =>
    h("option", { value: name, selected: name === shell.me.time_zone }, name.replaceAll("_", " ")),
  ),
);
zone.addEventListener("change", () => {
  call("me", { method: "PATCH", body: { time_zone: zone.value } }).then((answer) => {
    // The lists and forms of this page have this object.
    Object.assign(shell.me, meParser(answer, "/"));
    toast(t("Times are now shown in that zone."), "good");
    for (const load of [loadTokens, () => channels.load(), () => rules.load(), () => shifts.load()]) load().catch(fail);
  }, fail);
});
const units = h(
  "select",
  { class: "select", id: "units" },
  ...UNITS.map((one) => h("option", { value: one, selected: one === shell.me.units }, UNIT_NAMES[one])),
);
units.addEventListener("change", () => {
  call("me", { method: "PATCH", body: { units: units.value } }).then(
    () => toast(t("Distances and speeds are now shown in those units."), "good"),
    fail,
  );
});
const language = h(
  "select",
  { class: "select", id: "language", "aria-describedby": "language-hint" },
  ...[["", t("The browser's language")] as const, ...LANGUAGES].map(([value, name]) =>
    h("option", { value, selected: value === shell.me.language }, name),
  ),
);
language.addEventListener("change", () => {
  call("me", { method: "PATCH", body: { language: language.value } }).then(() => location.reload(), fail);
});
const themes = (["system", "light", "dark"] as Theme[]).map((one) => {
  const element = h(
    "button",
    { type: "button", "aria-pressed": String(theme() === one) },
    icon({ system: "monitor", light: "sun", dark: "moon" }[one]),
    { system: t("System"), light: t("Light"), dark: t("Dark") }[one],
  );
  element.addEventListener("click", () => {
    setTheme(one);
    for (const other of themes) other.setAttribute("aria-pressed", String(other === element));
  });
  return element;
});
const notify = h("input", {
  type: "checkbox",
  checked: wantsNotifications() && "Notification" in window && Notification.permission === "granted",
});
const sound = h(
  "select",
  { class: "select", id: "sound" },
  h("option", { value: "", selected: soundFrom() === null }, t("None")),
  ...[...SEVERITIES].reverse().map((one) => h("option", { value: one, selected: soundFrom() === one }, fromSeverity(one))),
);
const hear = button(t("Play sound"), { icon: "bell-ring", kind: "button-sm", onClick: () => trySound(chosenSound() ?? "critical") });
const chosenSound = (): Severity | null => SEVERITIES.find((one) => one === sound.value) ?? null;
sound.addEventListener("change", () => setSoundFrom(chosenSound()));
notify.addEventListener("change", () => void askForNotifications());

async function askForNotifications(): Promise<void> {
  if (!notify.checked) {
    setWantsNotifications(false);
    return;
  }
  const answer = "Notification" in window ? await Notification.requestPermission() : "denied";
  setWantsNotifications(answer === "granted");
  notify.checked = answer === "granted";
  if (answer !== "granted")
    toast(t("The browser does not allow notifications for this page. Allow them in its site settings first."), "critical");
}

body.append(
  panel(
    shell.me.name,
    [shell.me.email, ...shell.me.teams.map((team) => t("{role} in {team}", { role: roleName(team.role), team: team.name }))]
      .filter((text) => text !== "")
      .join(" · "),
    button(t("Change password"), { icon: "key-round", kind: "button-sm", onClick: changePassword }),
    "person",
    h(
      "div",
      { class: "setting" },
      h("span", { class: "label" }, t("Appearance")),
      h("div", { class: "segmented", role: "group", "aria-label": t("Appearance") }, ...themes),
    ),
    h(
      "div",
      { class: "setting" },
      h("label", { class: "label", for: "zone" }, t("Time zone")),
      h("div", { class: "setting-control" }, zone),
    ),
    h("div", { class: "setting" }, h("label", { class: "label", for: "units" }, t("Units")), h("div", { class: "setting-control" }, units)),
    h(
      "div",
      { class: "setting" },
      h(
        "span",
        {},
        h("label", { class: "label", for: "language" }, t("Language")),
        h("span", { class: "hint block", id: "language-hint" }, t("Messages come in it too: without a choice, in that of your last page.")),
      ),
      h("div", { class: "setting-control" }, language),
    ),
    h(
      "label",
      { class: "setting" },
      h(
        "span",
        {},
        h("span", { class: "label" }, t("Browser notifications")),
        h("span", { class: "hint block" }, t("For new alerts while Vedette is open but not in the foreground.")),
      ),
      h("span", { class: "switch" }, notify, h("span", {})),
    ),
    h(
      "div",
      { class: "setting" },
      h(
        "span",
        {},
        h("label", { class: "label", for: "sound" }, t("Sound of new alerts")),
        h(
          "span",
          { class: "hint block" },
          t("In this browser, while the alerts or the map are open. A page is silent until you press something in it."),
        ),
      ),
      h("div", { class: "row setting-control" }, sound, hear),
    ),
  ),
);

body.append(
  panel(
    t("How you log in"),
    "",
    null,
    "log-in",
    h(
      "div",
      { class: "row row-wrap" },
      linkButton(t("Second factor and passkeys"), "/account/security/", "shield-check"),
      linkButton(t("Sessions"), "/account/sessions/", "monitor"),
      linkButton(t("Log-in providers"), "/account/providers/", "link"),
    ),
  ),
  panel(
    t("Teams"),
    shell.me.teams.length === 0 ? t("You are in no team.") : "",
    null,
    "teams",
    h("div", { class: "row row-wrap" }, linkButton(shell.me.superuser ? t("Teams and people") : t("Your teams"), "/teams/", "users")),
  ),
);

function changePassword(): void {
  const old = h("input", { class: "input", type: "password", autocomplete: "current-password", id: "old" });
  const fresh = h("input", { class: "input", type: "password", autocomplete: "new-password", id: "fresh" });
  const dialog = openDialog(
    t("Change password"),
    h("div", { class: "field", "data-pointer": "/old" }, h("label", { for: "old" }, t("Current password")), old),
    h(
      "div",
      { class: "field", "data-pointer": "/new" },
      h("label", { for: "fresh" }, t("New password")),
      fresh,
      h("span", { class: "hint" }, t("At least 10 characters.")),
    ),
  );
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    button(t("Change"), {
      kind: "button-primary",
      onClick: () => {
        return post("me/password", { old: old.value, new: fresh.value }, anything).then(
          () => {
            dialog.close();
            toast(t("Your password is changed; other sessions are logged out."), "good");
          },
          (error: unknown) => (error instanceof ApiError && error.status === 400 ? showFaults(dialog.body, error.faults) : fail(error)),
        );
      },
    }),
  );
}

// ---- Quotas

const quotasPlace = h("div", {});
body.append(
  panel(
    t("Quotas"),
    shell.me.superuser
      ? t("You are an administrator: these do not apply to you.")
      : t("How much you may have. An administrator of the server sets it."),
    null,
    "quotas",
    quotasPlace,
  ),
);

function loadQuotas(): void {
  get("me/quotas", quotas).then((rows) => replace(quotasPlace, quotaTable(rows)), fail);
}

// ---- Tokens

const tokensPlace = h("div", { class: "stack" });

function showTokens(rows: readonly Token[]): void {
  if (rows.length === 0) {
    replace(tokensPlace, h("p", { class: "small muted" }, t("No tokens. A program that sends events or reads answers needs one.")));
    return;
  }
  const now = Date.now();
  replace(
    tokensPlace,
    h(
      "div",
      { class: "table-wrap" },
      h(
        "table",
        { class: "table table-tight tokens-table" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...[t("Name"), t("Begins with"), t("May"), t("Last used")].map((text) => h("th", { scope: "col" }, text)),
            h("td", {}),
          ),
        ),
        h(
          "tbody",
          {},
          ...rows.map((row) =>
            h(
              "tr",
              {},
              h("td", {}, row.name),
              h("td", { class: "mono" }, `${row.prefix}…`),
              h(
                "td",
                {},
                row.scopes.map(scopeName).join(", "),
                row.feed === null ? null : h("div", { class: "small faint" }, t("to {feed} alone", { feed: row.feed })),
              ),
              h(
                "td",
                { class: "num" },
                row.last_used_at === null ? t("never") : formatAgo(row.last_used_at, now),
                row.expires_at === null
                  ? ""
                  : h(
                      "div",
                      { class: "small faint" },
                      t("until {expires_at}", { expires_at: formatMoment(row.expires_at, "ms", shell.me.time_zone) }),
                    ),
              ),
              h(
                "td",
                { class: "right" },
                button(t("Revoke"), { kind: "button-quiet button-danger button-sm", onClick: () => revoke(row) }),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

async function loadTokens(): Promise<void> {
  showTokens(await getAll("tokens/", tokenParser));
  loadQuotas();
}

async function revoke(row: Token): Promise<void> {
  if (
    !(await confirmDanger(
      t("Revoke this token?"),
      t("Programs that use “{name}” are refused from now on.", { name: row.name }),
      t("Revoke token"),
    ))
  )
    return;
  try {
    await call(`tokens/${row.id}/`, { method: "DELETE" });
    await loadTokens();
  } catch (error) {
    fail(error);
  }
}

const tokenDays = typeof shell.data["token_days"] === "number" ? shell.data["token_days"] : 365;

/** Lifetimes to choose from, in days, up to the maximum of this server. */
function ages(): number[] {
  return [...new Set([...[7, 30, 90, 365].filter((days) => days < tokenDays), tokenDays])];
}

function newToken(): void {
  const name = h("input", { class: "input", id: "token-name", placeholder: t("gateway in hall 3"), maxlength: 100 });
  const expiry = h(
    "select",
    { class: "select", id: "token-expiry" },
    ...ages().map((days) =>
      h(
        "option",
        { value: days, selected: days === Math.min(90, tokenDays) },
        days === tokenDays ? t("In {days} days, the longest", { days }) : t("In {days} days", { days }),
      ),
    ),
  );
  const feed = h(
    "select",
    { class: "select", id: "token-feed" },
    h("option", { value: "" }, t("Every feed")),
    ...shell.feeds
      .filter((one) => one.editable)
      .map((one) => h("option", { value: one.name }, t("{feed} alone", { feed: one.title === "" ? one.name : one.title }))),
  );
  const boxes = Object.keys(SCOPES).map((scope) => ({ scope, box: h("input", { type: "checkbox", checked: scope === "ingest" }) }));
  const dialog = openDialog(
    t("New token"),
    h("div", { class: "field", "data-pointer": "/name" }, h("label", { for: "token-name" }, t("Name")), name),
    h(
      "fieldset",
      { class: "field", "data-pointer": "/scopes" },
      h("legend", { class: "label" }, t("It may")),
      ...boxes.map(({ scope, box }) => h("label", { class: "check" }, box, h("span", {}, scopeName(scope)))),
    ),
    h(
      "div",
      { class: "field", "data-pointer": "/feed" },
      h("label", { for: "token-feed" }, t("Valid for")),
      feed,
      h("span", { class: "hint" }, t("A token for one feed can only send events to it.")),
    ),
    h("div", { class: "field", "data-pointer": "/expires_at" }, h("label", { for: "token-expiry" }, t("It expires")), expiry),
  );
  // A token for one feed has fixed permissions.
  feed.addEventListener("change", () => {
    for (const { scope, box } of boxes) {
      if (feed.value !== "") box.checked = scope === "ingest";
      box.disabled = feed.value !== "";
    }
  });
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    button(t("Make token"), {
      kind: "button-primary",
      onClick: () => {
        const expires = new Date(Date.now() + Number(expiry.value) * 86_400_000 - 60_000).toISOString();
        const body = {
          name: name.value.trim(),
          scopes: boxes.filter(({ box }) => box.checked).map(({ scope }) => scope),
          feed: feed.value === "" ? null : feed.value,
          expires_at: expires,
        };
        return post("tokens/", body, madeToken).then(
          (made) => {
            dialog.close();
            void loadTokens();
            showSecret(t("Your new token"), t("Copy it now: it is shown only once."), made.token);
          },
          (error: unknown) => (error instanceof ApiError && error.status === 400 ? showFaults(dialog.body, error.faults) : fail(error)),
        );
      },
    }),
  );
}

body.append(
  panel(
    t("Tokens"),
    t("For programs that send events or read answers."),
    button(t("New token"), { icon: "plus", kind: "button-sm", onClick: newToken }),
    "tokens",
    tokensPlace,
  ),
);

// ---- Channels

const ifOperator = (make: HTMLElement): HTMLElement | null => (mayOperate(shell.me) ? make : null);
const channels = new ChannelsView(shell.me, loadQuotas);
const here = button(t("Notify this browser"), { icon: "bell-ring", kind: "button-sm", onClick: () => channels.notifyHere() });
body.append(
  panel(
    t("Channels"),
    orWhyNot(shell.me, t("Where alerts are sent in addition to this page.")),
    h(
      "div",
      { class: "row row-wrap" },
      here,
      ifOperator(button(t("New channel"), { icon: "plus", kind: "button-sm", onClick: () => channels.openNew() })),
    ),
    "channels",
    channels.element,
  ),
);

// ---- Rules

const rules = new RulesView(
  shell.me,
  shell.feeds.map((one) => one.name),
);
body.append(
  panel(
    t("Rules"),
    orWhyNot(shell.me, t("Which alerts go to which channels, in addition to those that a channel subscribes to.")),
    h(
      "div",
      { class: "row" },
      button(t("The last day"), { icon: "history", kind: "button-sm", onClick: () => rules.openDryRun() }),
      ifOperator(button(t("New rule"), { icon: "plus", kind: "button-sm", onClick: () => rules.openNew() })),
    ),
    "rules",
    rules.element,
  ),
);

// ---- Shifts

const shifts = new ShiftsView(shell.me);
body.append(
  panel(
    t("Shifts"),
    orWhyNot(shell.me, t("Who is on call when. Rules can send to a shift: to the personal channels of the people on call.")),
    ifOperator(button(t("New shift"), { icon: "plus", kind: "button-sm", onClick: () => shifts.openForm() })),
    "shifts",
    shifts.element,
  ),
);
shifts.load().catch(fail);
rules.load().catch(fail);
loadTokens().catch(fail);
channels.load().catch(fail);
