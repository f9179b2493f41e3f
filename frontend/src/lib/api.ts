/** The REST API: JSON in and out, the CSRF token, faults by JSON pointer, pages of lists. */

import { t } from "./texts";
import { integer, isObject, list, nullable, otherwise, record, string, type Parser } from "./parse";

export interface Fault {
  /** RFC 6901; "" is the whole document. */
  pointer: string;
  message: string;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly faults: Fault[],
  ) {
    super(faults[0]?.message ?? t("the server answered {status}", { status }));
    this.name = "ApiError";
  }
}

export const faultList = list(record({ pointer: otherwise(string, ""), message: string }));
/** A fault of a text, with its line and column counted from 1; null if it has none. */
export const placedFault = record({ pointer: otherwise(string, ""), message: string, line: nullable(integer), column: nullable(integer) });
export type PlacedFault = ReturnType<typeof placedFault>;
const ROOT = "/api/v1/";
/** A header of the server's answer to a request with a token that is no longer valid. */
export const OUTDATED = "X-Page-Outdated";

/**
 * The page behind a link requested data that it does not have. Not a fault of the reader: `fail`
 * does not report it.
 */
export class NotShared extends ApiError {
  constructor() {
    super(403, [{ pointer: "", message: t("This is not part of what the link shows.") }]);
    this.name = "NotShared";
  }
}

let documents: ReadonlyMap<string, unknown> | null = null;

/** Answers further requests from these documents, by path: the page behind a link has no API. */
export function answerFrom(given: ReadonlyMap<string, unknown>): void {
  documents = given;
}

/** Whether this is the page behind a link, whose reader may have no account. */
export const isShared = (): boolean => documents !== null;

async function faultsOf(response: Response): Promise<Fault[]> {
  if (response.status === 401)
    return [{ pointer: "", message: t("You are logged out. Log in again in another tab and repeat this: your entries are kept.") }];
  try {
    const body: unknown = await response.json();
    if (isObject(body) && Array.isArray(body["faults"])) return faultList(body["faults"]);
    if (isObject(body) && typeof body["detail"] === "string") return [{ pointer: "", message: body["detail"] }];
  } catch {
    // The body is not JSON: only the status is known.
  }
  const known: Record<number, string> = {
    403: t("You are not permitted to do this. Ask the owner, or an admin of the team."),
    404: t("It no longer exists, or is no longer shared with you."),
    413: t("The file is too large."),
    429: t("Too many requests: wait a moment."),
  };
  return [
    {
      pointer: "",
      message:
        known[response.status] ??
        t("The server answered with the status {status}. Try again; if this persists, inform an administrator.", {
          status: response.status,
        }),
    },
  ];
}

interface Options {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  body?: unknown;
  signal?: AbortSignal;
}

/**
 * One request for JSON. Throws ApiError for an answer of 400 or more, and with status 0 when the
 * server cannot be reached.
 */
export async function call(path: string, options: Options = {}): Promise<unknown> {
  const given = documents?.get(path.split("?")[0]!);
  if (given !== undefined) return given;
  const response = await request(path, "application/json", options);
  if (response.status === 204) return null;
  const text = await response.text();
  return text === "" ? null : (JSON.parse(text) as unknown);
}

/** The bytes of a response; throws like `call`. */
export async function getBytes(path: string, signal: AbortSignal): Promise<ArrayBuffer> {
  return (await request(path, "*/*", { signal })).arrayBuffer();
}

async function request(path: string, accept: string, options: Options): Promise<Response> {
  if (documents !== null) throw new NotShared();
  let response = await send(path, accept, options);
  if (response.headers.has(OUTDATED) && (await renewToken())) response = await send(path, accept, options);
  if (!response.ok) throw new ApiError(response.status, await faultsOf(response));
  return response;
}

