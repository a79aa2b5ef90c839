/**
 * `send_message`: something said at once, beside the answer, or a file, or (from a control chat) something to another
 * chat. It goes into the outbox like every reply: there is no other door out.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import * as z from 'zod';
import type { Archives } from '../core/archive.js';
import type { OutgoingFile } from '../core/channel.js';
import { createZone } from '../core/dates.js';
import type { ChatId } from '../core/ids.js';
import type { SideMessage, Tool, ToolContext, ToolResult } from '../core/tool.js';
import { type Authorised, authorise, mayActAnywhere } from './authorise.js';
import { ownFile } from './files/attachment.js';
import { PathRefusal } from './files/paths.js';
import { type Folders, type Places, placesOf, placesOfPersona } from './files/places.js';
import { done, failed } from './results.js';
import { findFile, newestFiles, reachOf, reachOfOwner } from './sendable-files.js';

export interface SendMessageParts {
  /** Puts it into the outbox; what has this key already is passed over. */
  post(aside: SideMessage): Promise<'posted' | 'unknown chat'>;
  folders: Folders;
  groupsDir: string;
  /** Says which archives were reset: these are sent to nobody. */
  archives: Pick<Archives, 'find'>;
}

const parameters = z.object({
  text: z.string().optional().describe('Markdown. Left out: only the file.'),
  attachment_path: z
    .string()
    .optional()
    .describe(
      "A file of your working folder (report.pdf), of yours in the chat's folder (default/MEMORY.md), of its log (memory/2026-01-31.md), or one that came " +
        'with a message, by its name in the media folder.',
    ),
  chat_id: z.string().optional(),
});

type Parameters = z.infer<typeof parameters>;

/** How many files a model is told of that named none. */
const MOST_LISTED = 20;

export function sendMessage(parts: SendMessageParts): Tool<Parameters> {
  const { groupsDir, archives, folders } = parts;
  const sendable = { groupsDir, archives, mediaFolder: folders.mediaFolder };
  const reach = async ({ caller, target }: Authorised & { ok: true }) =>
    (await mayActAnywhere(caller)) ? reachOfOwner(sendable, target) : reachOf(sendable, target);
  return {
    name: 'send_message',
    description:
      'Sends a message of its own, at once, or a file. Your answer is sent without it: use it only for files, for ' +
      'what must be said before you go on working, or for another chat.',
    hint: 'send a file, or say something before you go on working',
    parameters,
    risk: 'medium',
    isSend: true,
    isExternal: true,
    async execute({ text = '', attachment_path: path = '', chat_id }, context) {
      const allowed = await authorise(context, { chat_id });
      if (!allowed.ok) return failed(allowed.reason);
      const { chatId, personaId } = allowed.target;
      const { turnId } = context.cause;
      if (turnId === null) return failed('Messages can only be sent while somebody is being answered.');
      if (text.trim() === '' && path === '')
        return failed('There is nothing to send: give a text, or a file.');

      const key = keyOf([turnId, chatId, text, path]);
      const own = path === '' ? null : await inWorkingFolder(parts, allowed, path, key);
      const isOwn = own !== null && !(own instanceof PathRefusal);
      const found = path === '' || isOwn ? null : await findFile(path, await reach(allowed));
      if (found?.kind === 'forbidden') return failed(FORBIDDEN);
      if (found?.kind === 'missing') {
        if (own instanceof PathRefusal && own.kind === 'refused') {
          return failed(`Nothing was sent: ${own.message}`);
        }
        return missing(parts, chatId, context);
      }
      if (context.signal.aborted) return failed('Stopped: nothing was sent.');

      const file = isOwn ? own : (found?.file ?? null);
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

/** The working folder is always the caller's own, whichever chat the message goes to; for an owner, the workspace is first. */
async function inWorkingFolder(
  { folders }: SendMessageParts,
  { caller }: Authorised & { ok: true },
  path: string,
  key: string,
): Promise<OutgoingFile | PathRefusal> {
  const places = await placesOf(folders, caller, false);
  const found = await fileIn(places, path, key);
  const isNothing = found instanceof PathRefusal && found.kind === 'missing';
  return isNothing && places.kind === 'workspace'
    ? fileIn(await placesOfPersona(folders, caller), path, key)
    : found;
}

async function fileIn(places: Places, path: string, key: string): Promise<OutgoingFile | PathRefusal> {
  try {
    return await ownFile(places, path, key);
  } catch (error) {
    if (error instanceof PathRefusal) return error;
    throw error;
  }
}

/** Names alone say little: what came, and when, leads from a message to its file. */
async function missing(
  { folders: { mediaFolder } }: SendMessageParts,
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
  'Permission denied: only your own files in this chat, its daily log, and what was sent here can be sent, by a path ' +
  "below the chat's folder or its media folder; and no archive that was reset.";
