/**
 * One request at a time, sent after a pause; a newer one aborts the previous
 * one and drops its result.
 */

export class Latest<Asked extends unknown[] = []> {
  private timer: ReturnType<typeof setTimeout> | null = null;
  private request: AbortController | null = null;

  /**
   * `ask` passes the signal on to its requests, so that they are aborted too.
   * `onFault` gets the errors of `ask`, unless it was aborted.
   */
  constructor(
    private readonly ask: (signal: AbortSignal, ...asked: Asked) => Promise<void>,
    private readonly onFault: (error: unknown) => void,
  ) {}

  /** Whether a result is pending. */
  get isAsking(): boolean {
    return this.timer !== null || this.request !== null;
  }

  /** Asks immediately. */
  async now(...asked: Asked): Promise<void> {
    this.drop();
    const request = new AbortController();
    this.request = request;
    try {
      await this.ask(request.signal, ...asked);
    } catch (error) {
      if (!request.signal.aborted) this.onFault(error);
    } finally {
      if (this.request === request) this.request = null;
    }
  }

  /** Asks once there were no other calls for `wait` milliseconds. */
  after(wait: number, ...asked: Asked): void {
    this.clearTimer();
    this.timer = setTimeout(() => void this.now(...asked), wait);
  }

  /**
   * Waits for the newest result, at once if one is pending; a question that replaces it
   * meanwhile is waited for, too.
   */
  async settled(...asked: Asked): Promise<void> {
    while (this.isAsking) await this.now(...asked);
  }

  /** Cancels a waiting request and drops the result of a running one. */
  drop(): void {
    this.clearTimer();
    this.request?.abort();
    this.request = null;
  }

  private clearTimer(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}
