/** `export_chat`: the conversation of a chat as a file, sent to the chat that asked. */
import { createHash } from 'node:crypto';
import * as z from 'zod';
import { type ChatExports, EXPORT_FORMATS } from '../core/chat-export.js';
import type { Zone } from '../core/dates.js';
import { A_TIME, momentsOf } from '../core/moments.js';
import type { Tool } from '../core/tool.js';
import { authorise } from './authorise.js';
import { done, failed } from './results.js';
import type { SendMessageParts } from './send-message.js';

export interface ExportChatParts {
  exports: Pick<ChatExports, 'make'>;
  /** Puts it into the outbox; what has this key already is passed over. */
  post: SendMessageParts['post'];
  zone: Zone;
}

const time = z.string().optional();
const parameters = z.object({
  format: z.enum(EXPORT_FORMATS).optional().describe('Left out: markdown.'),
  since: time.describe('Only what was said from then on: YYYY-MM-DD, or with a time, YYYY-MM-DDTHH:MM.'),
  until: time.describe('Only what was said up to then; a day counts to its end.'),
  chat_id: z.string().optional(),
});

export function exportChat({ exports, post, zone }: ExportChatParts): Tool<z.infer<typeof parameters>> {
  return {
    name: 'export_chat',
    description:
      'Sends this chat a file with its conversation: who said what and when, to read or to keep. Use it when ' +
      'somebody asks for that.',
    hint: 'send the conversation as a file',
    parameters,
    risk: 'medium',
    isSend: true,
    async execute({ format = 'markdown', since, until, chat_id }, context) {
      const allowed = await authorise(context, { chat_id });
      if (!allowed.ok) return failed(allowed.reason);
      const { turnId } = context.cause;
      if (turnId === null) return failed('Files can only be sent while somebody is being answered.');
      const from = since ? momentsOf(since, zone, context.now) : null;
      const to = until ? momentsOf(until, zone, context.now) : null;
      if ((since && from === null) || (until && to === null))
        return failed(`Nothing was sent: since and until must be ${A_TIME}.`);
      if (from !== null && to !== null && from.from > to.to)
        return failed('Nothing was sent: since is after until.');
      const { caller, target } = allowed;
      const { personaId } = caller;
      const key = keyOf([turnId, target.chatId, format, since ?? '', until ?? '']);
      const made = await exports.make({
        ...{ chatId: target.chatId, by: personaId, format, key, signal: context.signal },
        ...{ since: from?.from ?? null, until: to?.to ?? null },
      });
      if (made === null) {
        const when = from === null && to === null ? '' : ' in that time';
        return failed(
          `Nothing was sent: nothing was said in the chat ${JSON.stringify(target.chatId)}${when}.`,
        );
      }
      if (context.signal.aborted) return failed('Stopped: nothing was sent.');
      const { file, messages } = made;
      const aside = { chatId: caller.chatId, personaId, turnId, room: context.room, key, text: '', file };
      const outcome = await post(aside);
      if (outcome === 'unknown chat') return failed('Nothing was sent: this chat is not known.');
      return done(`The file ${file.name} with ${messages} messages is on its way.`);
    },
  };
}

function keyOf(parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 24);
}
