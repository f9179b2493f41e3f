/** The table from frame type to handler; the compiler keeps it complete. */

import type { Frame, FrameOf } from "./frames";

export type Handlers = { [T in Frame["type"]]: (frame: FrameOf<T>) => void };

export function dispatch(handlers: Handlers, frame: Frame): void {
  const handler = handlers[frame.type] as (frame: Frame) => void;
  handler(frame);
}
