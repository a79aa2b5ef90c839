/**
 * `send_message`: something said at once, beside the answer, or a file, or (from a control chat) something to another
 * chat. It goes into the outbox like every reply: there is no other door out.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import * as z from 'zod';
import { createZone } from '../core/dates.js';
import type { ChatId } from '../core/ids.js';
import type { SideMessage, Tool, ToolContext, ToolResult } from '../core/tool.js';
import { authorise } from './authorise.js';
import { done, failed } from './results.js';
import { findFile, newestFiles } from './sendable-files.js';

export interface SendMessageParts {
  /** Puts it into the outbox; what has this key already is passed over. */
  post(aside: SideMessage): Promise<'posted' | 'unknown chat'>;
  /** `data/media`: files that came with messages, a folder for each chat. */
  mediaFolder: string;
  groupsDir: string;
}

const parameters = z.object({
  text: z.string().optional().describe('Markdown. Left out: only the file.'),
  attachment_path: z
    .string()
    .optional()
    .describe(
      'A file of the chat: of its folder (memory/2026-01-31.md, default/MEMORY.md), or one that came with a message, ' +
        'by its name in the media folder.',
    ),
  chat_id: z.string().optional().describe('Left out: this chat.'),
});

type Parameters = z.infer<typeof parameters>;

/** How many files a model is told of that named none. */
const MOST_LISTED = 20;

export function sendMessage(parts: SendMessageParts): Tool<Parameters> {
  return {
    name: 'send_message',
    description:
      'Sends a message of its own, at once, or a file. Your answer is sent without it: use it only for files, for ' +
      'what must be said before you go on working, or for another chat.',
    hint: 'send a file, or say something before you go on working',
    parameters,
    risk: 'medium',
    async execute({ text = '', attachment_path: path = '', chat_id }, context) {
      const allowed = authorise(context, { chat_id });
      if (!allowed.ok) return failed(allowed.reason);
      const { chatId, personaId } = allowed.target;
      const { turnId } = context.cause;
      if (turnId === null) return failed('Messages can only be sent while somebody is being answered.');
      if (text.trim() === '' && path === '')
        return failed('There is nothing to send: give a text, or a file.');

      const found = path === '' ? null : await findFile(path, rootsOf(parts, chatId, context));
      if (found?.kind === 'forbidden') return failed(FORBIDDEN);
      if (found?.kind === 'missing') return missing(parts, chatId, context);
      if (context.signal.aborted) return failed('Stopped: nothing was sent.');

      const key = keyOf([turnId, chatId, text, path]);
      const file = found?.file ?? null;
      const outcome = await parts.post({ chatId, personaId, turnId, room: context.room, key, text, file });
      if (outcome === 'unknown chat') {
        return failed(`Nothing was sent: nobody has ever written in a chat ${JSON.stringify(chatId)}.`);
      }
      const what =
        file === null ? 'The message' : text.trim() === '' ? 'The file' : 'The message with the file';
      return done(`${what} is on its way.`);
    },
  };
}

/** The chat's own two folders; a control chat may take files from those of any chat. */
function rootsOf(
  { groupsDir, mediaFolder }: SendMessageParts,
  chatId: ChatId,
  context: ToolContext,
): string[] {
  const own = [join(groupsDir, chatId), join(mediaFolder, chatId)];
  const { authorisation: caller } = context;
  const controls = caller?.controlChats.includes(caller.chatId) ?? false;
  return controls ? [...own, groupsDir, mediaFolder] : own;
}

/** Names alone say little: what came, and when, leads from a message to its file. */
async function missing(
  { mediaFolder }: SendMessageParts,
  chatId: ChatId,
  { timezone }: ToolContext,
): Promise<ToolResult> {
  const zone = createZone(timezone);
  const files = await newestFiles(join(mediaFolder, chatId), MOST_LISTED);
  const lines = files.map(({ name, bytes, at }) => `${name} (${bytes} bytes, came ${zone.time(at)})`);
  const list =
    lines.length === 0
      ? 'No file has come with a message yet.'
      : `The newest that came with messages:\n${lines.join('\n')}`;
  return failed(`Nothing was sent: there is no such file in this chat. ${list}`);
}

function keyOf(parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 24);
}

const FORBIDDEN =
  'Permission denied: only files of this chat can be sent, by a path below its own folder or its media folder.';
