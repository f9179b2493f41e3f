/** Shifts: who is on call now, from an imported calendar file and from turns entered by hand. */

import type { Me } from "../lib/shapes";
import { call, getAll } from "../lib/api";
import { shift, type Shift } from "../lib/answers";
import { button, empty, h, replace } from "../lib/dom";
import { formatMoment, zoneId } from "../lib/time";
import { confirmDanger, keepEntries, openDialog } from "./dialog_view";
import { field, refusedIn } from "./form_parts";
import { fail, toast } from "./shell_view";
import { warningNotice } from "./warning_view";
import { openTurns } from "./turns_view";
import { t } from "../lib/texts";

export class ShiftsView {
  readonly element = h("div", { class: "stack" });

  constructor(private readonly me: Me) {}

  async load(): Promise<void> {
    const rows = await getAll("shifts/", shift);
    const none = empty("clock", t("No shift yet"), t("A shift defines who is on call. A rule can send to it."));
    replace(this.element, ...(rows.length > 0 ? rows.map((row) => this.card(row)) : [none]));
  }

  openForm(stored: Shift | null = null): void {
    const name = h("input", {
      class: "input",
      id: "shift-name",
      maxlength: 100,
      placeholder: t("Duty officer"),
      value: stored?.name ?? "",
    });
    const file = h("input", { type: "file", id: "shift-file", accept: ".ics,text/calendar" });
    const hint = t("An iCalendar file (.ics). Its events name members of your teams: by user name in the title, or by e-mail address.");
    const byHand = t("Without a calendar you enter the turns by hand, in the next step.");
    const dialog = openDialog(
      stored === null ? t("New shift") : t("The shift “{name}”", { name: stored.name }),
      field("name", t("Name"), name),
      field("calendar", stored === null ? t("Calendar") : t("Another calendar"), file, stored === null ? `${hint} ${byHand}` : hint),
    );
    keepEntries(dialog);
    const save = async (): Promise<void> => {
      const chosen = file.files?.[0];
      const calendar = chosen === undefined ? {} : { calendar: await chosen.text() };
      // Without a calendar the zone stays that of its last one.
      const zone = stored === null || chosen !== undefined ? { zone: zoneId(this.me.time_zone) } : {};
      const body = { name: name.value.trim(), ...zone, ...calendar };
      const place = stored === null ? "shifts/" : `shifts/${stored.id}/`;
      const saved = shift(await call(place, { method: stored === null ? "POST" : "PATCH", body }), "/");
      dialog.close();
      if (chosen !== undefined) toast(t("The calendar is imported."), "good");
      else if (stored !== null) toast(t("“{name}” is changed.", { name: body.name }), "good");
      else openTurns(saved, this.me, () => void this.load().catch(fail));
      await this.load();
    };
    dialog.foot.append(
      button(t("Cancel"), { onClick: dialog.close }),
      button(stored === null ? t("Make shift") : t("Save shift"), {
        kind: "button-primary",
        onClick: () => save().catch(refusedIn(dialog)),
      }),
    );
  }

  private card(row: Shift): HTMLElement {
    const quiet = "button-quiet button-sm";
    return h(
      "div",
      { class: "channel", role: "group", "aria-label": row.name },
      h(
        "div",
        { class: "grow" },
        h("strong", {}, row.name),
        h(
          "div",
          { class: "small" },
          row.on_call.length > 0 ? t("On call now: {oncall}", { oncall: row.on_call.join(", ") }) : t("Nobody is on call now"),
        ),
        row.warning === ""
          ? h(
              "div",
              { class: "small faint" },
              t("Known until {knownuntil}", { knownuntil: formatMoment(row.known_until, "ms", this.me.time_zone) }),
            )
          : warningNotice(row.warning),
        row.unknown.length > 0
          ? h("div", { class: "small faint" }, t("Not in your teams: {unknown}", { unknown: row.unknown.join(", ") }))
          : null,
      ),
      button(t("Turns"), { kind: quiet, onClick: () => openTurns(row, this.me, () => void this.load().catch(fail)) }),
      row.editable ? button(t("Edit"), { kind: quiet, onClick: () => this.openForm(row) }) : null,
      row.editable ? button(t("Remove"), { kind: `${quiet} button-danger`, onClick: () => this.remove(row) }) : null,
    );
  }

  private async remove(row: Shift): Promise<void> {
    const effect = t("Rules send nothing to “{name}” any more.", { name: row.name });
    if (!(await confirmDanger(t("Remove this shift?"), effect, t("Remove shift")))) return;
    try {
      await call(`shifts/${row.id}/`, { method: "DELETE" });
      await this.load();
    } catch (error) {
      fail(error);
    }
  }
}
