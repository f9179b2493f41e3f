/** Samples to start with: each becomes a feed with queries by one click. */

import { get, post } from "../../lib/api";
import { button, h, icon } from "../../lib/dom";
import { samples as samplesParser, upload as uploadParser, type Sample, type Upload } from "../../data/upload_data";
import { fail } from "../shell_view";
import { t } from "../../lib/texts";

/** The gallery; `done` gets the upload that brings the rows. Of several teams the feed goes to the first. */
export function samplesView(team: string | null, done: (upload: Upload) => void): HTMLElement {
  const list = h("ul", { class: "samples" });
  const place = h(
    "section",
    { class: "panel panel-body stack", "aria-label": t("Samples to start with"), hidden: true },
    h("h2", { class: "section-title" }, t("Samples to start with")),
    h("p", { class: "muted" }, t("One click makes a feed, with queries that already have something to answer.")),
    list,
  );
  get("samples/", samplesParser).then((found) => {
    list.append(...found.map((sample) => card(sample, team, done)));
    place.hidden = found.length === 0;
  }, fail);
  return place;
}

function card(sample: Sample, team: string | null, done: (upload: Upload) => void): HTMLElement {
  const load = button(sample.live ? t("Play") : t("Load"), {
    icon: sample.live ? "play" : "file-up",
    kind: "button-sm button-primary",
    onClick: () => {
      load.disabled = true;
      post("samples/", { name: sample.name, team: team === null ? null : Number(team) }, uploadParser).then(done, (error: unknown) => {
        load.disabled = false;
        fail(error);
      });
    },
  });
  load.setAttribute("aria-label", `${sample.live ? t("Play") : t("Load")}: ${sample.title}`);
  return h(
    "li",
    { class: "sample stack" },
    h("div", { class: "row spread" }, h("strong", {}, sample.title), load),
    h("p", { class: "small" }, sample.about),
    h(
      "ul",
      { class: "small muted sample-queries", "aria-label": t("Queries of {title}", { title: sample.title }) },
      ...sample.queries.map(({ name, description }) => h("li", { title: description }, icon("search"), h("span", {}, name))),
    ),
    h(
      "p",
      { class: "small faint" },
      sample.live ? t("Made by a simulation.") : t("{origin}. Licence: {licence}.", { origin: sample.origin, licence: sample.licence }),
    ),
  );
}
