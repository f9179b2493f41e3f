/** The kinds of queries as cards: what each finds, in a phrase. */

import { h, icon } from "../../lib/dom";
import { familyName } from "../../lib/words";

interface Card {
  icon: string;
  text: string;
}

const CARDS: Record<string, Card> = {
  border: { icon: "square-dashed-mouse-pointer", text: "Something enters or leaves an area, or a range of values." },
  transition: { icon: "timer", text: "It leaves again in time, or stays too long." },
  motion: { icon: "route", text: "It was here, then there, and never close to that." },
  occupancy: { icon: "users", text: "At least so many at once in one place, or at most: a crowd, an empty post." },
  encounter: { icon: "handshake", text: "Two come near each other and stay: a transfer at sea, a convoy, a contact." },
  arrival: { icon: "navigation", text: "It is not inside yet, but will be within minutes if it goes straight on." },
  constraint: { icon: "target", text: "Several readings close together in space and time." },
  composite: { icon: "git-branch", text: "One event after another, or the one that never came." },
  calculus: { icon: "layers", text: "Rules say what begins and ends a situation, and how long it holds." },
};

/** `chosen` is the family at the start; `onChoose` is called with each other one the reader takes. */
export function familyGallery(families: readonly string[], chosen: string, onChoose: (family: string) => void): HTMLElement {
  const card = (family: string): HTMLElement => {
    const { icon: name, text } = CARDS[family] ?? { icon: "waypoints", text: "Written as a specification." };
    const input = h("input", {
      type: "radio",
      name: "family",
      value: family,
      checked: family === chosen,
      class: "visually-hidden",
      onChange: () => onChoose(family),
    });
    return h(
      "label",
      { class: "family-card" },
      input,
      icon(name),
      h("span", { class: "choice-text" }, h("strong", {}, familyName(family)), h("span", { class: "hint" }, text)),
    );
  };
  return h(
    "section",
    { class: "families" },
    h("h2", {}, "What do you want to know?"),
    h(
      "div",
      { class: "family-cards", role: "radiogroup", "aria-label": "Kind of query", "data-pointer": "/family" },
      ...families.map(card),
    ),
  );
}
