/** The entries of a feed's form, for the API. */

/**
 * One "speed: float" per line, as an object; a line without a type is sent unchanged: the
 * server reports the fault.
 */
export function columnsOf(text: string): Record<string, string> {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return colon < 0 ? [line, ""] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    }),
  );
}
