import { expect, test } from "vitest";
import { actorText, detailText, entry, objectText } from "../src/data/audit_data";

const row = entry({
  id: 1,
  at: "2026-01-01T00:00:00Z",
  actor_name: "ann",
  means: "token",
  token: "vdt_abc",
  address: null,
  action: "query.change",
  outcome: "done",
  status: 200,
  object_type: "query",
  object_id: "3",
  object_name: "Gate",
  request: "",
  detail: { old_name: "Door", count: 2 },
});

test("an entry names the user, the action and details", () => {
  expect(actorText(row)).toBe("ann, token vdt_abc…");
  expect(objectText(row)).toBe("query 3 “Gate”");
  expect(detailText(row)).toBe("old name: Door · count: 2");
});

test("anonymous users and commands have labels", () => {
  expect(actorText({ ...row, means: "nobody" })).toBe("not logged in");
  expect(actorText({ ...row, means: "command" })).toBe("ann, command on the server");
  expect(actorText({ ...row, means: "session" })).toBe("ann");
});
