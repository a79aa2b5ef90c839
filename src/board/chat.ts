/** The page's chats: rows of any conversation and their files; messages, uploads and personas of its own. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { z } from '@hono/zod-openapi';
import { BOARD_MAIN, BOARD_OWNER, type Desk, type LoggedFile } from '../core/board.js';
import type { CommandDescription } from '../core/channel.js';
import type { ChatRecord } from '../core/chat-record.js';
import { addressOf, type ChatId, DEFAULT_PERSONA } from '../core/ids.js';
import type { Audit } from '../core/journal.js';
import type { Log } from '../core/log.js';
import type { Personas } from '../core/persona.js';
import { type BoardApi, bodyOf, reply, replyWith, streamOf } from './api.js';
import { headersOf } from './files.js';
import { tooLarge, UPLOADS } from './guard.js';
import { type LogParts, pageOf, readLog } from './log-rows.js';
import { bodyIn, fieldsIn, Room, refused } from './own.js';
import { addPortraits, faceOf } from './portraits.js';

export interface ChatParts extends LogParts {
  desk: Desk;
  personas: Personas;
  chat(id: ChatId): Promise<ChatRecord | null>;
  /** For completion. */
  commands: readonly CommandDescription[];
  /** Of a file that somebody sent. */
  mediaPath(file: string): string;
  /** Maximum size of a file. */
  uploadBytes: number;
  audit: Audit;
  newId(): string;
}

const Chat = z
  .string()
  .regex(/^board_[a-z0-9][a-z0-9-]{0,63}$/, 'a chat of the page: board_ and small letters, digits, -');
const Id = z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'letters, digits and -');
const Gap = z.string().max(200);
const Uploaded = z.strictObject({
  id: z.string().max(64),
  name: z.string().max(256),
  type: z.string().max(100),
  bytes: z.number().int().nonnegative(),
});
const MOST_FILES = 20;
/** Each is held in memory until all of it is there. */
const MOST_UPLOADS = 16;
const MANY_AT_ONCE = { error: 'Too many files are coming at once; try again.' };
const RETRY_NOW = { 'Retry-After': '1' };
const MANY_KEPT = { error: 'Too many files wait for their messages; the gateway removes them after a day.' };
const AWAY = { error: 'The gateway is stopping; the message goes when it is back.' };

export function addChat(api: BoardApi, parts: ChatParts, log: Log): void {
  addRows(api, parts, log);
  addMessages(api, parts);
  addPersonas(api, parts);
  addPortraits(api, parts.personas);
  api.get('/api/board/commands', () => reply(200, { commands: parts.commands }));
}

function addRows(api: BoardApi, parts: ChatParts, log: Log): void {
  const Place = z.object({
    room: Room,
    before: Gap.optional(),
    after: Gap.optional(),
    around: Gap.optional(),
    first: z.string().optional(),
  });
  api.get('/api/board/rows', async (context) => {
    const { room, before, after, around, first } = fieldsIn(context, Place);
    const from =
      before !== undefined
        ? { before }
        : after !== undefined
          ? { after }
          : around !== undefined
            ? { around }
            : first !== undefined
              ? ('first' as const)
              : ('newest' as const);
    return reply(200, pageOf(await readLog(parts, room, from)));
  });
  const Which = z.object({ room: Room, row: Gap, n: z.coerce.number().int().min(0).max(999) });
  api.get('/api/board/rows/file', async (context) => {
    const { room, row, n } = fieldsIn(context, Which);
    const { rows } = await parts.feed.log({ room, from: { around: row }, most: 1 });
    const file = rows.find(({ key }) => key === row)?.files[n];
    const opened = file && (await openFile(parts, file));
    if (!file || !opened) throw refused(404, { error: 'This file is not kept any more.' });
    const { handle, bytes } = opened;
    const type = file.type ?? 'application/octet-stream';
    // The file closes with the stream, and so it does for a request that wants no body.
    const body = streamOf(() => piecesOf(handle), context, log);
    if (context.req.method === 'HEAD') await handle.close();
    return replyWith(200, body, {
      ...headersOf({ type, name: file.name }),
      'Content-Length': `${bytes}`,
    });
  });
}

