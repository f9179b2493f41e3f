/** The refused rows of a feed: their reasons, and their repair, one by hand or all by a rule. */

import { deadLetter, type DeadLetter, type Feed, type FeedStatus } from "../lib/shapes";
import { ApiError, get, page, post, query } from "../lib/api";
import { corrected } from "../lib/answers";
import { button, empty, h, icon, replace } from "../lib/dom";
import { Latest } from "../lib/latest";
import { formatMoment, formatNumber, type Zone } from "../lib/time";
import { capitalised, reasonName, REASONS } from "../lib/words";
import { openDialog } from "./dialog_view";
import { letterForm, type LetterForm } from "./letter_form";
import { fail } from "./shell_view";
import { t } from "../lib/texts";

const SHOWN = 50;
const RULES: [string, string][] = [
  ["decimal_comma", t("Decimal comma: 12,5 is 12.5")],
  ["seconds", t("Times are seconds")],
  ["swapped", t("x and y are exchanged")],
  ["as_is", t("As they are: the feed was changed")],
];

export async function showDeadLetters(feed: FeedStatus, zone: Zone): Promise<void> {
  const place = h("div", { class: "stack" });
  // Few refused rows may be below thousands of late ones.
  const reason = h(
    "select",
    { class: "select", "aria-label": t("Reason") },
    h("option", { value: "" }, t("Every reason")),
    ...Object.entries(REASONS).map(([value, text]) => h("option", { value }, text)),
  );
  // In the dialog: a toast would be hidden behind it.
  const outcome = h("p", { class: "notice", role: "status", hidden: true });
  const dialog = openDialog(
    t("Dead letters"),
    h("p", { class: "small muted" }, t("Rows that were refused or came too late, with the reason; nothing is dropped silently.")),
    h("div", { class: "row" }, h("div", { class: "letter-rule" }, reason)),
    outcome,
    place,
  );
  dialog.element.classList.add("dialog-wide");
  dialog.foot.append(
    h("a", { class: "button", href: `/api/v1/feeds/${encodeURIComponent(feed.name)}/dead-letters.csv` }, icon("download"), t("All as CSV")),
  );
  let rows: DeadLetter[] = [];
  let next: string | null = null;
  let most = SHOWN;
  /** Further rows of the list, or the whole list: a newer request replaces an older one. */
  const loading = new Latest<[isMore: boolean]>(async (signal, isMore) => {
    let found = isMore ? rows : [];
    let link = isMore ? next : query(`feeds/${feed.name}/dead-letters`, { reason: reason.value });
    while (found.length < most && link !== null) {
      const part = await get(link, page(deadLetter), signal);
      found = [...found, ...part.results];
      link = part.next === null ? null : pathOf(part.next);
    }
    [rows, next] = [found, link];
    replace(place, ...shown());
  }, fail);
  const showMore = (): void => {
    most += SHOWN;
    void loading.now(true);
  };
  const showResult = (text: string, isGood: boolean): void => {
    outcome.hidden = false;
    outcome.className = `notice ${isGood ? "notice-good" : "notice-critical"}`;
    outcome.textContent = text;
    // The list may be long, and the row that was corrected far down.
    outcome.scrollIntoView({ block: "nearest" });
  };
  const send: Send = async (body) => {
    try {
      const { sent, late, wrong, refused, left, problems } = await post(`feeds/${feed.name}/dead-letters/correct`, body, corrected);
      const parts = [
        t("{count} sent", { count: formatNumber(sent) }),
        late > 0 ? t("{late} of them too late to count", { late: formatNumber(late) }) : "",
        wrong > 0 ? t("{wrong} still wrong", { wrong: formatNumber(wrong) }) : "",
        refused > 0 ? t("{refused} refused by the feed's clock", { refused: formatNumber(refused) }) : "",
        left > 0 ? t("{left} remaining: send again", { left: formatNumber(left) }) : "",
      ].filter((part) => part !== "");
      const result = [
        `${parts.join(", ")}.`,
        problems[0] === undefined ? "" : `${capitalised(problems[0].detail)}.`,
        late > 0 ? t("The feed has passed their times: to make them count, correct the file and load it into a new feed.") : "",
      ];
      showResult(result.filter((part) => part !== "").join(" "), sent > late);
      // The typed text is kept until it is valid.
      if (sent > 0) await loading.now(false);
      return sent > 0;
    } catch (error) {
      if (error instanceof ApiError && error.faults[0] !== undefined) showResult(error.faults[0].message, false);
      else fail(error);
      return false;
    }
  };
  const shown = (): (Element | null)[] => {
    if (rows.length === 0) {
      const of = reason.value === "" ? t("Every row that arrived could be used.") : t("No row was refused for this reason.");
      return [empty("circle-check", t("None"), of)];
    }
    const waiting = rows.filter((row) => row.sent_at === null);
    const reasons = [...new Set(waiting.map((row) => row.reason))];
    const badges = reasons.map((reason) =>
      h("span", { class: "badge badge-high" }, `${reasonName(reason)} × ${waiting.filter((row) => row.reason === reason).length}`),
    );
    const mayCorrect = feed.editable && rows.some((row) => isCorrectable(row) && row.reason !== "late");
    return [
      h("div", { class: "row row-wrap" }, ...badges, next === null ? "" : counted(rows.length)),
      mayCorrect ? rules((body) => send({ ...body, reason: reason.value })) : null,
      h(
        "ul",
        { class: "stack", "aria-label": t("Dead letters") },
        ...rows.slice(0, most).map((row) => letter(row, feed, zone, feed.editable ? send : null)),
      ),
      rows.length <= most && next === null ? null : button(t("Show more"), { onClick: showMore }),
    ];
  };
  reason.addEventListener("change", () => {
    most = SHOWN;
    outcome.hidden = true;
    rows = [];
    replace(place);
    void loading.now(false);
  });
  await loading.now(false);
}

