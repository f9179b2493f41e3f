/** One feed's live session: the socket, the pure state, and the notifications for the views. */

import { applyChanges, applyPositions, applySnapshot, emptyLiveData, type LiveData, type Outcome } from "./live_data";
import type { Alert, Detection, Position } from "../lib/shapes";
import { dispatch, type Handlers } from "../live/dispatch";
import type { StatusFrame } from "../live/frames";
import { liveUrl, LiveSocket, type ConnectionState } from "../live/socket";

export interface News {
  /** A snapshot replaced everything. */
  isSnapshot: boolean;
  changed: Detection[];
  removed: string[];
  alerts: Alert[];
  /** The queries of which another version, or none, runs from now on. */
  queries: string[];
}

export interface SessionHandlers {
  onNews: (news: News) => void;
  /** `clock`: the greatest event time of the feed at that moment. */
  onPositions: (positions: Position[], clock: number | null) => void;
  onStatus: (status: StatusFrame) => void;
  onState: (state: ConnectionState) => void;
  onError: (message: string) => void;
}

export class LiveSession {
  readonly data: LiveData;
  private readonly socket: LiveSocket;
  private box: [number, number, number, number] | null = null;
  private isWaiting = false;

  constructor(
    feed: string,
    private readonly handlers: SessionHandlers,
  ) {
    this.data = emptyLiveData(feed);
    this.socket = new LiveSocket({
      url: liveUrl(),
      onFrame: (frame) => dispatch(this.table, frame),
      onOpen: () => this.subscribe(),
      onState: (state) => handlers.onState(state),
    });
  }

  open(): void {
    this.socket.open();
  }

  close(): void {
    this.socket.close();
  }

  retryNow(): void {
    this.socket.retryNow();
  }

  /**
   * Positions are sent only for this map view, in the feed's coordinates;
   * answers are always complete.
   */
  setView(box: [number, number, number, number]): void {
    this.box = box;
    this.socket.send({ type: "view", feed: this.data.feed, bbox: box });
  }

  private subscribe(): void {
    this.isWaiting = false;
    this.socket.send({ type: "subscribe", feed: this.data.feed, queries: null, bbox: null, since: this.data.seq, from: null });
    if (this.box !== null) this.socket.send({ type: "view", feed: this.data.feed, bbox: this.box });
  }

  private readonly table: Handlers = {
    snapshot: (frame) => {
      this.isWaiting = false;
      this.take(applySnapshot(this.data, frame));
      if (frame.feed === this.data.feed) this.handlers.onPositions(frame.positions, frame.clock);
    },
    changes: (frame) => this.take(applyChanges(this.data, frame)),
    positions: (frame) => this.handlers.onPositions(applyPositions(this.data, frame), frame.t),
    status: (frame) => {
      if (frame.feed === this.data.feed) this.handlers.onStatus(frame);
    },
    resync: (frame) => {
      if (frame.feed !== this.data.feed) return;
      this.data.seq = null;
      this.subscribe();
    },
    error: (frame) => this.handlers.onError(frame.message === "" ? frame.code : frame.message),
  };

  private take(outcome: Outcome): void {
    if (outcome.kind === "applied" || outcome.kind === "repeated") {
      this.isWaiting = false;
      if (outcome.kind === "applied") this.handlers.onNews(outcome);
      // Every frame is acknowledged: for the server, missing acknowledgements mean that the reader
      // cannot keep up.
      if (this.data.seq !== null) this.socket.send({ type: "ack", feed: this.data.feed, seq: this.data.seq });
    } else if (outcome.kind === "gap" && !this.isWaiting) {
      // Requested once: frames that arrive after the gap would request it again.
      this.subscribe();
      this.isWaiting = true;
    }
  }
}
