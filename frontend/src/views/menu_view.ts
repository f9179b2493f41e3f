/**
 * A small menu below its button: arrows move, Enter chooses, Escape closes and returns the focus.
 */

import { h } from "../lib/dom";

export interface MenuItem {
  content: Node[];
  isCurrent?: boolean;
  onPick: () => void;
}

/** Returns a function that shows other items in an open menu. */
export function attachMenu(opener: HTMLButtonElement, items: () => MenuItem[]): () => void {
  opener.setAttribute("aria-haspopup", "menu");
  opener.setAttribute("aria-expanded", "false");
  let menu: HTMLElement | null = null;
  const close = (): void => {
    menu?.remove();
    menu = null;
    opener.setAttribute("aria-expanded", "false");
    document.removeEventListener("pointerdown", outside);
  };
  /** By keyboard the focus returns to the button, also after a dialog that the item opens. */
  const leave = (): void => {
    close();
    opener.focus();
  };
  const outside = (event: PointerEvent): void => {
    if (event.target instanceof Node && !menu?.contains(event.target) && !opener.contains(event.target)) close();
  };
  const open = (): void => {
    const buttons = items().map((item) =>
      h(
        "button",
        {
          type: "button",
          role: "menuitem",
          class: "menu-item",
          "aria-current": item.isCurrent === true ? "true" : null,
          onClick: () => {
            leave();
            item.onPick();
          },
        },
        ...item.content,
      ),
    );
    menu = h("div", { class: "menu", role: "menu" }, ...buttons);
    menu.addEventListener("keydown", (event) => {
      // The page's shortcuts would act behind the menu.
      event.stopPropagation();
      const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
      if (event.key === "Escape") {
        leave();
      } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        buttons[(at + (event.key === "ArrowDown" ? 1 : -1) + buttons.length) % buttons.length]?.focus();
      } else if (event.key === "Home" || event.key === "End") {
        event.preventDefault();
        buttons.at(event.key === "Home" ? 0 : -1)?.focus();
      } else if (event.key === "Tab") {
        leave();
      }
    });
    // Within a landmark of the page, as all content has to be.
    (document.querySelector("main") ?? document.body).append(menu);
    const box = opener.getBoundingClientRect();
    // Above its button if there is no room below.
    const isAbove = box.bottom + 4 + menu.offsetHeight > innerHeight && box.top > innerHeight / 2;
    menu.style.top = `${isAbove ? Math.max(8, box.top - 4 - menu.offsetHeight) : box.bottom + 4}px`;
    menu.style.left = `${Math.max(8, Math.min(box.left, innerWidth - menu.offsetWidth - 8))}px`;
    opener.setAttribute("aria-expanded", "true");
    document.addEventListener("pointerdown", outside);
    (buttons.find((one) => one.getAttribute("aria-current") === "true") ?? buttons[0])?.focus();
  };
  opener.addEventListener("click", () => (menu === null ? open() : close()));
  return () => {
    if (menu === null) return;
    const before = document.activeElement?.textContent;
    close();
    open();
    menu.querySelectorAll("button").forEach((one) => one.textContent === before && one.focus());
  };
}