async function send(path: string, accept: string, { method = "GET", body, signal }: Options): Promise<Response> {
  const headers: Record<string, string> = { Accept: accept };
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
  // A form or a file is sent unchanged.
  const isPlain = body instanceof FormData || body instanceof Blob;
  if (body !== undefined && !isPlain) headers["Content-Type"] = "application/json";
  const init: RequestInit = { method, headers, credentials: "same-origin" };
  if (body !== undefined) init.body = isPlain ? body : JSON.stringify(body);
  if (signal) init.signal = signal;
  try {
    return await fetch(path.startsWith("/") ? path : ROOT + path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, [{ pointer: "", message: t("The server cannot be reached. Your entries are kept; try again.") }]);
  }
}

const tokenElement = (page: Document): HTMLMetaElement | null => page.querySelector("meta[name=csrf-token]");
export const csrfToken = (): string => tokenElement(document)?.content ?? "";

/**
 * Since this page was opened the reader has logged in again, in another tab: takes the new token,
 * so that the entries here can be stored. False if nobody is logged in, or somebody else.
 */
export async function renewToken(): Promise<boolean> {
  const response = await fetch("/account/", { credentials: "same-origin" }).catch(() => null);
  if (response?.ok !== true) return false;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  const token = tokenElement(fresh)?.content ?? "";
  const reader = readerOf(fresh);
  if (token === "" || reader === null || reader !== readerOf(document)) return false;
  tokenElement(document)?.setAttribute("content", token);
  return true;
}

/** The page's user. */
function readerOf(page: Document): string | null {
  const data: unknown = JSON.parse(page.getElementById("page-data")?.textContent ?? "null");
  const me = isObject(data) ? data["me"] : null;
  return isObject(me) && typeof me["name"] === "string" ? me["name"] : null;
}

export async function get<T>(path: string, parser: Parser<T>, signal?: AbortSignal): Promise<T> {
  return parser(await call(path, signal ? { signal } : {}));
}

export async function post<T>(path: string, body: unknown, parser: Parser<T>, signal?: AbortSignal): Promise<T> {
  return parser(await call(path, { method: "POST", body, ...(signal ? { signal } : {}) }));
}

export interface Page<T> {
  results: T[];
  next: string | null;
}

/** A list, complete or in pages. */
export function page<T>(inner: Parser<T>): Parser<Page<T>> {
  return (value, path = "") => {
    if (Array.isArray(value)) return { results: list(inner)(value, path), next: null };
    const source = record({ results: list(inner), next: (next: unknown) => (typeof next === "string" && next !== "" ? next : null) })(
      value,
      path,
    );
    return source;
  };
}

/** Every page of a list, up to `most` rows. */
export async function getAll<T>(path: string, inner: Parser<T>, most = 5000, signal?: AbortSignal): Promise<T[]> {
  const rows: T[] = [];
  let next: string | null = path;
  while (next !== null && rows.length < most) {
    const one: Page<T> = await get(next, page(inner), signal);
    rows.push(...one.results);
    next = one.next === null ? null : sameOrigin(one.next);
  }
  return rows;
}

/** The wanted results of the first page that has some, among at most `most` pages. */
export async function getFirst<T>(path: string, inner: Parser<T>, isWanted: (row: T) => boolean, most: number): Promise<T[]> {
  let next: string | null = path;
  for (let i = 0; next !== null && i < most; i++) {
    const one: Page<T> = await get(next, page(inner));
    const wanted = one.results.filter(isWanted);
    if (wanted.length > 0) return wanted;
    next = one.next === null ? null : sameOrigin(one.next);
  }
  return [];
}

/** Links of a page may name the host as the server sees it; only their path is used. */
function sameOrigin(link: string): string {
  const url = new URL(link, location.href);
  return url.pathname + url.search;
}

export function query(path: string, parameters: Record<string, string | number | null | undefined>): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters))
    if (value !== null && value !== undefined && value !== "") search.set(key, String(value));
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : t("Something went wrong. Reload the page and try again.");
}
