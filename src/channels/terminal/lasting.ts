/** The terminal outlives the gateways that follow one another in a run: lines typed in between are for the next one. */
import type { Channel, Receive } from '../../core/channel.js';
import { OVER, onAbort, orAborted } from '../../core/clock.js';

export function createLasting(terminal: Channel) {
  const over = new AbortController();
  let receiver: Receive | null = null;
  let arrived: () => void = () => {};
  let next: Promise<void> = awaited();
  let isReading = false;

  function awaited(): Promise<void> {
    return new Promise((resolve) => {
      arrived = resolve;
    });
  }

  const receive: Receive = async (batch) => {
    while (receiver === null) {
      await orAborted(next, over.signal);
      if (over.signal.aborted) throw new Error('the gateway stops');
    }
    return receiver(batch);
  };

  return {
    /** For one gateway, which may stop it. */
    channel: (): Channel => ({
      ...terminal,
      async start(take, signal) {
        if (signal.aborted) return;
        receiver = take;
        arrived();
        onAbort(signal, () => {
          receiver = null;
          next = awaited();
        });
        if (isReading) return;
        isReading = true;
        await terminal.start(receive, over.signal);
      },
      async stop() {},
    }),
    /** Reads no more. */
    leave: (): void => over.abort(OVER),
    stop: (): Promise<void> => terminal.stop(),
  };
}
