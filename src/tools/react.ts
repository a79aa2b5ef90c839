/**
 * `react`: an emoji put to somebody's message, beside an answer or instead of one. It leaves through the outbox like
 * every reply.
 */
import { createHash } from 'node:crypto';
import * as z from 'zod';
import type { Reaction, Tool } from '../core/tool.js';
import { reactionText } from '../core/transcript.js';
import { emojiIn, nearestOf } from './emoji.js';
import { done, failed } from './results.js';

export interface ReactParts {
  /** Puts it into the outbox; what has this key already is passed over. */
  post(reaction: Reaction): Promise<'posted' | 'unknown message'>;
  /** The only emoji that a channel takes; undefined: any. */
  emojiOn(channel: string): readonly string[] | undefined;
}

const parameters = z.object({
  emoji: z.string().describe('One emoji.'),
  message_id: z.coerce
    .string()
    .optional()
    .describe('The id of a message, as in <user_message id="…">. Left out: the newest that you answer.'),
});

export function react({ post, emojiOn }: ReactParts): Tool<z.infer<typeof parameters>> {
  return {
    name: 'react',
    description:
      "Puts an emoji to somebody's message, as people do who have nothing to add: a thank you, a joke, good news. " +
      'Where it says enough, let it be your whole answer and write nothing.',
    hint: 'put an emoji to a message, also instead of an answer',
    parameters,
    risk: 'medium',
    isSend: true,
    async execute({ emoji: asked, message_id }, context) {
      const { authorisation, room, signal } = context;
      if (authorisation === undefined)
        return failed('Permission denied: this call carries no authorisation.');
      const { turnId } = context.cause;
      if (turnId === null) return failed('There are reactions only while somebody is being answered.');
      const sign = emojiIn(asked);
      if (sign === null)
        return failed(`${JSON.stringify(asked)} is not one emoji. Nothing was done; give one, like 👍.`);
      const { channel, personaId } = authorisation;
      const allowed = emojiOn(channel);
      const emoji = allowed === undefined ? sign : nearestOf(allowed, sign);
      if (emoji === null)
        return failed(`Nobody can react with ${sign} here. What can be had: ${allowed?.join(' ')}`);
      const messageId = message_id === undefined || message_id === '' ? null : Number(message_id);
      if (signal.aborted) return failed('Stopped: nothing was done.');
      const key = keyOf([turnId, String(messageId), emoji]);
      const outcome = await post({ room, personaId, turnId, key, messageId, emoji });
      if (outcome === 'unknown message') {
        return failed('Nothing was done: there is no such message of a person in this conversation.');
      }
      const result = done(`${emoji} is on its way. If that says enough, end here without a word.`);
      return { ...result, said: reactionText(emoji) };
    },
  };
}

function keyOf(parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 24);
}
