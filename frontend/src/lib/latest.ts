/** One question to the server at a time: asked after a pause, and a newer one drops the one before together with its answer. */

export class Latest<Asked extends unknown[] = []> {
  private timer: ReturnType<typeof setTimeout> | null = null;
  private request: AbortController | null = null;

  /**
   * `ask` hands the signal on to its requests, so that it goes no further once it is dropped.
   * `onFault` gets what `ask` throws, unless it was dropped meanwhile.
   */
  constructor(
    private readonly ask: (signal: AbortSignal, ...asked: Asked) => Promise<void>,
    private readonly onFault: (error: unknown) => void,
  ) {}

  /** Whether an answer is still to come. */
  get isAsking(): boolean {
    return this.timer !== null || this.request !== null;
  }

  /** Asks at once. */
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

  /** Asks when nothing else was asked for `wait` milliseconds. */
  after(wait: number, ...asked: Asked): void {
    this.clearTimer();
    this.timer = setTimeout(() => void this.now(...asked), wait);
  }

  /** Neither asks what waits nor shows what is under way. */
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
