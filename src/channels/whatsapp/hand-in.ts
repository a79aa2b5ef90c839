/** Hands batches in to the gateway, and knows when none is being stored any more. */
import type { Receive, Reception } from '../../core/channel.js';
import type { InboundBatch } from '../../core/message.js';

export interface HandIn {
  /** What `Channel.start` was given. */
  begin(receive: Receive): void;
  /** Resolves when the batch is stored; rejects when it could not be. */
  store(batch: Omit<InboundBatch, 'channel'>): Promise<Reception>;
  /** Resolves when nothing is being stored. */
  idle(): Promise<void>;
}

export function createHandIn(channel: string): HandIn {
  let receive: Receive | null = null;
  const storing = new Set<Promise<Reception>>();
  return {
    begin(to) {
      receive = to;
    },
    async store(batch) {
      if (receive === null) throw new Error('taking in has not begun');
      const stored = receive({ channel, ...batch });
      storing.add(stored);
      try {
        return await stored;
      } finally {
        storing.delete(stored);
      }
    },
    async idle() {
      await Promise.allSettled(storing);
    },
  };
}
