/** Tools that send through the outbox, next to the answer: `send_message`, `export_chat`, `write_artifact`. */
import { stat } from 'node:fs/promises';
import { basename, extname, join, normalize, relative, sep } from 'node:path';
import * as z from 'zod';
import type { Artifacts } from '../core/artifacts.js';
import type { Authorisation } from '../core/authorisation.js';
import type { OutgoingFile } from '../core/channel.js';
import { type Archives, type ChatExports, EXPORT_FORMATS } from '../core/chat-record.js';
import { sizeInWords } from '../core/cut.js';
import { A_TIME, createZone, momentsOf, type Zone } from '../core/dates.js';
import { isWithin, namesIn, nullIfMissing, realAsFarAsThere } from '../core/file-access.js';
import { composed, nameOnDisk } from '../core/file-names.js';
import type { ChatId } from '../core/ids.js';
import type { SideMessage, ToolContext, ToolResult } from '../core/tool.js';
import { writeWhole } from '../core/write-whole.js';
import { type Allowed, defineTool, mayActAnywhere } from './authorise.js';
import { isNoMessages, openToRead, PathRefusal, SENT } from './files/paths.js';
import { type FileRoots, rootsFor, rootsOfPersona, type ToolFolders } from './files/roots.js';
import { done, failed, keyOf, refuseSecret } from './results.js';

/** Puts a message into the outbox, once per key. */
type Post = (message: SideMessage) => Promise<'posted' | 'unknown chat'>;

export interface SendMessageServices {
  post: Post;
  folders: ToolFolders;
  groupsDir: string;
  /** To exclude archives that were reset: these are never sent. */
  archives: Archives;
}

/** The largest upload that any platform accepts from a bot. */
const MOST_SENT_BYTES = 100_000_000;
/** Files listed for a model that named none. */
const MOST_LISTED = 20;
const ARCHIVE = 'archive';
const FORBIDDEN =
  'Permission denied: only your own files in this chat, its daily log, and what was sent here can be sent, by a path ' +
  "below the chat's folder or its media folder; and no archive that was reset.";

export function sendMessage(services: SendMessageServices) {
  return defineTool({
    name: 'send_message',
    description:
      'Sends a message of its own, at once, or a file. Your answer is sent without it: use it only for files, for ' +
      'what must be said before you go on working, or for another chat.',
    hint: 'send a file, or say something before you go on working',
    parameters: z.object({
      text: z.string().optional().describe('Markdown. Left out: only the file.'),
      attachment_path: z
        .string()
        .optional()
        .describe(
          "A file of your working folder (report.pdf), of yours in the chat's folder (default/MEMORY.md), of its log (memory/2026-01-31.md), or one that came " +
            'with a message, by its name in the media folder.',
        ),
      chat_id: z.string().optional(),
    }),
    risk: 'medium',
    isSend: true,
    isExternal: true,
    async execute({ text = '', attachment_path: path = '' }, context, allowed) {
      const { chatId, personaId } = allowed.target;
      const { room, cause, signal } = context;
      const { turnId } = cause;
      if (turnId === null) return failed('Messages can only be sent while somebody is being answered.');
      const hasText = text.trim() !== '';
      if (!hasText && path === '') return failed('There is nothing to send: give a text, or a file.');
      const key = keyOf(turnId, chatId, text, path);
      const file = path === '' ? null : await fileAt(services, allowed, path, key);
      if (file === 'forbidden') return failed(FORBIDDEN);
      if (file === 'missing') return missing(services, chatId, context);
      if (file instanceof PathRefusal) return failed(`Nothing was sent: ${file.message}`);
      if (signal.aborted) return failed('Stopped: nothing was sent.');
      const outcome = await services.post({ chatId, personaId, turnId, room, key, text, file });
      if (outcome === 'unknown chat')
        return failed(`Nothing was sent: nobody has ever written in a chat ${JSON.stringify(chatId)}.`);
      const withFile = hasText ? 'The message with the file' : 'The file';
      return done(`${file === null ? 'The message' : withFile} is on its way.`);
    },
  });
}

