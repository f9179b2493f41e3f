import { describe, expect, it } from "vitest";
import { browserName } from "../src/lib/push";
import { isHeard } from "../src/lib/sound";

describe("push messages", () => {
  it("names a browser so that its owner recognises it", () => {
    const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
    const phone =
      "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Safari/604.1";
    expect(
      [chrome, `${chrome} Edg/140.0`, phone, "Mozilla/5.0 (Windows NT 10.0) Gecko/20100101 Firefox/143.0", ""].map(browserName),
    ).toEqual(["Chrome on Linux", "Edge on Linux", "Safari on iOS", "Firefox on Windows", "A browser on this device"]);
  });
});

describe("sounds of alerts", () => {
  it("are made for severe alerts, and not right after another unless more severe", () => {
    const before = { severity: "high", at: 10_000 } as const;
    expect(isHeard("critical", null, null, 0)).toBe(false);
    expect(isHeard("low", "high", null, 0)).toBe(false);
    expect(isHeard("high", "high", null, 0)).toBe(true);
    expect(isHeard("high", "high", before, 11_999)).toBe(false);
    expect(isHeard("critical", "high", before, 10_100)).toBe(true);
    expect(isHeard("high", "high", before, 12_000)).toBe(true);
  });
});
