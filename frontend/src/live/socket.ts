/**
 * The live socket: opens, reconnects with jitter, and reports its state.
 * `frames.ts` handles its content.
 */

import { type ClientMessage, type Frame, parseFrame } from "./frames";

/**
 * `refused`: no longer logged in; `forbidden`: the feed is not, or no longer, shared with the
 * reader.
 */
export type ConnectionState = "connecting" | "open" | "reconnecting" | "refused" | "forbidden";

export interface SocketOptions {
  url: string;
  onFrame: (frame: Frame) => void;
  /**
   * Called after each connection is open; subscribe here with `since`, so that no change is missed.
   */
  onOpen: () => void;
  onState: (state: ConnectionState, retryMs: number) => void;
  /** An invalid frame: the connection's state can no longer be trusted, so it is reopened. */
  onFault?: (error: unknown) => void;
  random?: () => number;
  create?: (url: string) => WebSocket;
}

const FIRST_MS = 400;
const MOST_MS = 15_000;
/**
 * Without a frame for this long the connection counts as dead: the server sends a
 * status every few seconds.
 */
const SILENCE_MS = 40_000;
/**
 * The server stops: all its pages have to reconnect, beginning with the wait of
 * this attempt (1.6 to 3.2 s).
 */
const RESTARTING = 4503;
const RESTARTING_ATTEMPT = 3;
const CLOSED_FOR_GOOD = new Map<number, ConnectionState>([
  [4401, "refused"],
  [4403, "forbidden"],
]);

/**
 * The wait before attempt `attempt` (from 0): half fixed, half random, so that a restart
 * does not cause a stampede.
 */
export function backoff(attempt: number, random: () => number): number {
  const most = Math.min(MOST_MS, FIRST_MS * 2 ** attempt);
  return most / 2 + (most / 2) * random();
}

export class LiveSocket {
  private socket: WebSocket | null = null;
  private attempt = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private silence: ReturnType<typeof setTimeout> | null = null;
  private isWanted = false;
  /** The server closed it permanently; the reader may request another attempt. */
  private isEnded = false;
  private readonly online = (): void => this.retryNow();

  constructor(private readonly options: SocketOptions) {}

  open(): void {
    if (this.isWanted) return;
    this.isWanted = true;
    this.isEnded = false;
    if (typeof window !== "undefined") window.addEventListener("online", this.online);
    this.connect();
  }

  close(): void {
    this.isWanted = false;
    this.isEnded = false;
    if (typeof window !== "undefined") window.removeEventListener("online", this.online);
    this.clearTimers();
    this.socket?.close(1000);
    this.socket = null;
  }

  /** False if there is no open connection; subscribers then send again in `onOpen`. */
  send(message: ClientMessage): boolean {
    if (this.socket?.readyState !== 1) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  /** Reconnects immediately: the reader pressed the state, or the network came back. */
  retryNow(): void {
    if (this.isEnded) this.open();
    if (!this.isWanted || this.timer === null) return;
    this.clearTimers();
    this.connect();
  }

  private connect(): void {
    this.options.onState(this.attempt === 0 ? "connecting" : "reconnecting", 0);
    const create = this.options.create ?? ((url: string) => new WebSocket(url));
    const socket = create(this.options.url);
    this.socket = socket;
    socket.onopen = () => {
      this.attempt = 0;
      this.listen();
      this.options.onState("open", 0);
      this.options.onOpen();
    };
    socket.onmessage = (event: MessageEvent) => this.receive(event.data);
    socket.onclose = (event: CloseEvent) => this.closed(socket, event.code);
  }

  private receive(data: unknown): void {
    this.listen();
    try {
      this.options.onFrame(parseFrame(String(data)));
    } catch (error) {
      this.options.onFault?.(error);
      this.socket?.close(4000);
    }
  }

  private closed(socket: WebSocket, code: number): void {
    if (socket !== this.socket) return;
    this.socket = null;
    this.clearTimers();
    if (!this.isWanted) return;
    const final = CLOSED_FOR_GOOD.get(code);
    if (final !== undefined) {
      this.isWanted = false;
      this.isEnded = true;
      this.options.onState(final, 0);
      return;
    }
    if (code === RESTARTING) this.attempt = Math.max(this.attempt, RESTARTING_ATTEMPT);
    const wait = backoff(this.attempt, this.options.random ?? Math.random);
    this.attempt += 1;
    this.options.onState("reconnecting", wait);
    this.timer = setTimeout(() => {
      this.timer = null;
      this.connect();
    }, wait);
  }

  private listen(): void {
    if (this.silence !== null) clearTimeout(this.silence);
    this.silence = setTimeout(() => this.socket?.close(4000), SILENCE_MS);
  }

  private clearTimers(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    if (this.silence !== null) clearTimeout(this.silence);
    this.timer = null;
    this.silence = null;
  }
}

/** The address of the page's own socket, or of the link's if this is the page behind a link. */
export function liveUrl(): string {
  const path = document.getElementById("page")?.dataset["socket"] ?? "/ws/live/";
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`;
}
