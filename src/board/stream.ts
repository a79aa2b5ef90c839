/** A body that is made while it is read: nothing of it begins before the first read, and no more is made than is taken. */
import { OVER } from '../core/clock.js';

/** The signal that `pieces` is given aborts when whoever read it has left. */
export function streamOf(
  pieces: (signal: AbortSignal) => AsyncGenerator<Uint8Array>,
): ReadableStream<Uint8Array> {
  const left = new AbortController();
  let making: AsyncGenerator<Uint8Array> | null = null;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        making ??= pieces(left.signal);
        const { value, done } = await making.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        left.abort(OVER);
        await making?.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
