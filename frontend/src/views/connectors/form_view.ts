/** The form of a connector, with its test. */

import { ApiError, call, getAll, post, query } from "../../lib/api";
import { button, h, icon, replace } from "../../lib/dom";
import { settingsOf, shownFields, trial as trialParser, type Connector, type ConnectorKind } from "../../data/connector_data";
import { queryRow, type FeedStatus } from "../../lib/shapes";
import { keepEntries, openDialog } from "../dialog_view";
import { showFaults } from "../faults_view";
import { field, goToFault } from "../form_parts";
import { fail, toast } from "../shell_view";
import { settingControl, type SettingControl } from "./setting_control";
import { ReadingFields } from "./reading_fields";
import { trialView } from "./trial_view";
import { t } from "../../lib/texts";

export function openForm(feed: FeedStatus, kinds: readonly ConnectorKind[], current: Connector | null, done: () => void): void {
  const name = h("input", { class: "input", id: "connector-name", maxlength: 100, value: current?.name ?? "", placeholder: t("Mast 1") });
  const choice = h(
    "select",
    { class: "select", id: "connector-kind", disabled: current !== null },
    ...kinds.map((one) => h("option", { value: one.name, selected: one.name === current?.kind }, one.title)),
  );
  const fields = h("div", { class: "stack" });
  const guarantee = h("p", { class: "small muted" });
  const found = h("div", { class: "stack", "aria-live": "polite", "data-trial": "" });
  const reading = new ReadingFields(feed, current?.reading ?? {});
  const dialog = openDialog(
    current === null ? t("Add connector") : t("Connector {name}", { name: current.name }),
    field("name", t("Name"), name),
    field("kind", t("Protocol"), choice),
    fields,
    reading.element,
    guarantee,
    found,
  );
  keepEntries(dialog);
  dialog.element.classList.add("dialog-wide", "connector-form");
  const queries = getAll(query("queries/", { feed: feed.name }), queryRow);
  queries.catch(() => undefined); // reported where the queries are used
  let controls = new Map<string, SettingControl>();
  const kind = (): ConnectorKind => kinds.find((one) => one.name === choice.value)!;
  const typed = (): Map<string, string | boolean> => new Map([...controls].map(([key, one]) => [key, one.value()]));
  const showApplying = (): void => {
    const shown = new Set(shownFields(kind().fields, typed()).map((one) => one.name));
    for (const [key, one] of controls) one.element.hidden = !shown.has(key);
  };
  const showKind = (): void => {
    controls = new Map(kind().fields.map((one) => [one.name, settingControl(one, current?.settings[one.name], current === null, queries)]));
    replace(fields, ...[...controls.values()].map((one) => one.element));
    showApplying();
    guarantee.textContent = kind().guarantee;
    reading.element.hidden = !kind().needs_reading;
  };
  choice.addEventListener("change", showKind);
  fields.addEventListener("change", showApplying);
  showKind();
  const isWhole = (): boolean => {
    const faults = [...controls].map(([key, one]) => ({ pointer: `/settings/${key}`, message: one.fault() }));
    const missing = faults.filter(({ message }) => message !== "");
    showFaults(dialog.body, missing);
    return missing.length === 0;
  };
  const body = (meaning: Record<string, unknown>): Record<string, unknown> => ({
    feed: feed.name,
    kind: choice.value,
    settings: settingsOf(shownFields(kind().fields, typed()), typed()),
    reading: kind().needs_reading ? meaning : {},
  });
  const refused = (error: unknown): void => {
    if (!(error instanceof ApiError) || error.status !== 400) {
      fail(error);
      return;
    }
    const rest = showFaults(dialog.body, error.faults);
    replace(
      found,
      ...rest.map((one) => h("p", { class: "notice notice-high", role: "alert" }, icon("triangle-alert"), h("span", {}, one.message))),
    );
    // The form is longer than the dialog.
    if (rest.length > 0) found.scrollIntoView({ block: "nearest" });
    goToFault(dialog.body);
  };
  const test = button(t("Test"), {
    icon: "activity",
    onClick: () => {
      if (!isWhole()) return undefined;
      const waits =
        kind().direction === "in" ? t("Connecting, and waiting for the first records (ten seconds at most) ...") : t("Connecting ...");
      replace(found, h("p", { class: "small muted" }, waits));
      found.scrollIntoView({ block: "nearest" });
      return post(
        "connectors/trial",
        { ...body(reading.chosen()), connector: current === null ? null : Number(current.id) },
        trialParser,
      ).then((trial) => {
        showFaults(
          dialog.body,
          trial.faults.map(({ pointer, message }) => ({ pointer: `/reading${pointer}`, message })),
        );
        reading.offer(trial);
        replace(found, ...trialView(trial));
        found.scrollIntoView({ block: "nearest" });
      }, refused);
    },
  });
  dialog.foot.append(
    button(t("Cancel"), { onClick: dialog.close }),
    test,
    button(t("Save"), {
      kind: "button-primary",
      onClick: () => {
        if (!isWhole()) return undefined;
        const { settings, reading: meaning, ...place } = body(reading.value());
        const given = { name: name.value.trim(), settings, reading: meaning };
        const sent =
          current === null
            ? call("connectors/", { method: "POST", body: { ...place, ...given } })
            : call(`connectors/${current.id}/`, { method: "PATCH", body: given });
        return sent.then(() => {
          dialog.close();
          toast(t("Saved. It connects now."), "good");
          done();
        }, refused);
      },
    }),
  );
}
