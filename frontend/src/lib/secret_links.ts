/**
 * The secret in the fragment of an address. Mail programs may
 * percent-encode some of its characters.
 */
export function secretOf(hash: string): string {
  const text = hash.replace(/^#/, "");
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