/** Where the database says; never where a request says. null: it is gone, or no plain file. */
async function openFile(
  { mediaPath }: ChatParts,
  { place }: LoggedFile,
): Promise<{ handle: FileHandle; bytes: number } | null> {
  if (place === null) return null;
  const path = 'media' in place ? mediaPath(place.media) : place.path;
  // A pipe would wait for its other end, and a link may lead anywhere since the file was sent.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(path, flags).catch(() => null);
  if (handle === null) return null;
  const found = await handle.stat();
  if (found.isFile()) return { handle, bytes: found.size };
  await handle.close();
  return null;
}

const PIECE_BYTES = 65_536;

async function* piecesOf(handle: FileHandle): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(PIECE_BYTES), 0, PIECE_BYTES);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

function addMessages(api: BoardApi, { desk, feed, uploadBytes }: ChatParts): void {
  api.get('/api/board/chats', async () => {
    const found = await feed.boardChats();
    const hasMain = found.some(({ chatId }) => chatId === BOARD_MAIN);
    const all = hasMain ? found : [...found, { chatId: BOARD_MAIN, at: 0 }];
    return reply(200, {
      chats: all.map(({ chatId, at }) => ({ chat: chatId, name: addressOf(chatId), at })),
    });
  });
  const Message = z.strictObject({
    id: Id,
    text: z.string(),
    files: z.array(Uploaded).max(MOST_FILES).default([]),
  });
  api.post('/api/board/chats/:chat/messages', async (context) => {
    const { chat: chatId } = fieldsIn(context, z.object({ chat: Chat }));
    const message = await bodyIn(context, Message);
    if (message.text.trim() === '' && message.files.length === 0) {
      throw refused(400, { error: 'A message has words or files.' });
    }
    if ((await desk.take({ chatId, ...message })) === 'closed') throw refused(503, AWAY);
    return reply(200, {});
  });
  api.post('/api/board/chats/:chat/choices', async (context) => {
    const { chat: chatId } = fieldsIn(context, z.object({ chat: Chat }));
    const choice = await bodyIn(context, z.strictObject({ id: Id, value: z.string().max(200) }));
    if ((await desk.press({ chatId, ...choice })) === 'closed') throw refused(503, AWAY);
    return reply(200, {});
  });
  let underWay = 0;
  api.post(UPLOADS, async (context) => {
    const About = z.object({ name: z.string().min(1).max(256), type: z.string().max(100).default('') });
    const { name, type } = fieldsIn(context, About);
    if (underWay >= MOST_UPLOADS) throw refused(429, MANY_AT_ONCE, RETRY_NOW);
    underWay += 1;
    try {
      const bytes = await bodyOf(context.env.incoming, uploadBytes);
      if (bytes === 'too large') throw refused(413, { error: tooLarge(uploadBytes) });
      const kept = await desk.keep({ name, type: type || 'application/octet-stream', bytes });
      if (kept === null) throw refused(429, MANY_KEPT);
      return reply(201, kept);
    } finally {
      underWay -= 1;
    }
  });
}

function addPersonas(api: BoardApi, parts: ChatParts): void {
  const { desk, personas, audit, newId } = parts;
  api.get('/api/board/chats/:chat/personas', async (context) => {
    const { chat: chatId } = fieldsIn(context, z.object({ chat: Chat }));
    const all = await personas.list(chatId);
    const chat = await parts.chat(chatId);
    const active = all.some(({ id }) => id === chat?.activePersona) ? chat?.activePersona : DEFAULT_PERSONA;
    const present = new Set([active, ...(chat?.invited ?? [])]);
    const shown = all.map(async (each) => ({
      ...{ id: each.id, name: each.name, present: present.has(each.id) },
      avatar: await faceOf(chatId, each),
    }));
    return reply(200, { active, personas: await Promise.all(shown) });
  });
  const NewPersona = z.strictObject({ name: z.string().max(1_000), character: z.string().max(100_000) });
  api.post('/api/board/chats/:chat/personas', async (context) => {
    const { chat: chatId } = fieldsIn(context, z.object({ chat: Chat }));
    const { name, character } = await bodyIn(context, NewPersona);
    await audit.record({
      ...{ kind: 'command', who: BOARD_OWNER, where: chatId, word: BOARD_OWNER },
      what: `/persona new ${name.replace(/\s+/g, ' ').slice(0, 100)}`,
    });
    const made = await personas.create(chatId, name, null, character);
    if (!made.ok) throw refused(422, { error: made.reason });
    const { id } = made.persona;
    // As the command does it: it becomes active, and greets.
    await desk.take({ chatId, id: newId(), text: `/persona switch ${id}`, files: [] });
    return reply(201, { id, name: made.persona.name });
  });
}
