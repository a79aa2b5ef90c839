/** The usual options of a channel's message, for tests that care about few of them. */
import type { ChoiceOutcome, Reception, SendOptions } from '../../src/core/channel.js';
import type { InboundBatch } from '../../src/core/message.js';

export function sendOptions(given: Partial<SendOptions> = {}): SendOptions {
  return {
    ...{ replyTo: null, personaName: 'Luna', key: '1', earlierTries: 0, createdAt: 0 },
    signal: new AbortController().signal,
    ...given,
  };
}

/** The answer of `receive` if everybody is admitted. */
export const ALL_LET_IN: Reception = { rejected: [], settled: async () => {} };

/** The same for choices, all with this outcome. */
export function letIn({ events }: Pick<InboundBatch, 'events'>, became: ChoiceOutcome): Reception {
  const chosen = events.flatMap((event) => (event.kind === 'choice' ? [event.platformMessageId] : []));
  return { ...ALL_LET_IN, choices: new Map(chosen.map((id) => [id, became])) };
}
