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
const stateOf = (facts: Partial<Known>): string => connectionStatus({ ...WELL, ...facts });

describe("the connection state of the page", () => {
  it("is live while all is well, also right after a start of the job", () => {
    expect(stateOf({})).toBe("live");
    expect(stateOf({ job: "starting" })).toBe("live");
    expect(stateOf({ lagMs: null })).toBe("live");
  });

  it("is a silent server, though the connection is open", () => {
    expect(stateOf({ silentMs: SILENT_MS + 1, job: "backoff", lagMs: 90_000 })).toBe("silent");
  });

  it("is a job that is down, whatever the feed's clock", () => {
    for (const job of ["stopped", "stopping", "backoff", "crash_loop"]) expect(stateOf({ job, lagMs: null })).toBe("down");
  });

  it("is late events, beyond the feed's lateness", () => {
    expect(stateOf({ lagMs: 16_900 })).toBe("live");
    expect(stateOf({ lagMs: 17_100 })).toBe("behind");
  });

  it("is the end of the rows, whatever the feed's clock, and no rows before the first", () => {
    expect(stateOf({ restMs: QUIET_MS })).toBe("live");
    expect(stateOf({ restMs: QUIET_MS + 1, lagMs: null })).toBe("ended");
    expect(stateOf({ restMs: QUIET_MS + 1, lagMs: 90_000 })).toBe("ended");
    expect(stateOf({ restMs: null, lagMs: null })).toBe("empty");
    expect(stateOf({ restMs: null, job: "stopped" })).toBe("down");
  });

  it("is a connector that fails, whether other rows come or not, unless the job is down or behind", () => {
    expect(stateOf({ isFailing: true })).toBe("failing");
    expect(stateOf({ isFailing: true, restMs: QUIET_MS + 1 })).toBe("failing");
    expect(stateOf({ isFailing: true, restMs: null })).toBe("failing");
    expect(stateOf({ isFailing: true, job: "stopped" })).toBe("down");
    expect(stateOf({ isFailing: true, isStalled: true })).toBe("behind");
  });

  it("is behind while rows wait, however long ago others were processed", () => {
    expect(stateOf({ isStalled: true, restMs: QUIET_MS + 1, lagMs: null })).toBe("behind");
    expect(stateOf({ isStalled: true, restMs: null })).toBe("behind");
    expect(stateOf({ isStalled: true, job: "stopped" })).toBe("down");
  });

  it("is the socket's state without a connection, and the past while that is shown", () => {
    expect(stateOf({ connection: "reconnecting", silentMs: 99_000 })).toBe("reconnecting");
    expect(stateOf({ isLoaded: false, silentMs: 99_000 })).toBe("loading");
    expect(stateOf({ isClockLive: false, silentMs: 99_000 })).toBe("past");
  });
});
