/** The turns of a shift: who is on call from when until when; those entered by hand can be changed. */

import { turn, type Shift, type Turn } from "../lib/answers";
import { call, getAll } from "../lib/api";
import { button, h, replace } from "../lib/dom";
import type { Me } from "../lib/shapes";
import { teamMates } from "../lib/team_mates";
import { t } from "../lib/texts";
import { formatMoment, fromWall, toWall, zoneId, zoneName, type Zone } from "../lib/time";
import { confirmDanger, keepEntries, openDialog } from "./dialog_view";
import { showFaults } from "./faults_view";
import { changesIn, choice, field, goToFault, refusedIn } from "./form_parts";
import { fail } from "./shell_view";

const HOUR_MS = 3_600_000;
/** A calendar may have thousands. */
const SHOWN = 200;

/** The turns that have not ended. `onChange`: they were changed. */
export function openTurns(of: Shift, me: Me, onChange: () => void): void {
  const place = h("ul", { class: "stack turns" });
  const dialog = openDialog(t("Turns of “{name}”", { name: of.name }), place);
  dialog.element.classList.add("dialog-wide");
  const show = async (): Promise<void> => {
    const rows = await getAll(`shifts/${of.id}/turns/?page_size=${SHOWN}`, turn, SHOWN);
    const none = t("Nobody is on call, now or later.");
    replace(place, ...(rows.length === 0 ? [h("li", { class: "muted" }, none)] : rows.map((one) => item(one))));
    if (rows.length >= SHOWN) place.append(h("li", { class: "small muted" }, t("The first {count} are shown.", { count: SHOWN })));
  };
  const add = button(t("New turn"), { icon: "plus", onClick: () => openTurn(of, me, null, changed) });
  const changed = (): void => {
    onChange();
    // The button that had the focus belongs to the previous list.
    show().then(() => add.focus(), fail);
  };
  const remove = async (one: Turn): Promise<void> => {
    const effect = t("{person} is then no longer on call.", { person: one.person });
    if (!(await confirmDanger(t("Remove this turn?"), effect, t("Remove turn")))) return;
    await call(`shifts/${of.id}/turns/${one.id}/`, { method: "DELETE" });
    changed();
  };
  const quiet = "button-quiet button-sm";
  const item = (one: Turn): HTMLElement =>
    h(
      "li",
      { class: "setting" },
      h(
        "div",
        {},
        h("strong", {}, one.person),
        h("div", { class: "small num" }, spanOf(one, me.time_zone)),
        one.by_hand ? null : h("div", { class: "small faint" }, t("From the calendar: changed there")),
      ),
      one.by_hand && of.editable
        ? h(
            "div",
            { class: "row" },
            button(t("Edit"), { kind: quiet, onClick: () => openTurn(of, me, one, changed) }),
            button(t("Remove"), { kind: `${quiet} button-danger`, onClick: () => remove(one).catch(fail) }),
          )
        : null,
    );
  dialog.foot.append(...(of.editable ? [add] : []), button(t("Close"), { onClick: dialog.close }));
  show().catch(fail);
}

function openTurn(of: Shift, me: Me, stored: Turn | null, onSaved: () => void): void {
  const zone = me.time_zone;
  const person = choice("turn-person", [["", t("Choose…")]]);
  const begins = moment("turn-begins", stored?.begins_at ?? nextHour(), zone);
  const ends = moment("turn-ends", stored?.ends_at ?? null, zone);
  const dialog = openDialog(
    stored === null ? t("New turn") : t("Change a turn"),
    field("person", t("Who"), person, t("A member of your teams.")),
    field("begins_at", t("From"), begins),
    field("ends_at", t("Until"), ends),
    h("p", { class: "hint" }, t("The times are those of your account's zone: {zone}.", { zone: zoneId(zone) })),
  );
  const before = { person: stored?.person, begins_at: momentOf(begins, zone), ends_at: momentOf(ends, zone) };
  keepEntries(dialog);
  void fillPeople(person, stored?.person ?? "");
  const save = async (): Promise<void> => {
    const [from, until] = [momentOf(begins, zone), momentOf(ends, zone)];
    const missing = [
      { pointer: "/person", message: t("Choose who is on call."), is: person.value === "" },
      { pointer: "/begins_at", message: t("From when? Give a day and a time."), is: from === null },
      { pointer: "/ends_at", message: t("Until when? Give a day and a time."), is: until === null },
    ].filter((one) => one.is);
    showFaults(dialog.body, missing);
    goToFault(dialog.body);
    if (missing.length > 0) return;
    const body = { person: person.value, begins_at: from, ends_at: until };
    if (stored === null) await call(`shifts/${of.id}/turns/`, { method: "POST", body });
    else await call(`shifts/${of.id}/turns/${stored.id}/`, { method: "PATCH", body: changesIn(body, before) });
    dialog.close();
    onSaved();
  };
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    button(t("Save turn"), { kind: "button-primary", onClick: () => save().catch(refusedIn(dialog)) }),
  );
  person.focus();
}

async function fillPeople(person: HTMLSelectElement, chosen: string): Promise<void> {
  try {
    const names = (await teamMates()).map(({ name }) => name);
    // A stored turn may be of somebody who has left the teams.
    const all = chosen === "" || names.includes(chosen) ? names : [chosen, ...names];
    const picked = person.value === "" ? chosen : person.value;
    person.append(...all.map((name) => h("option", { value: name }, name)));
    person.value = picked;
  } catch (error) {
    fail(error);
  }
}

function spanOf(one: Turn, zone: Zone): string {
  const text = (at: number): string => formatMoment(at, "ms", zone);
  return `${text(one.begins_at)} – ${text(one.ends_at)} ${zoneName(zone)}`;
}

function nextHour(): number {
  return Math.ceil(Date.now() / HOUR_MS) * HOUR_MS;
}

/** To the minute. */
function moment(id: string, at: number | null, zone: Zone): HTMLInputElement {
  return h("input", { class: "input", type: "datetime-local", id, value: at === null ? "" : toWall(at, zone).slice(0, 16) });
}

function momentOf(input: HTMLInputElement, zone: Zone): string | null {
  const at = fromWall(input.value, zone);
  return at === null ? null : new Date(at).toISOString();
}
