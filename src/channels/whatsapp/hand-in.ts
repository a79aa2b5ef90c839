/** Hands batches in to the gateway, and knows when none is being stored any more. */
import type { Receive, Reception } from '../../core/channel.js';
import type { InboundBatch } from '../../core/message.js';

export type HandIn = ReturnType<typeof createHandIn>;

export function createHandIn(channel: string) {
  let receive: Receive | null = null;
  const storing = new Set<Promise<Reception>>();
  return {
    /** With what `Channel.start` was given. */
    begin(to: Receive): void {
      receive = to;
    },
    /** Resolves when the batch is stored; rejects when it could not be. */
    async store(batch: Omit<InboundBatch, 'channel'>): Promise<Reception> {
      if (receive === null) throw new Error('taking in has not begun');
      const stored = receive({ channel, ...batch });
      storing.add(stored);
      try {
        return await stored;
      } finally {
        storing.delete(stored);
      }
    },
    /** Resolves when nothing is being stored. */
    async idle(): Promise<void> {
      await Promise.allSettled(storing);
    },
  };
}