/** A file of the caller's working folder, or else of the chat. */
async function fileAt(
  services: SendMessageServices,
  allowed: Allowed,
  path: string,
  key: string,
): Promise<OutgoingFile | PathRefusal | 'forbidden' | 'missing'> {
  const own = await inWorkingFolder(services.folders, allowed.caller, path, key);
  if (!(own instanceof PathRefusal)) return own;
  const found = await inChat(services, allowed, path);
  return found === 'missing' && own.kind !== 'missing' ? own : found;
}

/** Whichever chat the message goes to; for an owner, first the workspace. */
async function inWorkingFolder(
  folders: ToolFolders,
  caller: Authorisation,
  path: string,
  key: string,
): Promise<OutgoingFile | PathRefusal> {
  const roots = await rootsFor(folders, caller, false);
  const found = await orRefusal(ownFile(roots, path, key));
  const isMissing = found instanceof PathRefusal && found.kind === 'missing';
  if (!isMissing || roots.kind !== 'workspace') return found;
  return orRefusal(ownFile(await rootsOfPersona(folders, caller), path, key));
}

function orRefusal<Found>(looked: Promise<Found>): Promise<Found | PathRefusal> {
  return looked.catch((error: unknown) => {
    if (error instanceof PathRefusal) return error;
    throw error;
  });
}

/** `key` names the copy: the same for the same message. Throws a `PathRefusal`. */
async function ownFile(allowed: FileRoots, path: string, key: string): Promise<OutgoingFile> {
  if (allowed.media === null) throw new PathRefusal('Permission denied: there is no chat to send a file to.');
  const { handle, bytes, folder, name: sent, isMedia } = await openToRead(allowed, path);
  try {
    const name = basename(path);
    if (isMedia) return { path: join(folder.real, sent), name };
    if (bytes > MOST_SENT_BYTES) {
      throw new PathRefusal(`${name} is too large to be sent: it has ${sizeInWords(bytes)}.`);
    }
    const end = extname(name);
    const plainEnd = /^\.[A-Za-z0-9]{1,10}$/.test(end) ? end.toLowerCase() : '';
    const copy = join(allowed.media, `${SENT}${key}${plainEnd}`);
    await writeWhole(copy, async (file) => {
      const content = handle.createReadStream({ start: 0, end: MOST_SENT_BYTES - 1, autoClose: false });
      for await (const piece of content) await file.writeFile(piece);
    });
    return { path: copy, name };
  } finally {
    await handle.close();
  }
}

/** Lists the received files with their times, which lead from a message to its file. */
async function missing(
  { folders: { mediaFolder } }: SendMessageServices,
  chatId: ChatId,
  { timezone }: ToolContext,
): Promise<ToolResult> {
  const zone = createZone(timezone);
  const folder = join(mediaFolder, chatId);
  const files: { line: string; at: number }[] = [];
  for (const name of await namesIn(folder)) {
    const found = isNoMessages(name) ? null : await stat(join(folder, name)).catch(nullIfMissing);
    if (found === null) continue;
    const { size, mtimeMs: at } = found;
    files.push({ line: `${name} (${size} bytes, came ${zone.time(at)})`, at });
  }
  const newest = files.sort((one, other) => other.at - one.at).slice(0, MOST_LISTED);
  const list =
    newest.length === 0
      ? 'No file has come with a message yet.'
      : `The newest that came with messages:\n${newest.map(({ line }) => line).join('\n')}`;
  return failed(`Nothing was sent: there is no such file in this chat. ${list}`);
}

