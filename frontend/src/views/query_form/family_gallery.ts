/** The questions for a new query as cards, each with a sentence about its answers. */

import { h, icon } from "../../lib/dom";
import type { Question } from "../../data/question_data";
import { t } from "../../lib/texts";

/** `chosen` is the initial question; `onChoose` is called when the reader chooses another one. */
export function familyGallery(questions: readonly Question[], chosen: Question, onChoose: (question: Question) => void): HTMLElement {
  const card = (question: Question): HTMLElement => {
    const input = h("input", {
      type: "radio",
      name: "family",
      value: question.key,
      checked: question.key === chosen.key,
      class: "visually-hidden",
      onChange: () => onChoose(question),
    });
    return h(
      "label",
      { class: "family-card" },
      input,
      icon(question.icon),
      h(
        "span",
        { class: "choice-text" },
        h("strong", {}, question.title),
        h("span", { class: "hint" }, question.text),
        question.note === undefined ? null : h("span", { class: "hint card-note" }, question.note),
      ),
    );
  };
  return h(
    "section",
    { class: "families" },
    h("h2", {}, t("What do you want to know?")),
    h(
      "div",
      { class: "family-cards", role: "radiogroup", "aria-label": t("Kind of query"), "data-pointer": "/family" },
      ...questions.map(card),
    ),
  );
}
