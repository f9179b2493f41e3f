/** Names in letters of ASCII. */

const LETTERS: Record<string, string> = { ä: "ae", ö: "oe", ü: "ue", ß: "ss", æ: "ae", ø: "oe", å: "aa", ł: "l" };

/** The name in lower case and in letters of ASCII, where it has such letters: as the server spells it. */
export function withoutAccents(name: string): string {
  const composed = name
    .normalize("NFC")
    .toLowerCase()
    .replace(/[äöüßæøåł]/g, (letter) => LETTERS[letter]!);
  return composed.normalize("NFKD").replace(/\p{M}/gu, "");
}
