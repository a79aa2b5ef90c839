/** What a channel is told with every message, for tests that only care about some of it. */
import type { Reception, SendOptions } from '../../src/core/channel.js';

export function sendOptions(given: Partial<SendOptions> = {}): SendOptions {
  return {
    ...{ replyTo: null, personaName: 'Luna', key: '1', earlierTries: 0, createdAt: 0 },
    signal: new AbortController().signal,
    ...given,
  };
}

/** What `receive` answers where everybody is let in. */
export const ALL_LET_IN: Reception = { turnedAway: [], settled: async () => {} };
