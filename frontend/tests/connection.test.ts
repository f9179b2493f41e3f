import { describe, expect, it } from "vitest";
import { QUIET_MS, type Known, SILENT_MS, connectionStatus } from "../src/data/connection_data";

const WELL: Known = {
  connection: "open",
  isLoaded: true,
  isClockLive: true,
  silentMs: 900,
  job: "running",
  lagMs: 400,
  latenessMs: 2_000,
  restMs: 300,
  isStalled: false,
  isFailing: false,
};
const stands = (facts: Partial<Known>): string => connectionStatus({ ...WELL, ...facts });

describe("the connection state of the page", () => {
  it("is live while all is well, also right after a start of the job", () => {
    expect(stands({})).toBe("live");
    expect(stands({ job: "starting" })).toBe("live");
    expect(stands({ lagMs: null })).toBe("live");
  });

  it("is a silent server, though the connection is open", () => {
    expect(stands({ silentMs: SILENT_MS + 1, job: "backoff", lagMs: 90_000 })).toBe("silent");
  });

  it("is a job that is down, whatever the feed's clock", () => {
    for (const job of ["stopped", "stopping", "backoff", "crash_loop"]) expect(stands({ job, lagMs: null })).toBe("down");
  });

  it("is late events, beyond the feed's lateness", () => {
    expect(stands({ lagMs: 16_900 })).toBe("live");
    expect(stands({ lagMs: 17_100 })).toBe("behind");
  });

  it("is the end of the rows, whatever the feed's clock, and no rows before the first", () => {
    expect(stands({ restMs: QUIET_MS })).toBe("live");
    expect(stands({ restMs: QUIET_MS + 1, lagMs: null })).toBe("ended");
    expect(stands({ restMs: QUIET_MS + 1, lagMs: 90_000 })).toBe("ended");
    expect(stands({ restMs: null, lagMs: null })).toBe("empty");
    expect(stands({ restMs: null, job: "stopped" })).toBe("down");
  });

  it("is a connector that fails, whether other rows come or not, unless the job is down or behind", () => {
    expect(stands({ isFailing: true })).toBe("failing");
    expect(stands({ isFailing: true, restMs: QUIET_MS + 1 })).toBe("failing");
    expect(stands({ isFailing: true, restMs: null })).toBe("failing");
    expect(stands({ isFailing: true, job: "stopped" })).toBe("down");
    expect(stands({ isFailing: true, isStalled: true })).toBe("behind");
  });

  it("is behind while rows wait, however long ago others were processed", () => {
    expect(stands({ isStalled: true, restMs: QUIET_MS + 1, lagMs: null })).toBe("behind");
    expect(stands({ isStalled: true, restMs: null })).toBe("behind");
    expect(stands({ isStalled: true, job: "stopped" })).toBe("down");
  });

  it("is the socket's state without a connection, and the past while that is shown", () => {
    expect(stands({ connection: "reconnecting", silentMs: 99_000 })).toBe("reconnecting");
    expect(stands({ isLoaded: false, silentMs: 99_000 })).toBe("loading");
    expect(stands({ isClockLive: false, silentMs: 99_000 })).toBe("past");
  });
});
