/** The secret in what stands behind an address. Mail programs may write some of its characters with percent signs. */
export function secretOf(hash: string): string {
  const text = hash.replace(/^#/, "");
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
