import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { backoff, LiveSocket, type ConnectionState } from "../src/live/socket";

class FakeSocket {
  static all: FakeSocket[] = [];
  readyState = 0;
  sent: string[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  constructor() {
    FakeSocket.all.push(this);
  }
  send(text: string): void {
    this.sent.push(text);
  }
  close(code = 1000): void {
    this.drop(code);
  }
  accept(): void {
    this.readyState = 1;
    this.onopen?.();
  }
  drop(code: number): void {
    this.readyState = 3;
    this.onclose?.({ code });
  }
}

const last = (): FakeSocket => FakeSocket.all[FakeSocket.all.length - 1]!;

function open(frames: string[] = []): { socket: LiveSocket; states: ConnectionState[]; opened: () => number } {
  const states: ConnectionState[] = [];
  let count = 0;
  const socket = new LiveSocket({
    url: "ws://test",
    create: () => new FakeSocket() as unknown as WebSocket,
    random: () => 1,
    onFrame: (frame) => frames.push(frame.type),
    onOpen: () => (count += 1),
    onState: (state) => states.push(state),
  });
  socket.open();
  return { socket, states, opened: () => count };
}

describe("the live socket", () => {
  beforeEach(() => {
    FakeSocket.all = [];
    vi.useFakeTimers();
  });
  afterEach(() => vi.useRealTimers());

  it("waits longer after each failure, at most fifteen seconds, with jitter", () => {
    expect([0, 1, 2, 9].map((attempt) => backoff(attempt, () => 1))).toEqual([400, 800, 1600, 15_000]);
    expect(backoff(2, () => 0)).toBe(800);
  });

  it("reconnects and subscribes again", () => {
    const { states, opened } = open();
    last().accept();
    last().drop(1012);
    expect(states).toEqual(["connecting", "open", "reconnecting"]);
    vi.advanceTimersByTime(400);
    expect(FakeSocket.all).toHaveLength(2);
    last().accept();
    expect(opened()).toBe(2);
  });

  it("waits for seconds when the server stops, as all other pages reconnect too", () => {
    open();
    last().accept();
    last().drop(4503);
    vi.advanceTimersByTime(3_199);
    expect(FakeSocket.all).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(FakeSocket.all).toHaveLength(2);
  });

  it.each([
    [4401, "refused"],
    [4403, "forbidden"],
  ] as const)("stays closed after %d", (code, state) => {
    const { states } = open();
    last().accept();
    last().drop(code);
    vi.advanceTimersByTime(60_000);
    expect(states.at(-1)).toBe(state);
    expect(FakeSocket.all).toHaveLength(1);
  });

  it("does not reconnect after it was closed on purpose", () => {
    const { socket } = open();
    last().accept();
    socket.close();
    socket.close();
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.all).toHaveLength(1);
  });

  it("reconnects after an invalid frame", () => {
    const frames: string[] = [];
    open(frames);
    last().accept();
    last().onmessage?.({ data: '{"type":"resync","feed":"city"}' });
    last().onmessage?.({ data: "nonsense" });
    vi.advanceTimersByTime(400);
    expect(frames).toEqual(["resync"]);
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("takes a long silence for a dead connection", () => {
    open();
    last().accept();
    vi.advanceTimersByTime(39_000);
    expect(FakeSocket.all).toHaveLength(1);
    vi.advanceTimersByTime(2000);
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("sends only over an open connection", () => {
    const { socket } = open();
    expect(socket.send({ type: "unsubscribe", feed: "city" })).toBe(false);
    last().accept();
    expect(socket.send({ type: "unsubscribe", feed: "city" })).toBe(true);
    expect(last().sent).toEqual(['{"type":"unsubscribe","feed":"city"}']);
  });
});