/** The server's address of the next page, in the form for `get`. */
function pathOf(link: string): string {
  const url = new URL(link, location.href);
  return url.pathname + url.search;
}

const counted = (count: number): HTMLElement =>
  h("span", { class: "small muted" }, t("Of the newest {count}: there are more.", { count: formatNumber(count) }));

type Send = (body: Record<string, unknown>) => Promise<boolean>;

const isCorrectable = (row: DeadLetter): boolean => row.sent_at === null && row.row !== null;

function rules(send: Send): HTMLElement {
  const rule = h("select", { class: "select", "aria-label": t("Rule") }, ...RULES.map(([value, text]) => h("option", { value }, text)));
  return h(
    "div",
    { class: "row row-wrap" },
    h("div", { class: "letter-rule" }, rule),
    button(t("Correct all and send them again"), { icon: "send", onClick: () => send({ rule: rule.value }) }),
  );
}

/** `send` is null where the reader may not correct it. */
function letter(row: DeadLetter, feed: Feed, zone: Zone, send: Send | null): HTMLElement {
  const text = h(
    "code",
    { class: "mono letter-row", id: `letter-${row.id}` },
    row.row === null ? t("the row could not be read") : JSON.stringify(row.row),
  );
  const element = h(
    "li",
    { class: "letter" },
    h(
      "div",
      { class: "row spread" },
      h("strong", {}, reasonName(row.reason)),
      h("span", { class: "small faint num" }, formatMoment(row.received_at, "ms", zone)),
    ),
    h(
      "p",
      { class: "small muted" },
      row.detail,
      row.source === "" ? "" : ` · ${row.source}`,
      row.line === null ? "" : t(", line {line}", { line: row.line }),
    ),
    text,
  );
  if (row.sent_at !== null)
    element.append(
      h("span", { class: "badge badge-good" }, t("Corrected and sent at {sentat}", { sentat: formatMoment(row.sent_at, "ms", zone) })),
    );
  else if (send !== null && isCorrectable(row) && !isExact(row.row))
    element.append(
      h("p", { class: "small muted" }, t("A number has more digits than a browser keeps: correct it by a rule, or by the API.")),
    );
  else if (send !== null && isCorrectable(row))
    element.append(
      button(t("Correct"), {
        icon: "pencil",
        kind: "button-sm",
        "aria-describedby": text.id,
        onClick: () => edit(element, text, letterForm(row, feed), (corrected) => send({ id: Number(row.id), row: corrected })),
      }),
    );
  return element;
}

/** Whether JavaScript kept all digits of its numbers. */
function isExact(value: unknown): boolean {
  if (typeof value === "number") return Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  return typeof value !== "object" || value === null || Object.values(value).every(isExact);
}

/** Replaces the row's text by a form. */
function edit(element: HTMLElement, text: HTMLElement, form: LetterForm, send: (row: object) => unknown): void {
  const take = (): void => {
    const row = form.row();
    if (row !== null) void send(row);
  };
  text.replaceWith(form.element);
  element.lastElementChild?.replaceWith(button(t("Send it"), { icon: "send", kind: "button-sm button-primary", onClick: take }));
  form.focus();
}
