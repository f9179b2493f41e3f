/**
 * The first step: a file is dropped or chosen, and sent in parts; an interrupted upload continues.
 */

import * as tus from "tus-js-client";
import { csrfToken, OUTDATED, renewToken } from "../../lib/api";
import { button, h, icon } from "../../lib/dom";
import { formatNumber } from "../../lib/time";
import { acceptFiles } from "../file_drops";
import { toast } from "../shell_view";
import { t } from "../../lib/texts";

/** Bytes of a part: an interruption on a slow line loses at most one. */
const PART = 8_000_000;
const ADDRESS = "/api/v1/uploads/";

/** The drop area; `done` gets the id of the complete upload. */
export function uploadStep(done: (id: string) => void): HTMLElement {
  const chooser = h("input", { type: "file", id: "wizard-file", class: "visually-hidden" });
  const place = h(
    "label",
    { class: "drop", for: "wizard-file" },
    icon("file-up"),
    h("strong", {}, t("Drop a recording here, or choose a file")),
    h(
      "span",
      { class: "small muted" },
      t("CSV, JSON lines, GeoJSON, GPX, KML, Parquet, Arrow, Excel, or a log of an AIS receiver; also as .gz."),
    ),
    chooser,
  );
  const status = h("div", { class: "stack", "aria-live": "polite", hidden: true });
  const begin = (file: File | undefined): void => {
    if (file !== undefined) void sendFile(file, status, done);
  };
  chooser.addEventListener("change", () => begin(chooser.files?.[0]));
  const step = h("div", { class: "stack-lg" }, place, status);
  // Anywhere on the page, as long as it shows this step.
  acceptFiles(
    document,
    (files) => {
      if (step.isConnected) begin(files[0]);
    },
    (isOver) => place.classList.toggle("drop-over", isOver),
  );
  return step;
}

/**
 * Sends the file in parts and shows the progress in `status`; `done` gets the
 * id of the complete upload.
 */
export async function sendFile(file: File, status: HTMLElement, done: (id: string) => void): Promise<void> {
  const bar = h("i", { vars: { "--w": "0%", "--bar-colour": "var(--accent)" } });
  const words = h("span", { class: "small muted num" }, "");
  const pause = button(t("Pause"), { icon: "pause", kind: "button-sm" });
  status.hidden = false;
  status.replaceChildren(
    h("div", { class: "row spread" }, h("strong", {}, file.name), words, pause),
    h("div", { class: "progress", role: "progressbar", "aria-label": t("Upload of {name}", { name: file.name }) }, bar),
  );
  let isRunning = true;
  let isRenewed = false;
  const show = (sent: number, whole: number): void => {
    bar.style.setProperty("--w", `${whole === 0 ? 0 : (sent / whole) * 100}%`);
    words.textContent = t("{sent} of {whole} MB", {
      sent: formatNumber(Math.round(sent / 1e5) / 10),
      whole: formatNumber(Math.round(whole / 1e5) / 10),
    });
  };
  const failed = async (error: Error): Promise<void> => {
    if (!isRenewed && isOutdated(error)) {
      isRenewed = true;
      if (await renewToken()) {
        upload.start();
        return;
      }
    }
    isRunning = false;
    pause.lastChild!.textContent = t("Continue");
    toast(refusal(error), "critical");
  };
  const upload = new tus.Upload(file, {
    endpoint: ADDRESS,
    chunkSize: PART,
    retryDelays: [0, 1000, 3000, 5000, 10_000],
    removeFingerprintOnSuccess: true,
    metadata: { filename: file.name },
    onBeforeRequest: (request) => {
      request.setHeader("X-CSRFToken", csrfToken());
    },
    onProgress: show,
    onError: (error) => void failed(error),
    onSuccess: () => {
      const id = /([0-9a-f-]{36})\/?$/.exec(upload.url ?? "")?.[1];
      if (id !== undefined) done(id);
    },
  });
  pause.addEventListener("click", () => {
    isRunning = !isRunning;
    pause.lastChild!.textContent = isRunning ? t("Pause") : t("Continue");
    if (isRunning) upload.start();
    else void upload.abort();
  });
  // An upload of the same file, started earlier in this browser.
  const [before] = await upload.findPreviousUploads();
  if (before !== undefined) upload.resumeFromPreviousUpload(before);
  upload.start();
}

/** The reader has logged in again, in another tab. */
function isOutdated(error: Error): boolean {
  return error instanceof tus.DetailedError && (error.originalResponse?.getHeader(OUTDATED) ?? "") !== "";
}

function refusal(error: Error): string {
  const answer = error instanceof tus.DetailedError ? error.originalResponse : null;
  // The server's own words are for programs.
  if (answer?.getStatus() === 401)
    return t("You are logged out. Log in again in another tab and continue here: the part received is kept.");
  const body = answer?.getBody();
  const message = /"message":\s*"([^"]+)"/.exec(body ?? "")?.[1];
  return message ?? t("The upload was interrupted. Continue when the server can be reached: the part received is kept.");
}
