/** Presses of buttons whose work takes a while. */

type Button = Pick<HTMLElement, "setAttribute" | "removeAttribute">;
export type Listener = (event: Event) => unknown;

/**
 * Presses are ignored while the promise of the one before is open: nothing is sent twice. The
 * button is not disabled meanwhile, for a disabled one loses the focus.
 */
export function oneAtATime(button: Button, listener: Listener): (event: Event) => void {
  let isBusy = false;
  return (event) => {
    if (isBusy) return;
    const work = listener(event);
    if (!(work instanceof Promise)) return;
    isBusy = true;
    button.setAttribute("aria-disabled", "true");
    void work.finally(() => {
      isBusy = false;
      button.removeAttribute("aria-disabled");
    });
  };
}

type Once = (what: string, work: () => Promise<void>) => Promise<void>;

/** The same for keys, which have no button: work on `what` does not begin while the one before goes on. */
export function onceAtATime(): Once {
  const busy = new Set<string>();
  return async (what, work) => {
    if (busy.has(what)) return;
    busy.add(what);
    try {
      await work();
    } finally {
      busy.delete(what);
    }
  };
}
