/** Long work in pieces: between two of them the browser can paint and handle input. */

export function nextTask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
