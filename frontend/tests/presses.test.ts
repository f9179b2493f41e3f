import { describe, expect, it } from "vitest";
import { onceAtATime, oneAtATime } from "../src/lib/presses";

/** A button as far as presses need it. */
function press() {
  const attributes = new Map<string, string>();
  return {
    attributes,
    setAttribute: (name: string, value: string) => void attributes.set(name, value),
    removeAttribute: (name: string) => void attributes.delete(name),
  };
}

describe("presses of a button", () => {
  const event = {} as Event;

  it("are ignored while the work of the one before goes on", async () => {
    const button = press();
    const done: (() => void)[] = [];
    const pressed = oneAtATime(button, () => new Promise<void>((resolve) => done.push(resolve)));
    pressed(event);
    pressed(event);
    expect([done.length, button.attributes.get("aria-disabled")]).toEqual([1, "true"]);
    done[0]!();
    await Promise.resolve().then(() => undefined);
    expect(button.attributes.has("aria-disabled")).toBe(false);
    pressed(event);
    expect(done.length).toBe(2);
  });

  it("count all if the work is done at once", () => {
    const button = press();
    let count = 0;
    const pressed = oneAtATime(button, () => (count += 1));
    pressed(event);
    pressed(event);
    expect([count, button.attributes.size]).toEqual([2, 0]);
  });

  it("count again after work that failed", async () => {
    const button = press();
    let count = 0;
    const failed = Promise.reject(new Error("away"));
    const pressed = oneAtATime(button, () => {
      count += 1;
      return failed.catch(() => undefined);
    });
    pressed(event);
    await failed.catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve));
    pressed(event);
    expect(count).toBe(2);
  });
});

describe("presses of a key", () => {
  it("are ignored while the same work goes on; other work is done meanwhile", async () => {
    const once = onceAtATime();
    const begun: string[] = [];
    const done: (() => void)[] = [];
    const work = (what: string) =>
      once(what, () => {
        begun.push(what);
        return new Promise<void>((resolve) => done.push(resolve));
      });
    const first = work("resolve 1");
    await work("resolve 1");
    void work("resolve 2");
    expect(begun).toEqual(["resolve 1", "resolve 2"]);
    done[0]!();
    await first;
    void work("resolve 1");
    expect(begun.length).toBe(3);
  });

  it("count again after work that failed", async () => {
    const once = onceAtATime();
    let count = 0;
    const work = () =>
      once("resolve", () => {
        count += 1;
        return Promise.reject(new Error("away"));
      }).catch(() => undefined);
    await work();
    await work();
    expect(count).toBe(2);
  });
});
