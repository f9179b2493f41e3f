import { expect, test } from "vitest";
import { conditionWords, rule, targetWords } from "../src/data/rule_data";

const plain = {
  id: 1,
  name: "Night",
  enabled: true,
  feed: null,
  queries: [],
  tags: [],
  regions: [],
  min_severity: "info",
  days: [],
  from_time: null,
  until_time: null,
  zone: "UTC",
  after_minutes: 0,
  channels: [2, 9],
  teams: [],
  people: [],
};

test("a rule without conditions matches all alerts", () => {
  expect(conditionWords(rule(plain))).toBe("All alerts");
});

test("each condition of a rule is described", () => {
  const asking = {
    feed: "city",
    queries: [1, 2],
    tags: ["a", "b"],
    regions: [1],
    min_severity: "high",
    days: [6],
    from_time: "22:00:00",
    after_minutes: 5,
  };
  expect(conditionWords(rule({ ...plain, ...asking, until_time: "06:00:00", zone: "Europe/Athens" })).split(" · ")).toEqual([
    "High and above",
    "city",
    "2 queries",
    "tag a or tag b",
    "1 region",
    "Sunday",
    "22:00 to 06:00 Europe/Athens",
    "after 5 min without acknowledgement",
  ]);
});

test("targets are named if the reader knows their names", () => {
  const one = rule({ ...plain, teams: [1], people: ["ben"], shifts: [4, 5] });
  const words = targetWords(one, new Map([["2", "desk"]]), new Map([["1", "watch"]]), new Map([["4", "Night"]]));
  expect(words).toBe("desk, a channel, all of watch, ben's own, on call in “Night”, on call in “a shift”");
});

test("the schedule of messages is described", () => {
  const night = { quiet_from: "22:00:00", quiet_until: "06:00:00", digest: "daily", digest_at: "07:30:00", group_by: "entity" };
  expect(conditionWords(rule({ ...plain, ...night }))).toBe(
    "All alerts · quiet 22:00 to 06:00 · a digest at 07:30 · one message by entity in 30 min · critical ones immediately",
  );
  expect(conditionWords(rule({ ...plain, digest: "hourly", critical_passes: false }))).toBe("All alerts · a digest every hour");
  expect(conditionWords(rule({ ...plain, min_severity: "critical" })).split(" · ")[0]).toBe("Critical only");
});
