/** A body that is made while it is read: nothing of it begins before the first read, and no more is made than is taken. */
import { OVER } from '../core/clock.js';

/** `signal` aborts when whoever read it has left. */
export type Pieces = (signal: AbortSignal) => AsyncGenerator<Uint8Array>;

/** `breakOff` ends the connection: what was sent so far says that all is well, and nothing else can be said any more. */
export function streamOf(pieces: Pieces, breakOff: (error: unknown) => void): ReadableStream<Uint8Array> {
  const left = new AbortController();
  let making: AsyncGenerator<Uint8Array> | null = null;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        making ??= pieces(left.signal);
        try {
          const { value, done } = await making.next();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          breakOff(error);
        }
      },
      async cancel() {
        left.abort(OVER);
        await making?.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
