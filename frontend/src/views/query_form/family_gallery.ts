/** What a new query may ask, as cards: what each finds, in a sentence. */

import { h, icon } from "../../lib/dom";
import { familyName } from "../../lib/words";
import type { Question } from "../../data/question_data";
import { t } from "../../lib/texts";

interface Card {
  icon: string;
  /** A family's card has the family's name. */
  title?: string;
  text: string;
}

const CARDS: Record<string, Card> = {
  border: { icon: "square-dashed-mouse-pointer", text: t("Something enters or leaves an area, or a range of values.") },
  transition: { icon: "timer", text: t("It leaves again in time, or stays too long.") },
  motion: { icon: "route", text: t("It was here, then there, and never close to that.") },
  total: {
    icon: "hourglass",
    title: t("How long in all"),
    text: t("It was there for so many of the last minutes, on and off, or for hardly any."),
  },
  occupancy: { icon: "users", text: t("At least so many at once in one place, or at most: a crowd, an empty post.") },
  encounter: { icon: "handshake", text: t("Two come near each other and stay: a transfer at sea, a convoy, a contact.") },
  arrival: { icon: "navigation", text: t("It is not inside yet, but will be within minutes if it goes straight on.") },
  constraint: { icon: "target", text: t("Several readings close together in space and time.") },
  sums: { icon: "sigma", title: t("Differences and sums"), text: t("One reading is higher than another by so much, or twice as high.") },
  composite: { icon: "git-branch", text: t("One event after another, or the one that never came.") },
  absence: {
    icon: "circle-slash",
    title: t("What did not happen"),
    text: t("An event came, and another one did not: not before it, and not after it."),
  },
  derive: {
    icon: "workflow",
    title: t("Answers of other queries"),
    text: t("What another query finds is an event here: it can be counted, ordered or missed."),
  },
  calculus: { icon: "layers", text: t("Rules say what begins and ends a situation, and how long it holds.") },
};

/** What the question's card says on top. */
export function questionTitle({ key, family }: Question): string {
  return CARDS[key]?.title ?? familyName(family);
}

/** `chosen` is the question at the start; `onChoose` is called with each other one the reader takes. */
export function familyGallery(questions: readonly Question[], chosen: Question, onChoose: (question: Question) => void): HTMLElement {
  const card = (question: Question): HTMLElement => {
    const { icon: name, text } = CARDS[question.key] ?? { icon: "waypoints", text: t("Written as a specification.") };
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
