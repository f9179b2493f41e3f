import { describe, expect, it } from "vitest";
import { type Known, SILENT_MS, connectionStatus } from "../src/data/connection_data";

const WELL: Known = { connection: "open", isLoaded: true, isClockLive: true, silentMs: 900, job: "running", lagMs: 400, latenessMs: 2_000 };
const stands = (facts: Partial<Known>): string => connectionStatus({ ...WELL, ...facts });

describe("what the page says of its connection", () => {
  it("is live while all is well, also right after a start of the job", () => {
    expect(stands({})).toBe("live");
    expect(stands({ job: "starting" })).toBe("live");
    expect(stands({ lagMs: null })).toBe("live");
  });

  it("is that the server is silent, though the connection stands", () => {
    expect(stands({ silentMs: SILENT_MS + 1, job: "backoff", lagMs: 90_000 })).toBe("silent");
  });

  it("is that the job is down, whatever the clock of the feed", () => {
    for (const job of ["stopped", "stopping", "backoff", "crash_loop"]) expect(stands({ job, lagMs: null })).toBe("down");
  });

  it("is that events come late, beyond what the feed allows", () => {
    expect(stands({ lagMs: 16_900 })).toBe("live");
    expect(stands({ lagMs: 17_100 })).toBe("behind");
  });

  it("is the connection's own state while there is none, and the past where that is shown", () => {
    expect(stands({ connection: "reconnecting", silentMs: 99_000 })).toBe("reconnecting");
    expect(stands({ isLoaded: false, silentMs: 99_000 })).toBe("loading");
    expect(stands({ isClockLive: false, silentMs: 99_000 })).toBe("past");
  });
});
