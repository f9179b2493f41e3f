/** Work in pieces: between two of them the browser paints, and hears the reader. */

export function nextTask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
