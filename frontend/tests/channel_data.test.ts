import { describe, expect, it } from "vitest";
import { delivery, escalationWords, type Delivery } from "../src/data/channel_data";

const sent = (alerts: number[], escalations: number[]): Delivery =>
  delivery({
    id: 1,
    test: false,
    alerts,
    escalations,
    created_at: "2026-11-30T12:00:00Z",
    attempts: 1,
    next_at: "2026-11-30T12:00:00Z",
    sent_at: "2026-11-30T12:00:01Z",
    failed_at: null,
    status_code: 200,
    error: "",
  });

describe("what was sent", () => {
  it("names the escalation that a message is", () => {
    expect(escalationWords(sent([7], [10]))).toBe("Escalation: not acknowledged within 10 min");
    expect(escalationWords(sent([7], []))).toBe("");
  });

  it("counts the escalations in a message about several alerts", () => {
    expect(escalationWords(sent([7, 8, 9], [10, 5]))).toBe("2 of them by an escalation");
    expect(escalationWords(sent([7, 8], [5]))).toBe("one of them by an escalation");
  });
});
