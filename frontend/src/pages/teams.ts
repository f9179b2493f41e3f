import { ApiError, call, get, post } from "../lib/api";
import { newInvitation, transferred } from "../lib/answers";
import {
  countsText,
  person as personParser,
  ROLE_WORDS,
  ROLE_NAMES,
  ROLES,
  team as teamParser,
  type Invitation,
  type Member,
  type Person,
  type Team,
} from "../data/team_data";
import { button, empty, h, icon, replace, type Child } from "../lib/dom";
import { list } from "../lib/parse";
import { formatAgo, formatDate } from "../lib/time";
import { confirmDanger, openDialog, type Dialog } from "../views/dialog_view";
import { showFaults } from "../views/faults_view";
import { openQuotas } from "../views/quotas_view";
import { fail, openShell, pageFrame, toast } from "../views/shell_view";
import { copyRow } from "../views/secret_view";
import { t } from "../lib/texts";

const shell = openShell();
const isAdministrator = shell.me.superuser;
const body = pageFrame(
  shell.root,
  t("Teams"),
  isAdministrator ? [button(t("New team"), { icon: "plus", onClick: newTeam })] : [],
  "page-narrow",
);
const teamsPlace = h("div", { class: "stack-lg" });
const peoplePlace = h("div", {});
body.append(teamsPlace, peoplePlace);

/** Faults of input are shown in the dialog; all others as a short message. */
function refuse(dialog: Dialog): (error: unknown) => void {
  return (error) => (error instanceof ApiError && error.status === 400 ? showFaults(dialog.body, error.faults) : fail(error));
}

/** Performs the action, reports it, and loads everything again, because roles decide about further
 * actions. */
async function act(work: Promise<unknown>, done: string): Promise<void> {
  try {
    await work;
    toast(done, "good");
  } catch (error) {
    fail(error);
  }
  await load();
}

function choice<T extends string>(label: string, options: readonly (readonly [T, string])[], chosen: T): HTMLSelectElement {
  return h(
    "select",
    { class: "select", "aria-label": label },
    ...options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
  );
}

// ---- One team

function teamPanel(team: Team): HTMLElement {
  const actions = [
    button(t("Quotas"), {
      kind: "button-sm",
      "aria-label": t("Quotas of {name}", { name: team.name }),
      onClick: () => openQuotas(t("Quotas of {name}", { name: team.name }), `teams/${team.id}/quotas`, isAdministrator),
    }),
    team.manageable
      ? button(t("Invite"), {
          icon: "plus",
          kind: "button-sm",
          "aria-label": t("Invite someone to {name}", { name: team.name }),
          onClick: () => invite(team),
        })
      : null,
    isAdministrator
      ? button(t("Remove team"), {
          kind: "button-quiet button-danger button-sm",
          "aria-label": t("Remove team {name}", { name: team.name }),
          onClick: () => removeTeam(team),
        })
      : null,
  ];
  return h(
    "section",
    { class: "panel", "aria-label": team.name },
    h("div", { class: "panel-head" }, h("h2", {}, team.name), ...actions),
    h(
      "div",
      { class: "panel-body" },
      team.members.length === 0
        ? h("p", { class: "muted small" }, t("No members yet."))
        : h("ul", {}, ...team.members.map((member) => memberRow(team, member))),
      team.invitations.length === 0 ? null : invitations(team),
    ),
  );
}

function memberRow(team: Team, member: Member): HTMLElement {
  const isMe = member.id === shell.me.id;
  const name = h(
    "div",
    { class: "grow" },
    h(
      "div",
      { class: "row" },
      h("strong", {}, member.name),
      isMe ? h("span", { class: "badge" }, t("You")) : null,
      member.active ? null : h("span", { class: "badge badge-high" }, t("Switched off")),
    ),
    member.email === "" ? null : h("div", { class: "small muted" }, member.email),
  );
  const role: Child = team.manageable ? roleChoice(team, member) : h("span", { class: "badge" }, ROLE_NAMES[member.role]);
  const leave =
    isMe || team.manageable
      ? button(isMe ? t("Leave") : t("Remove"), {
          kind: "button-quiet button-danger button-sm",
          "aria-label": isMe
            ? t("Leave {name}", { name: team.name })
            : t("Remove {name} from {name2}", { name: member.name, name2: team.name }),
          onClick: () => removeMember(team, member),
        })
      : null;
  const transfer =
    team.manageable && team.members.length > 1
      ? button(t("Transfer"), {
          kind: "button-sm",
          "aria-label": t("Transfer what {name} owns in {name2}", { name: member.name, name2: team.name }),
          onClick: () => transferWithin(team, member),
        })
      : null;
  return h("li", { class: "channel" }, name, role, transfer, leave);
}

