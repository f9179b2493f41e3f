import { ApiError, call, get, post } from "../lib/api";
import {
  countsText,
  person as personParser,
  ROLE_WORDS,
  ROLES,
  team as teamParser,
  type Invitation,
  type Member,
  type Person,
  type Team,
} from "../data/team_data";
import { button, empty, h, icon, replace, type Child } from "../lib/dom";
import { boolean, dictionary, list, number, record, string } from "../lib/parse";
import { formatAgo } from "../lib/time";
import { confirmDanger, openDialog, type Dialog } from "../views/dialog_view";
import { showFaults } from "../views/faults_view";
import { openQuotas } from "../views/quotas_view";
import { fail, openShell, pageFrame, toast } from "../views/shell_view";
import { copyRow } from "../views/secret_view";

const shell = openShell();
const isAdministrator = shell.me.superuser;
const body = pageFrame(shell.root, "Teams", isAdministrator ? [button("New team", { icon: "plus", onClick: newTeam })] : [], "page-narrow");
const teamsPlace = h("div", { class: "stack-lg" });
const peoplePlace = h("div", {});
body.append(teamsPlace, peoplePlace);

/** Faults of what was entered stand in the dialog; everything else is a short message. */
function refuse(dialog: Dialog): (error: unknown) => void {
  return (error) => (error instanceof ApiError && error.status === 400 ? showFaults(dialog.body, error.faults) : fail(error));
}

/** Does it, says so, and shows everything anew: roles decide what else can be done. */
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
    button("Quotas", {
      kind: "button-sm",
      "aria-label": `Quotas of ${team.name}`,
      onClick: () => void openQuotas(`Quotas of ${team.name}`, `teams/${team.id}/quotas`, isAdministrator),
    }),
    team.manageable
      ? button("Invite", { icon: "plus", kind: "button-sm", "aria-label": `Invite somebody to ${team.name}`, onClick: () => invite(team) })
      : null,
    isAdministrator
      ? button("Remove team", {
          kind: "button-quiet button-danger button-sm",
          "aria-label": `Remove team ${team.name}`,
          onClick: () => void removeTeam(team),
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
        ? h("p", { class: "muted small" }, "No members yet.")
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
      isMe ? h("span", { class: "badge" }, "You") : null,
      member.active ? null : h("span", { class: "badge badge-high" }, "Switched off"),
    ),
    member.email === "" ? null : h("div", { class: "small muted" }, member.email),
  );
  const role: Child = team.manageable ? roleChoice(team, member) : h("span", { class: "badge" }, member.role);
  const leave =
    isMe || team.manageable
      ? button(isMe ? "Leave" : "Remove", {
          kind: "button-quiet button-danger button-sm",
          "aria-label": isMe ? `Leave ${team.name}` : `Remove ${member.name} from ${team.name}`,
          onClick: () => removeMember(team, member),
        })
      : null;
  const transfer =
    team.manageable && team.members.length > 1
      ? button("Transfer", {
          kind: "button-sm",
          "aria-label": `Transfer what ${member.name} owns in ${team.name}`,
          onClick: () => transferWithin(team, member),
        })
      : null;
  return h("li", { class: "channel" }, name, role, transfer, leave);
}

