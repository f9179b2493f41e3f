/**
 * Samples to start with: each becomes a feed with queries by one click, or from its
 * file if that is not included.
 */

import { ApiError, get, post, query as address } from "../../lib/api";
import { button, h, icon } from "../../lib/dom";
import { formatDate } from "../../lib/time";
import { samples as samplesParser, upload as uploadParser, type Sample } from "../../data/upload_data";
import { fail } from "../shell_view";
import { t, tn } from "../../lib/texts";
import { sendFile } from "./upload_step";

/** The gallery. If the reader has several teams, the feed goes to the first. */
export function samplesView(team: string | null): HTMLElement {
  const place = h("section", { class: "panel panel-body stack", "aria-label": t("Samples to start with"), hidden: true });
  get("samples/", samplesParser).then((found) => {
    const absent = found.filter(({ here }) => !here);
    place.append(
      h("h2", { class: "section-title" }, t("Samples to start with")),
      h("p", { class: "muted" }, t("One click creates a feed, with queries that give answers from the start.")),
      h("ul", { class: "samples" }, ...found.filter(({ here }) => here).map((sample) => card(sample, loadButton(sample, team)))),
    );
    if (absent.length > 0) place.append(absentSamples(absent, team));
    place.hidden = found.length === 0;
  }, fail);
  return place;
}

/**
 * Recordings that are not included: with the user's file they become the same
 * feed, with the same queries.
 */
function absentSamples(found: readonly Sample[], team: string | null): HTMLElement {
  return h(
    "details",
    { class: "stack samples-absent" },
    h("summary", {}, tn("{count} recording that is not included", "{count} recordings that are not included", found.length)),
    h(
      "p",
      { class: "muted" },
      t("Choose the file that you downloaded: it becomes a feed with these queries. Or put it into the folder VEDETTE_DATA."),
    ),
    h("ul", { class: "samples" }, ...found.map((sample) => card(sample, ...fileChoice(sample, team)))),
  );
}

function card(sample: Sample, action: HTMLElement, ...more: HTMLElement[]): HTMLElement {
  return h(
    "li",
    { class: "sample stack" },
    h("div", { class: "row spread" }, h("strong", {}, sample.title), action),
    h("p", { class: "small" }, sample.about),
    h(
      "p",
      { class: "row row-wrap small" },
      h("span", { class: `badge ${sample.live ? "badge-info" : "badge-good"}` }, sample.live ? t("Simulated") : t("Real recording")),
      h("span", { class: "muted num" }, extent(sample)),
    ),
    h(
      "ul",
      { class: "small muted sample-queries", "aria-label": t("Queries of {title}", { title: sample.title }) },
      ...sample.queries.map(({ name, description }) => h("li", { title: description }, icon("search"), h("span", {}, name))),
    ),
    sample.live
      ? null
      : h("p", { class: "small faint" }, t("{origin}. Licence: {licence}.", { origin: sample.origin, licence: sample.licence })),
    ...more,
  );
}

/** The number of its rows, and their time. */
function extent(sample: Sample): string {
  const rows = tn("{count} row", "{count} rows", sample.rows);
  if (sample.from === null || sample.to === null)
    return [rows, t("{minutes} minutes, as if now", { minutes: sample.minutes ?? 0 })].join(" · ");
  const [first, last] = [formatDate(sample.from, "UTC"), formatDate(sample.to, "UTC")];
  return `${rows} · ${first === last ? first : `${first} – ${last}`}`;
}

function loadButton(sample: Sample, team: string | null): HTMLElement {
  const words = sample.live ? t("Play") : t("Load");
  return button(words, {
    icon: sample.live ? "play" : "file-up",
    kind: "button-sm button-primary",
    "aria-label": `${words}: ${sample.title}`,
    onClick: () => make(sample, team).catch(fail),
  });
}

/** The button that takes the recording's file, and the progress of its upload. */
function fileChoice(sample: Sample, team: string | null): [HTMLElement, HTMLElement, HTMLElement] {
  const status = h("div", { class: "stack", "aria-live": "polite", hidden: true });
  const chooser = h("input", {
    type: "file",
    class: "visually-hidden",
    tabindex: -1,
    "aria-label": t("File of {title}", { title: sample.title }),
  });
  const choose = button(t("Choose the file"), {
    icon: "file-up",
    kind: "button-sm",
    "aria-label": t("Choose the file: {title}", { title: sample.title }),
    // A disabled button would lose the focus.
    onClick: () => {
      if (!choose.hasAttribute("aria-disabled")) chooser.click();
    },
  });
  chooser.addEventListener("change", () => {
    const [file] = chooser.files ?? [];
    if (file === undefined) return;
    choose.setAttribute("aria-disabled", "true");
    void sendFile(file, status, (id) => {
      make(sample, team, id).catch((error: unknown) => {
        fail(error);
        choose.removeAttribute("aria-disabled");
        // The mapping can still be set by hand.
        if (error instanceof ApiError && error.status === 400)
          status.replaceChildren(
            h("a", { href: address("/feeds/new", { upload: id }) }, t("Load {name} without the sample's queries", { name: file.name })),
          );
      });
    });
  });
  const place = t("Its place in VEDETTE_DATA: {path}", { path: sample.file });
  return [h("span", {}, choose, chooser), h("p", { class: "small faint path" }, place), status];
}

async function make(sample: Sample, team: string | null, upload: string | null = null): Promise<void> {
  const made = await post("samples/", { name: sample.name, team: team === null ? null : Number(team), upload }, uploadParser);
  location.assign(address("/feeds/new", { upload: made.id, sample: sample.name }));
}