function roleChoice(team: Team, member: Member): HTMLElement {
  const field = choice(
    t("Role of {name}", { name: member.name }),
    ROLES.map((one) => [one, ROLE_NAMES[one]] as const),
    member.role,
  );
  field.classList.add("select-sm");
  field.addEventListener(
    "change",
    () =>
      void act(
        call(`teams/${team.id}/members/${member.id}/`, { method: "PATCH", body: { role: field.value } }),
        t("{name} is now {field} of {name2}.", { name: member.name, field: field.value, name2: team.name }),
      ),
  );
  return h("div", { class: "role-choice" }, field);
}

function heirs(team: Team, member: Member): readonly (readonly [string, string])[] {
  return team.members.filter((one) => one.id !== member.id && one.active).map((one) => [one.id, one.name] as const);
}

function removeMember(team: Team, member: Member): void {
  const others = heirs(team, member);
  const field = choice(
    t("Who gets what they own in the team"),
    [["", t("It stays theirs")], ...others],
    others.some(([one]) => one === shell.me.id) && team.manageable ? shell.me.id : "",
  );
  const dialog = openDialog(
    member.id === shell.me.id
      ? t("Leave {name}?", { name: team.name })
      : t("Remove {name} from {name2}?", { name: member.name, name2: team.name }),
    h("p", {}, t("They no longer see the team's objects.")),
    team.manageable ? h("div", { class: "field" }, h("span", { class: "label" }, t("What they own in the team goes to")), field) : null,
  );
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    button(member.id === shell.me.id ? t("Leave") : t("Remove"), {
      kind: "button-danger",
      onClick: () => {
        const to = field.value === "" || !team.manageable ? "" : `?to=${field.value}`;
        call(`teams/${team.id}/members/${member.id}/${to}`, { method: "DELETE" }).then(() => {
          dialog.close();
          void load();
        }, refuse(dialog));
      },
    }),
  );
}

function askHeir(title: string, path: string, others: readonly (readonly [string, string])[]): void {
  const field = choice(t("Who gets it"), others, others[0]?.[0] ?? "");
  const dialog = openDialog(
    title,
    h(
      "div",
      { class: "field", "data-pointer": "/to" },
      h("span", { class: "label" }, t("Feeds, regions, queries and channels go to")),
      field,
    ),
  );
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    button(t("Transfer"), {
      kind: "button-primary",
      onClick: () =>
        post(path, { to: Number(field.value) }, transferred).then((answer) => {
          dialog.close();
          toast(t("Transferred: {counts}.", { counts: countsText(answer.counts) }), "good");
        }, refuse(dialog)),
    }),
  );
}

function transferWithin(team: Team, member: Member): void {
  askHeir(
    t("What {name} owns in {name2}", { name: member.name, name2: team.name }),
    `teams/${team.id}/members/${member.id}/transfer`,
    heirs(team, member),
  );
}

// ---- Invitations

function invitations(team: Team): HTMLElement {
  const rows = team.invitations.map((one: Invitation) =>
    h(
      "li",
      { class: "channel" },
      h(
        "div",
        { class: "grow" },
        h("strong", {}, one.email),
        h(
          "div",
          { class: "small muted" },
          t("Invited as {role} by {name}, until {value}", {
            role: ROLE_NAMES[one.role],
            name: one.invited_by.name,
            value: formatDate(one.expires_at, shell.me.time_zone),
          }),
        ),
      ),
      button(t("Revoke"), {
        kind: "button-quiet button-danger button-sm",
        "aria-label": t("Revoke the invitation of {email}", { email: one.email }),
        onClick: () => act(call(`teams/${team.id}/invitations/${one.id}/`, { method: "DELETE" }), t("The invitation is revoked.")),
      }),
    ),
  );
  return h("div", {}, h("h3", { class: "block-title" }, t("Open invitations")), h("ul", {}, ...rows));
}

function invite(team: Team): void {
  const email = h("input", { class: "input", id: "invite-email", type: "email", autocomplete: "off", placeholder: "name@example.org" });
  const role = choice(
    t("Role"),
    ROLES.map((one) => [one, ROLE_WORDS[one]] as const),
    "viewer",
  );
  const dialog = openDialog(
    t("Invite to {name}", { name: team.name }),
    h("div", { class: "field", "data-pointer": "/email" }, h("label", { for: "invite-email" }, t("E-mail address")), email),
    h("div", { class: "field", "data-pointer": "/role" }, h("span", { class: "label" }, t("Role")), role),
  );
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    button(t("Invite"), {
      kind: "button-primary",
      onClick: () =>
        post(`teams/${team.id}/invitations/`, { email: email.value.trim(), role: role.value }, newInvitation).then((made) => {
          dialog.close();
          showLink(
            made.link,
            made.sent
              ? t("The link went to {email} by e-mail.", { email: made.email })
              : t("This server sends no e-mail: send the link yourself."),
          );
          void load();
        }, refuse(dialog)),
    }),
  );
}