function roleChoice(team: Team, member: Member): HTMLElement {
  const field = choice(
    `Role of ${member.name}`,
    ROLES.map((one) => [one, ROLE_WORDS[one].split(":")[0]!] as const),
    member.role,
  );
  field.classList.add("select-sm");
  field.addEventListener(
    "change",
    () =>
      void act(
        call(`teams/${team.id}/members/${member.id}/`, { method: "PATCH", body: { role: field.value } }),
        `${member.name} is now ${field.value} of ${team.name}.`,
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
    "Who gets what they own in the team",
    [["", "It stays theirs"], ...others],
    others.some(([one]) => one === shell.me.id) && team.manageable ? shell.me.id : "",
  );
  const dialog = openDialog(
    member.id === shell.me.id ? `Leave ${team.name}?` : `Remove ${member.name} from ${team.name}?`,
    h("p", {}, "They no longer see what belongs to the team."),
    team.manageable ? h("div", { class: "field" }, h("span", { class: "label" }, "What they own in the team goes to"), field) : null,
  );
  dialog.foot.append(
    button("Cancel", { onClick: dialog.close }),
    button(member.id === shell.me.id ? "Leave" : "Remove", {
      kind: "button-primary",
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

const transferred = record({ counts: dictionary(number) });

function askHeir(title: string, path: string, others: readonly (readonly [string, string])[]): void {
  const field = choice("Who gets it", others, others[0]?.[0] ?? "");
  const dialog = openDialog(
    title,
    h("div", { class: "field", "data-pointer": "/to" }, h("span", { class: "label" }, "Feeds, regions, queries and channels go to"), field),
  );
  dialog.foot.append(
    button("Cancel", { onClick: dialog.close }),
    button("Transfer", {
      kind: "button-primary",
      onClick: () => {
        post(path, { to: Number(field.value) }, transferred).then((answer) => {
          dialog.close();
          toast(`Transferred: ${countsText(answer.counts)}.`, "good");
        }, refuse(dialog));
      },
    }),
  );
}

function transferWithin(team: Team, member: Member): void {
  askHeir(`What ${member.name} owns in ${team.name}`, `teams/${team.id}/members/${member.id}/transfer`, heirs(team, member));
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
          `Invited as ${one.role} by ${one.invited_by.name}, until ${new Date(one.expires_at).toLocaleDateString()}`,
        ),
      ),
      button("Take back", {
        kind: "button-quiet button-danger button-sm",
        "aria-label": `Take back the invitation of ${one.email}`,
        onClick: () => void act(call(`teams/${team.id}/invitations/${one.id}/`, { method: "DELETE" }), "The invitation is taken back."),
      }),
    ),
  );
  return h("div", {}, h("h3", { class: "block-title" }, "Open invitations"), h("ul", {}, ...rows));
}

function invite(team: Team): void {
  const email = h("input", { class: "input", id: "invite-email", type: "email", autocomplete: "off", placeholder: "name@example.org" });
  const role = choice(
    "Role",
    ROLES.map((one) => [one, ROLE_WORDS[one]] as const),
    "viewer",
  );
  const dialog = openDialog(
    `Invite to ${team.name}`,
    h("div", { class: "field", "data-pointer": "/email" }, h("label", { for: "invite-email" }, "E-mail address"), email),
    h("div", { class: "field", "data-pointer": "/role" }, h("span", { class: "label" }, "Role"), role),
  );
  dialog.foot.append(
    button("Cancel", { onClick: dialog.close }),
    button("Invite", {
      kind: "button-primary",
      onClick: () => {
        post(
          `teams/${team.id}/invitations/`,
          { email: email.value.trim(), role: role.value },
          record({ link: string, sent: boolean, email: string }),
        ).then((made) => {
          dialog.close();
          showLink(
            made.link,
            made.sent ? `The link went to ${made.email} by e-mail.` : "This server sends no e-mail: give the link to the person yourself.",
          );
          void load();
        }, refuse(dialog));
      },
    }),
  );
}

function showLink(link: string, text: string): void {
  const field = h("input", { class: "input mono", readonly: true, value: link, "aria-label": "Link of the invitation" });
  const dialog = openDialog("Invited", h("p", {}, text, " It works once, for seven days, and is shown here this once."), copyRow(field));
  dialog.foot.append(button("Done", { kind: "button-primary", onClick: dialog.close }));
}

// ---- What administrators of the server do

function newTeam(): void {
  const name = h("input", { class: "input", id: "team-name", maxlength: 100, placeholder: "Harbour watch" });
  const dialog = openDialog(
    "New team",
    h("div", { class: "field", "data-pointer": "/name" }, h("label", { for: "team-name" }, "Name"), name),
  );
  dialog.foot.append(
    button("Cancel", { onClick: dialog.close }),
    button("Make team", {
      kind: "button-primary",
      onClick: () => {
        post("teams/", { name: name.value.trim() }, teamParser).then(() => {
          dialog.close();
          void load();
        }, refuse(dialog));
      },
    }),
  );
}

async function removeTeam(team: Team): Promise<void> {
  if (
    await confirmDanger(
      `Remove the team ${team.name}?`,
      "Its members no longer see each other's things. What belonged to it stays with its owners.",
      "Remove team",
    )
  )
    await act(call(`teams/${team.id}/`, { method: "DELETE" }), "The team is removed.");
}

function personRow(person: Person, everybody: readonly Person[]): HTMLElement {
  const change = (what: Record<string, boolean>, done: string): void =>
    void act(call(`people/${person.id}/`, { method: "PATCH", body: what }), done);
  const isMe = person.id === shell.me.id;
  const others = everybody.filter((one) => one.id !== person.id && one.active).map((one) => [one.id, one.name] as const);
  const words = [
    person.email,
    ...person.teams,
    person.last_login === null ? "never logged in" : `last log-in ${formatAgo(person.last_login, Date.now())}`,
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
        person.administrator ? h("span", { class: "badge badge-accent" }, "Administrator") : null,
        person.active ? null : h("span", { class: "badge badge-high" }, "Switched off"),
      ),
      h("div", { class: "small muted" }, words.join(" · ")),
    ),
    isMe
      ? null
      : button(person.administrator ? "No administrator" : "Make administrator", {
          kind: "button-sm",
          "aria-label": `${person.administrator ? "No longer make" : "Make"} ${person.name} administrator`,
          onClick: () => change({ administrator: !person.administrator }, "Changed."),
        }),
    button("Quotas", {
      kind: "button-sm",
      "aria-label": `Quotas of ${person.name}`,
      onClick: () => void openQuotas(`Quotas of ${person.name}`, `people/${person.id}/quotas`, true),
    }),
    others.length === 0
      ? null
      : button("Transfer", {
          kind: "button-sm",
          "aria-label": `Transfer everything that ${person.name} owns`,
          onClick: () => askHeir(`Everything that ${person.name} owns`, `people/${person.id}/transfer`, others),
        }),
    isMe
      ? null
      : button(person.active ? "Switch off" : "Switch on", {
          kind: person.active ? "button-quiet button-danger button-sm" : "button-sm",
          "aria-label": `Switch ${person.name} ${person.active ? "off" : "on"}`,
          onClick: () => change({ active: !person.active }, `${person.name} is switched ${person.active ? "off" : "on"}.`),
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
        : [empty("users", "You are in no team", "An admin of a team invites you; then you see what the team shares.")]),
    );
    if (!isAdministrator) return;
    const people = await get("people/", list(personParser));
    replace(
      peoplePlace,
      h(
        "section",
        { class: "panel", "aria-label": "People" },
        h("div", { class: "panel-head" }, icon("users"), h("h2", {}, "People")),
        h("div", { class: "panel-body" }, h("ul", {}, ...people.map((one) => personRow(one, people)))),
      ),
    );
  } catch (error) {
    fail(error);
  }
}

void load();
