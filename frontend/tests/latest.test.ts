import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Latest } from "../src/lib/latest";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Requests that answer only when released; the results and the errors. */
function questions() {
  const answers = new Map<string, { resolve: () => void; reject: (error: Error) => void }>();
  const shown: string[] = [];
  const faults: string[] = [];
  const latest = new Latest<[name: string]>(
    async (signal, name) => {
      await new Promise<void>((resolve, reject) => {
        answers.set(name, { resolve, reject });
        signal.addEventListener("abort", () => reject(new Error(`${name} was dropped`)));
      });
      shown.push(name);
    },
    (error) => faults.push((error as Error).message),
  );
  return { latest, answers, shown, faults };
}

describe("the latest request", () => {
  it("is sent once, after a pause", async () => {
    const { latest, answers } = questions();
    for (const name of ["a", "ab", "abc"]) {
      latest.after(250, name);
      await vi.advanceTimersByTimeAsync(200);
    }
    expect([...answers.keys()]).toEqual([]);
    await vi.advanceTimersByTimeAsync(50);
    expect([...answers.keys()]).toEqual(["abc"]);
  });

  it("is waited for until no newer one replaces it", async () => {
    const { latest, answers, shown } = questions();
    latest.after(250, "a");
    let isSettled = false;
    void latest.settled("a").then(() => (isSettled = true));
    await vi.advanceTimersByTimeAsync(0);
    // Something else asks while this one is under way, and drops it.
    latest.after(0, "b");
    await vi.advanceTimersByTimeAsync(0);
    expect([isSettled, shown]).toEqual([false, []]);
    for (const name of ["b", "a"]) answers.get(name)?.resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect([isSettled, shown, latest.isAsking]).toEqual([true, ["a"], false]);
  });

  it("reports whether a result is pending", async () => {
    const { latest, answers } = questions();
    const said = [latest.isAsking];
    latest.after(250, "a");
    said.push(latest.isAsking);
    await vi.advanceTimersByTimeAsync(250);
    said.push(latest.isAsking);
    answers.get("a")!.resolve();
    await vi.advanceTimersByTimeAsync(0);
    said.push(latest.isAsking);
    void latest.now("b");
    latest.drop();
    said.push(latest.isAsking);
    expect(said).toEqual([false, true, true, false, false]);
  });

  it("drops the previous one, whose result or error is then ignored", async () => {
    const { latest, answers, shown, faults } = questions();
    void latest.now("first");
    void latest.now("second");
    answers.get("first")?.resolve();
    answers.get("second")?.resolve();
    await vi.runAllTimersAsync();
    expect([shown, faults]).toEqual([["second"], []]);
  });

  it("reports its own error", async () => {
    const { latest, answers, shown, faults } = questions();
    const asked = latest.now("only");
    answers.get("only")?.reject(new Error("refused"));
    await asked;
    expect([shown, faults]).toEqual([[], ["refused"]]);
  });

  it("sends nothing after it was dropped", async () => {
    const { latest, answers } = questions();
    latest.after(100, "late");
    latest.drop();
    await vi.runAllTimersAsync();
    expect(answers.size).toBe(0);
  });
});
