/** The questions for a new query as cards: what each finds, in a sentence. */

import { h, icon } from "../../lib/dom";
import { familyOf } from "../../lib/families";
import { familyName } from "../../lib/words";
import type { Question } from "../../data/question_data";
import { t } from "../../lib/texts";

/** Variants of a family that have their own card. */
const FORMS: Record<string, { icon: string; title: string; text: string }> = {
  total: {
    icon: "hourglass",
    title: t("How long in all"),
    text: t("It was there for a total time within the last minutes, or for hardly any."),
  },
  sums: { icon: "sigma", title: t("Differences and sums"), text: t("One reading exceeds another by a given amount, or is twice as high.") },
  absence: {
    icon: "circle-slash",
    title: t("What did not happen"),
    text: t("One event occurs without another before or after it."),
  },
  derive: {
    icon: "workflow",
    title: t("Answers of other queries"),
    text: t("Answers of another query are events here: they can be counted, ordered, or be missing."),
  },
};

/** The title of the question's card. */
export function questionTitle({ key, family }: Question): string {
  return FORMS[key]?.title ?? familyName(family);
}

/** `chosen` is the initial question; `onChoose` is called when the reader chooses another one. */
export function familyGallery(questions: readonly Question[], chosen: Question, onChoose: (question: Question) => void): HTMLElement {
  const card = (question: Question): HTMLElement => {
    const { icon: name, text } = FORMS[question.key] ??
      familyOf(question.family)?.card ?? { icon: "waypoints", text: t("Written as a specification.") };
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
      icon(name),
      h("span", { class: "choice-text" }, h("strong", {}, questionTitle(question)), h("span", { class: "hint" }, text)),
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