/** The persona's own files, the chat's log, media and archives; of all chats for an owner in a control chat. */
async function inChat(
  { groupsDir, folders: { mediaFolder }, archives }: SendMessageServices,
  { caller, target: { chatId, personaId } }: Allowed,
  path: string,
): Promise<OutgoingFile | 'forbidden' | 'missing'> {
  const chat = await realAsFarAsThere(join(groupsDir, chatId));
  const media = join(mediaFolder, chatId);
  const isAnywhere = await mayActAnywhere(caller);
  const own = [nameOnDisk(chat, personaId), 'memory', ARCHIVE].map((name) => join(chat, name));
  const name = normalize(path);
  const places = [
    { start: chat, within: isAnywhere ? [chat] : own },
    // By their bare names only.
    ...(name === basename(name) && !name.startsWith('.') ? [{ start: media, within: [media] }] : []),
    ...(isAnywhere ? [groupsDir, mediaFolder].map((start) => ({ start, within: [start] })) : []),
  ];
  const groups = await realAsFarAsThere(groupsDir);
  const archived = await realAsFarAsThere(join(chat, ARCHIVE));
  let outcome: 'forbidden' | 'missing' = 'forbidden';
  for (const { start, within } of places) {
    const found = await orRefusal(openToRead(await readableOnly(start, within), path));
    if (found instanceof PathRefusal) {
      if (found.kind !== 'refused') outcome = 'missing';
      continue;
    }
    await found.handle.close();
    const { root, names } = found.folder;
    // Programs keep private files in hidden folders.
    if ([...names, found.name].some((name) => name.startsWith('.'))) return 'forbidden';
    const real = join(root, ...names, found.name);
    // The chat's own may be a link.
    const [of = '', folder, ...file] = isWithin(real, archived)
      ? [chatId, ARCHIVE, relative(archived, real)]
      : relative(groups, real).split(sep);
    // Some disks ignore case.
    if (folder?.toLowerCase() === ARCHIVE) {
      const archive = isAnywhere || of === chatId ? await archives.find(of, file.join(sep)) : null;
      if (archive === null || archive.reset) return 'forbidden';
      if (!isAnywhere && archive.personaId !== personaId) return 'forbidden';
    }
    return { path: real, name: composed(basename(path)) };
  }
  return outcome;
}

async function readableOnly(start: string, within: readonly string[]): Promise<FileRoots> {
  const folders = await Promise.all(within.map(realAsFarAsThere));
  const roots = folders.map((folder) => ({ folder, isReadOnly: true, quota: null }));
  const nothing = { media: null, skills: [], showsSkills: false, closed: [] };
  return { kind: 'persona', start: await realAsFarAsThere(start), roots, ...nothing };
}

/** Sends a chat's conversation as a file to the chat that asked. */
export function exportChat({ exports, post, zone }: { exports: ChatExports; post: Post; zone: Zone }) {
  return defineTool({
    name: 'export_chat',
    description:
      'Sends this chat a file with its conversation: who said what and when, to read or to keep. Use it when ' +
      'somebody asks for that.',
    hint: 'send the conversation as a file',
    parameters: z.object({
      format: z.enum(EXPORT_FORMATS).optional().describe('Left out: markdown.'),
      since: z
        .string()
        .optional()
        .describe('Only what was said from then on: YYYY-MM-DD, or with a time, YYYY-MM-DDTHH:MM.'),
      until: z.string().optional().describe('Only what was said up to then; a day counts to its end.'),
      chat_id: z.string().optional(),
    }),
    risk: 'medium',
    isSend: true,
    async execute({ format = 'markdown', since, until }, context, { caller, target: { chatId } }) {
      const { room, signal, now, cause } = context;
      const { turnId } = cause;
      if (turnId === null) return failed('Files can only be sent while somebody is being answered.');
      const from = since ? momentsOf(since, zone, now) : null;
      const to = until ? momentsOf(until, zone, now) : null;
      if ((since && from === null) || (until && to === null))
        return failed(`Nothing was sent: since and until must be ${A_TIME}.`);
      if (from !== null && to !== null && from.from > to.to)
        return failed('Nothing was sent: since is after until.');
      const { personaId } = caller;
      const key = keyOf(turnId, chatId, format, since ?? '', until ?? '');
      const span = { since: from?.from ?? null, until: to?.to ?? null };
      const made = await exports.make({ chatId, by: personaId, format, key, signal, ...span });
      if (made === null) {
        const when = from === null && to === null ? '' : ' in that time';
        return failed(`Nothing was sent: nothing was said in the chat ${JSON.stringify(chatId)}${when}.`);
      }
      if (signal.aborted) return failed('Stopped: nothing was sent.');
      const { file, messages } = made;
      const outcome = await post({ chatId: caller.chatId, personaId, turnId, room, key, text: '', file });
      return outcome === 'posted'
        ? done(`The file ${file.name} with ${messages} messages is on its way.`)
        : failed('Nothing was sent: this chat is not known.');
    },
  });
}