function showLink(link: string, text: string): void {
  const field = h("input", { class: "input mono", readonly: true, value: link, "aria-label": t("Link of the invitation") });
  const dialog = openDialog(t("Invited"), h("p", {}, text, t(" It works once, within seven days, and is shown only now.")), copyRow(field));
  dialog.foot.append(button(t("Done"), { kind: "button-primary", onClick: dialog.close }));
}

// ---- For administrators of the server

function newTeam(): void {
  const name = h("input", { class: "input", id: "team-name", maxlength: 100, placeholder: t("Harbour watch") });
  const dialog = openDialog(
    t("New team"),
    h("div", { class: "field", "data-pointer": "/name" }, h("label", { for: "team-name" }, t("Name")), name),
  );
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    button(t("Make team"), {
      kind: "button-primary",
      onClick: () =>
        post("teams/", { name: name.value.trim() }, teamParser).then(() => {
          dialog.close();
          void load();
        }, refuse(dialog)),
    }),
  );
}

async function removeTeam(team: Team): Promise<void> {
  if (
    await confirmDanger(
      t("Remove the team {name}?", { name: team.name }),
      t("Its members no longer see each other's objects. Objects of the team stay with their owners."),
      t("Remove team"),
    )
  )
    await act(call(`teams/${team.id}/`, { method: "DELETE" }), t("The team is removed."));
}

function personRow(person: Person, everybody: readonly Person[]): HTMLElement {
  const change = (what: Record<string, boolean>, done: string): void =>
    void act(call(`people/${person.id}/`, { method: "PATCH", body: what }), done);
  const isMe = person.id === shell.me.id;
  const others = everybody.filter((one) => one.id !== person.id && one.active).map((one) => [one.id, one.name] as const);
  const words = [
    person.email,
    ...person.teams,
    person.last_login === null
      ? t("never logged in")
      : t("last log-in {lastlogin}", { lastlogin: formatAgo(person.last_login, Date.now()) }),
  ].filter((text) => text !== "");
  return h(
    "li",
    { class: "channel" },
    h(
      "div",
      { class: "grow" },
      h(
        "div",
        { class: "row" },
        h("strong", {}, person.name),
        person.administrator ? h("span", { class: "badge badge-accent" }, t("Administrator")) : null,
        person.active ? null : h("span", { class: "badge badge-high" }, t("Switched off")),
      ),
      h("div", { class: "small muted" }, words.join(" · ")),
    ),
    isMe
      ? null
      : button(person.administrator ? t("No administrator") : t("Make administrator"), {
          kind: "button-sm",
          "aria-label": person.administrator
            ? t("Remove {name} as administrator", { name: person.name })
            : t("Make {name} administrator", { name: person.name }),
          onClick: () => change({ administrator: !person.administrator }, t("Changed.")),
        }),
    button(t("Quotas"), {
      kind: "button-sm",
      "aria-label": t("Quotas of {name}", { name: person.name }),
      onClick: () => openQuotas(t("Quotas of {name}", { name: person.name }), `people/${person.id}/quotas`, true),
    }),
    others.length === 0
      ? null
      : button(t("Transfer"), {
          kind: "button-sm",
          "aria-label": t("Transfer everything that {name} owns", { name: person.name }),
          onClick: () => askHeir(t("Everything that {name} owns", { name: person.name }), `people/${person.id}/transfer`, others),
        }),
    isMe
      ? null
      : button(person.active ? t("Switch off") : t("Switch on"), {
          kind: person.active ? "button-quiet button-danger button-sm" : "button-sm",
          "aria-label": person.active ? t("Switch {name} off", { name: person.name }) : t("Switch {name} on", { name: person.name }),
          onClick: () =>
            change(
              { active: !person.active },
              person.active ? t("{name} is switched off.", { name: person.name }) : t("{name} is switched on.", { name: person.name }),
            ),
        }),
  );
}

async function load(): Promise<void> {
  try {
    const teams = await get("teams/", list(teamParser));
    replace(
      teamsPlace,
      ...(teams.length > 0
        ? teams.map(teamPanel)
        : [empty("users", t("You are in no team"), t("An admin of a team invites you; then you see what the team shares."))]),
    );
    if (!isAdministrator) return;
    const people = await get("people/", list(personParser));
    replace(
      peoplePlace,
      h(
        "section",
        { class: "panel", "aria-label": t("People") },
        h("div", { class: "panel-head" }, icon("users"), h("h2", {}, t("People"))),
        h("div", { class: "panel-body" }, h("ul", {}, ...people.map((one) => personRow(one, people)))),
      ),
    );
  } catch (error) {
    fail(error);
  }
}

void load();
