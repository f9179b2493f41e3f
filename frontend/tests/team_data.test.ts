import { expect, test } from "vitest";
import { countsText } from "../src/data/team_data";
import { toBytes, toText } from "../src/lib/base64url";
import { creationOptions } from "../src/views/passkey_view";

test("transferred objects are described", () => {
  expect(countsText({ query: 2, feed: 1 })).toBe("2 queries, 1 feed");
  expect(countsText({})).toBe("nothing");
});

test("bytes survive being written as text, without padding and with the letters of addresses", () => {
  const bytes = Uint8Array.from([251, 255, 254, 0, 1]);
  const text = toText(bytes.buffer);
  expect(text).toMatch(/^[\w-]+$/);
  expect([...toBytes(text)]).toEqual([...bytes]);
});

test("a passkey without a password must verify its user", () => {
  const source = {
    creation_options: {
      publicKey: {
        challenge: "AQID",
        user: { id: "AQ", name: "ada", displayName: "ada" },
        rp: { id: "localhost" },
        authenticatorSelection: { userVerification: "discouraged" },
      },
    },
  };
  const alone = creationOptions(source, true).authenticatorSelection;
  expect([alone?.residentKey, alone?.userVerification]).toEqual(["required", "required"]);
  const secondFactor = creationOptions(source, false).authenticatorSelection;
  expect([secondFactor?.residentKey, secondFactor?.userVerification]).toEqual(["discouraged", "discouraged"]);
});
