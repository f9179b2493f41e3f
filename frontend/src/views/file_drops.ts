/** Files that are dropped on the page. */

function hasFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") === true;
}

/** `take` gets the files dropped on the place; `mark` is called with whether files are over it. */
export function acceptFiles(place: EventTarget, take: (files: File[]) => void, mark: (isOver: boolean) => void = () => undefined): void {
  for (const kind of ["dragover", "dragleave", "drop"] as const) {
    place.addEventListener(kind, (dropped) => {
      const event = dropped as DragEvent;
      if (!hasFiles(event)) return;
      event.preventDefault();
      mark(kind === "dragover");
      if (kind === "drop") take([...event.dataTransfer!.files]);
    });
  }
}

/**
 * Without this, the browser leaves the page for a file that is dropped outside the places that
 * accept files.
 */
export function refuseStrayFiles(page: EventTarget): void {
  for (const kind of ["dragover", "drop"] as const) {
    page.addEventListener(kind, (dropped) => {
      const event = dropped as DragEvent;
      if (event.defaultPrevented || !hasFiles(event)) return;
      event.preventDefault();
      event.dataTransfer!.dropEffect = "none";
    });
  }
}
