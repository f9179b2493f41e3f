/** What is typed into the form of a feed, as the API takes it. */

/** "speed: float" a line, as an object; a line without a type goes as it is, for the server to say what is wrong. */
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