const WRITE_ARTIFACT = 'write_artifact';
const ARTIFACT = z.object({
  id: z
    .string()
    .describe(
      'Its name without an extension: 1 to 64 letters, digits, dots, _ and -. The same id replaces it.',
    ),
  content: z.string().describe('The whole text.'),
  title: z.string().optional().describe('What it is, in a few words.'),
  type: z.string().optional().describe('A MIME type, like text/csv. Left out: text/markdown.'),
});

/** For personas: a document that is sent into their chat. */
export function writeArtifact({ artifacts, post }: { artifacts: Artifacts; post: Post }) {
  return defineTool({
    name: WRITE_ARTIFACT,
    description:
      'Writes a document of its own and sends it to this chat as a file: a report, a table, a page, code.',
    hint: 'write a document and send it as a file',
    parameters: ARTIFACT,
    risk: 'medium',
    isSend: true,
    usesFiles: true,
    async execute({ id, content, title = null, type = null }, context, { caller }) {
      const refusal = await refuseSecret(WRITE_ARTIFACT, content, '', context, 'an artifact');
      if (refusal !== null) return refusal;
      const { turnId, callId, room, signal } = context;
      if (context.cause.turnId === null)
        return failed('Artifacts can only be made while somebody is being answered.');
      const { chatId, personaId } = caller;
      const written = await artifacts.write({ id, content, title, type, taskId: turnId, chatId }, signal);
      if (!written.ok) return failed(`Nothing was written: ${written.reason}`);
      if (signal.aborted) return failed('Stopped: nothing was sent.');
      const { ref, file } = written;
      const key = keyOf(turnId, callId);
      const outcome = await post({ chatId, personaId, turnId, room, key, text: '', file });
      return outcome === 'posted'
        ? done(`The file ${file?.name ?? ref.id} is on its way; it is kept as ${ref.ref}.`)
        : failed(`${ref.ref} was written, but not sent: this chat is not known.`);
    },
  });
}

/** For agents: a document that their result refers to. */
export function keepArtifact({ artifacts }: { artifacts: Artifacts }) {
  return defineTool({
    name: WRITE_ARTIFACT,
    description:
      'Writes a document of its own, which your result refers to: a report, a table, a page, code.',
    hint: 'write a document for whoever gave you the task',
    parameters: ARTIFACT,
    risk: 'medium',
    forAgents: true,
    usesFiles: true,
    async execute({ id, content, title = null, type = null }, context, { caller: { agent } }) {
      const refusal = await refuseSecret(WRITE_ARTIFACT, content, '', context, 'an artifact');
      if (refusal !== null) return refusal;
      const taskId = agent?.taskId ?? context.turnId;
      const written = await artifacts.write({ id, content, title, type, taskId }, context.signal);
      if (!written.ok) return failed(`Nothing was written: ${written.reason}`);
      return done(`Written: ${written.ref.ref}`);
    },
  });
}
