import { expect, test } from "vitest";
import { secretOf } from "../src/lib/secret_links";

test("a secret is read from the fragment, also percent-encoded", () => {
  expect(secretOf("#abc_-1:xyz")).toBe("abc_-1:xyz");
  expect(secretOf("#abc_-1%3Axyz")).toBe("abc_-1:xyz");
  expect(secretOf("#100%")).toBe("100%");
  expect(secretOf("")).toBe("");
});
