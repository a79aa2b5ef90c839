/** Hands batches in to the gateway. */
import type { Receive, Reception } from '../../core/channel.js';
import type { InboundBatch } from '../../core/message.js';

export type HandIn = ReturnType<typeof createHandIn>;

export function createHandIn(channel: string) {
  let receive: Receive | null = null;
  return {
    /** With what `Channel.start` was given. */
    begin(to: Receive): void {
      receive = to;
    },
    /** Resolves when the batch is stored; rejects when it could not be. */
    async store(batch: Omit<InboundBatch, 'channel'>): Promise<Reception> {
      if (receive === null) throw new Error('taking in has not begun');
      return receive({ channel, ...batch });
    },
  };
}
