/**
 * `send_message`: something said at once, beside the answer, or a file, or (from a control chat) something to another
 * chat. It goes into the outbox like every reply: there is no other door out.
 */
import { createHash } from 'node:crypto';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import * as z from 'zod';
import type { Artifacts, NewArtifact } from '../core/artifacts.js';
import { composed, nameOnDisk, pathOnDisk } from '../core/beneath.js';
import type { OutgoingFile } from '../core/channel.js';
import { type Archives, type ChatExports, EXPORT_FORMATS } from '../core/chat-record.js';
import { A_TIME, createZone, momentsOf, type Zone } from '../core/dates.js';
import type { ChatId } from '../core/ids.js';
import type { Authorisation, SideMessage, Tool, ToolContext, ToolResult } from '../core/tool.js';
import { type Authorised, authorise, mayActAnywhere, type ToolTarget } from './authorise.js';
import { isNoMessages, ownFile } from './files/attachment.js';
import { PathRefusal } from './files/paths.js';
import { type FileRoots, rootsFor, rootsOfPersona, type ToolFolders } from './files/roots.js';
import { done, failed, refuseSecret, runTool, unsaved } from './results.js';

export interface SendMessageParts {
  /** Puts it into the outbox; what has this key already is passed over. */
  post(aside: SideMessage): Promise<'posted' | 'unknown chat'>;
  folders: ToolFolders;
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

type SendParameters = z.infer<typeof parameters>;

/** How many files a model is told of that named none. */
const MOST_LISTED = 20;

export function sendMessage(parts: SendMessageParts): Tool<SendParameters> {
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
  const allowed = await rootsFor(folders, caller, false);
  const found = await fileIn(allowed, path, key);
  const isNothing = found instanceof PathRefusal && found.kind === 'missing';
  return isNothing && allowed.kind === 'workspace'
    ? fileIn(await rootsOfPersona(folders, caller), path, key)
    : found;
}

async function fileIn(allowed: FileRoots, path: string, key: string): Promise<OutgoingFile | PathRefusal> {
  try {
    return await ownFile(allowed, path, key);
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

// Which file a path of a model's means, for `send_message`, and whether it may go: files of the persona itself, of the
// chat's log, and what was sent in the chat, wherever links lead in the end. A path that leads elsewhere is refused before
// anybody looks whether there is a file.

type SendableFile =
  | { kind: 'file'; file: OutgoingFile }
  /** It may not be sent from here, whether it is there or not. */
  | { kind: 'forbidden' }
  | { kind: 'missing' };

/** Where files are, and which of them may go. */
interface SendableReach {
  /** The folders that a path may be relative to, in this order; `flat`: a name alone. */
  bases: { folder: string; flat?: true }[];
  /** The folders in which it must lie. */
  within: string[];
  groupsDir: string;
  /** What lies in a chat's folder of archives goes only if this says so. */
  maySendArchive(chatId: ChatId, file: string): Promise<boolean>;
}

interface SendableFolders {
  groupsDir: string;
  /** `data/media`: a folder for each chat. */
  mediaFolder: string;
  archives: Pick<Archives, 'find'>;
}

/** What a persona may send of a chat: nothing of other personas, and of its archives those that were not reset. */
function reachOf(
  { groupsDir, mediaFolder, archives }: SendableFolders,
  { chatId, personaId }: ToolTarget,
): SendableReach {
  const chat = join(groupsDir, chatId);
  const media = join(mediaFolder, chatId);
  return {
    bases: [{ folder: chat }, { folder: media, flat: true }],
    within: [...[nameOnDisk(chat, personaId), 'memory', ARCHIVE].map((name) => join(chat, name)), media],
    groupsDir,
    async maySendArchive(of, file) {
      const found = of === chatId ? await archives.find(of, file) : null;
      return found !== null && !found.reset && found.personaId === personaId;
    },
  };
}

/** What an owner may have sent from a control chat: any chat's, but no archive that was reset. */
function reachOfOwner(folders: SendableFolders, target: ToolTarget): SendableReach {
  const { groupsDir, mediaFolder, archives } = folders;
  const { bases } = reachOf(folders, target);
  return {
    bases: [...bases, { folder: groupsDir }, { folder: mediaFolder }],
    within: [groupsDir, mediaFolder],
    groupsDir,
    maySendArchive: async (of, file) => (await archives.find(of, file))?.reset === false,
  };
}

async function findFile(path: string, reach: SendableReach): Promise<SendableFile> {
  if (path.includes('\0')) return { kind: 'forbidden' };
  const named = await Promise.all(
    reach.bases.map(async (base) => ({ ...base, full: await fullPath(base.folder, path) })),
  );
  const candidates = named
    .filter(({ folder, full, flat }) => isBelow(full, folder) && (!flat || dirname(full) === folder))
    .filter(({ full }) => reach.within.some((root) => isBelow(full, root)));
  if (candidates.length === 0) return { kind: 'forbidden' };
  const real = {
    groupsDir: (await realPath(reach.groupsDir)) ?? reach.groupsDir,
    within: (await Promise.all(reach.within.map(realPath))).filter((root) => root !== null),
  };
  for (const { full } of candidates) {
    const found = await realPath(full);
    if (found === null) continue;
    if (!(await mayGo(full, reach, reach)) || !(await mayGo(found, real, reach)))
      return { kind: 'forbidden' };
    if ((await stat(found)).isFile())
      return { kind: 'file', file: { path: found, name: composed(basename(full)) } };
  }
  return { kind: 'missing' };
}

/** What leads out of the folder is left as it is: then nobody looks whether there is anything. */
async function fullPath(folder: string, path: string): Promise<string> {
  const full = resolve(folder, path);
  if (!isBelow(full, folder)) return full;
  return join(folder, ...(await pathOnDisk(folder, relative(folder, full).split(sep))));
}

async function mayGo(
  path: string,
  { within, groupsDir }: Pick<SendableReach, 'within' | 'groupsDir'>,
  { maySendArchive }: SendableReach,
): Promise<boolean> {
  if (!within.some((root) => isBelow(path, root))) return false;
  const [chatId = '', folder, ...file] = relative(groupsDir, path).split(sep);
  // On some disks capitals make no difference.
  return folder?.toLowerCase() !== ARCHIVE || maySendArchive(chatId, file.join(sep));
}

const ARCHIVE = 'archive';

/** At any depth, but in no hidden folder: programs keep there what nobody is to see. */
function isBelow(path: string, root: string): boolean {
  const names = relative(root, path).split(sep);
  return names.every((name) => name !== '' && !name.startsWith('.'));
}

async function realPath(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && NOTHING_THERE.has(String(error.code))) return null;
    throw error;
  }
}

const NOTHING_THERE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG']);

interface ListedFile {
  name: string;
  bytes: number;
  /** When it was last written, ms. */
  at: number;
}

/** The newest files of a folder; none where there is no folder. */
async function newestFiles(folder: string, most: number): Promise<ListedFile[]> {
  const names = (await realPath(folder)) === null ? [] : await readdir(folder);
  const found: ListedFile[] = [];
  for (const name of names) {
    const real = isNoMessages(name) ? null : await realPath(join(folder, name));
    if (real === null) continue;
    const { size, mtimeMs } = await stat(real);
    found.push({ name, bytes: size, at: mtimeMs });
  }
  return found.sort((one, other) => other.at - one.at).slice(0, most);
}

// `export_chat`: the conversation of a chat as a file, sent to the chat that asked.

interface ExportChatParts {
  exports: Pick<ChatExports, 'make'>;
  /** Puts it into the outbox; what has this key already is passed over. */
  post: SendMessageParts['post'];
  zone: Zone;
}

const time = z.string().optional();
const exportParameters = z.object({
  format: z.enum(EXPORT_FORMATS).optional().describe('Left out: markdown.'),
  since: time.describe('Only what was said from then on: YYYY-MM-DD, or with a time, YYYY-MM-DDTHH:MM.'),
  until: time.describe('Only what was said up to then; a day counts to its end.'),
  chat_id: z.string().optional(),
});

export function exportChat({ exports, post, zone }: ExportChatParts): Tool<z.infer<typeof exportParameters>> {
  return {
    name: 'export_chat',
    description:
      'Sends this chat a file with its conversation: who said what and when, to read or to keep. Use it when ' +
      'somebody asks for that.',
    hint: 'send the conversation as a file',
    parameters: exportParameters,
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
      const key = exportKeyOf([turnId, target.chatId, format, since ?? '', until ?? '']);
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

function exportKeyOf(parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 24);
}

// `write_artifact`: something made for people, as a file of its own. What a persona makes is sent into its chat; what an
// agent makes on a task is referred to by its result.

interface WriteArtifactParts {
  artifacts: Pick<Artifacts, 'write'>;
  /** Puts the file into the outbox; what has this key already is passed over. */
  post: SendMessageParts['post'];
}

const NAME = 'write_artifact';

const artifactParameters = z.object({
  id: z
    .string()
    .describe(
      'Its name without an extension: 1 to 64 letters, digits, dots, _ and -. The same id replaces it.',
    ),
  content: z.string().describe('The whole text.'),
  title: z.string().optional().describe('What it is, in a few words.'),
  type: z.string().optional().describe('A MIME type, like text/csv. Left out: text/markdown.'),
});

type ArtifactParameters = z.infer<typeof artifactParameters>;

/** For personas in their chats. */
export function writeArtifact({ artifacts, post }: WriteArtifactParts): Tool<ArtifactParameters> {
  return {
    ...about(
      'Writes a document of its own and sends it to this chat as a file: a report, a table, a page, code.',
    ),
    hint: 'write a document and send it as a file',
    isSend: true,
    execute: (given, context) =>
      writing(given, context, 'personas', async (artifact, { chatId, personaId }) => {
        const { turnId, callId, room, signal } = context;
        if (context.cause.turnId === null)
          return failed('Artifacts can only be made while somebody is being answered.');
        const written = await artifacts.write({ ...artifact, taskId: turnId, chatId }, signal);
        if (!written.ok) return notWritten(written.reason);
        if (signal.aborted) return failed('Stopped: nothing was sent.');
        const { ref, file } = written;
        const key = createHash('sha256').update(`${turnId} ${callId}`).digest('hex').slice(0, 24);
        const outcome = await post({ chatId, personaId, turnId, room, key, text: '', file });
        return outcome === 'posted'
          ? done(`The file ${file?.name ?? ref.id} is on its way; it is kept as ${ref.ref}.`)
          : failed(`${ref.ref} was written, but not sent: this chat is not known.`);
      }),
  };
}

/** For agents: who gave the task fetches it. */
export function keepArtifact({ artifacts }: Pick<WriteArtifactParts, 'artifacts'>): Tool<ArtifactParameters> {
  return {
    ...about('Writes a document of its own, which your result refers to: a report, a table, a page, code.'),
    hint: 'write a document for whoever gave you the task',
    execute: (given, context) =>
      writing(given, context, 'agents too', async (artifact, { agent }) => {
        const taskId = agent?.taskId ?? context.turnId;
        const written = await artifacts.write({ ...artifact, taskId }, context.signal);
        return written.ok ? done(`Written: ${written.ref.ref}`) : notWritten(written.reason);
      }),
  };
}

function about(description: string) {
  return { name: NAME, description, parameters: artifactParameters, risk: 'medium' as const };
}

function notWritten(reason: string): ToolResult {
  return failed(`Nothing was written: ${reason}`);
}

async function writing(
  { id, content, title, type }: ArtifactParameters,
  context: ToolContext,
  whose: 'personas' | 'agents too',
  work: (artifact: Omit<NewArtifact, 'taskId'>, caller: Authorisation) => Promise<ToolResult>,
): Promise<ToolResult> {
  const allowed = await authorise(context, {}, whose);
  if (!allowed.ok) return failed(allowed.reason);
  const secret = await refuseSecret(NAME, content, '', context, 'an artifact');
  if (secret !== null) return secret;
  const artifact = { id, content, title: title ?? null, type: type ?? null };
  return runTool(NAME, context, () => work(artifact, allowed.caller), unsaved);
}
