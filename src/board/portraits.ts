/**
 * Pictures of personas for the page, by an address that changes with the file, so that a browser asks once for each.
 * Only a picture beside PERSONA.md or in the library is shown: no address in a card is ever asked.
 */
import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { z } from '@hono/zod-openapi';
import { CARD_LIMITS } from '../core/cards.js';
import type { ChatId } from '../core/ids.js';
import type { Persona, Personas } from '../core/persona.js';
import { type BoardApi, reply, replyWith } from './api.js';
import { headersOf } from './files.js';
import { fieldsIn, Room } from './own.js';

const NAME = 'portrait.png';
const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
/** Of a PNG, up to its width and height. */
const HEAD_BYTES = 24;
/** A small file may unpack to more than a browser can hold. */
const MOST_PIXELS = 50_000_000;
const A_YEAR = 'private, max-age=31536000, immutable';

const Which = z.object({ version: z.string().max(40), chat: Room, persona: z.string().max(255) });

/** A picture that needs no other server; the page loads from none. null: it has none. */
export async function faceOf(
  chatId: ChatId,
  { id: persona, avatar, portrait }: Persona,
): Promise<string | null> {
  if (avatar !== null && /^data:image\/(?!svg)/.test(avatar)) return avatar;
  const found = portrait === null ? null : await lstat(portrait).catch(() => null);
  if (found === null || !isShown(found)) return null;
  return `portraits/${versionOf(found)}.png?${new URLSearchParams({ chat: chatId, persona })}`;
}

export function addPortraits(api: BoardApi, personas: Personas): void {
  api.get('/portraits/:version', async (context) => {
    const { version, chat, persona } = fieldsIn(context, Which);
    const portrait = (await personas.get(chat, persona))?.portrait ?? null;
    const found = portrait === null ? null : await pictureAt(portrait);
    if (found === null) return reply(404, { error: 'This persona has no portrait.' });
    const isNow = version === `${found.version}.png`;
    return replyWith(200, context.req.method === 'HEAD' ? null : streamOfBytes(found.bytes), {
      ...headersOf({ type: 'image/png', name: NAME }),
      'Content-Length': `${found.bytes.length}`,
      ...(isNow && { 'Cache-Control': A_YEAR }),
    });
  });
}

/** null: it is no PNG that a browser could show. */
async function pictureAt(path: string): Promise<{ bytes: Buffer; version: string } | null> {
  // A link may lead anywhere, and a pipe would wait for its other end.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(path, flags).catch(() => null);
  if (handle === null) return null;
  try {
    const found = await handle.stat();
    if (!isShown(found) || !(await isPicture(handle))) return null;
    const bytes = Buffer.alloc(found.size);
    const { bytesRead } = await handle.read(bytes, 0, found.size, 0);
    return bytesRead < found.size ? null : { bytes, version: versionOf(found) };
  } finally {
    await handle.close();
  }
}

async function isPicture(handle: FileHandle): Promise<boolean> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
  if (bytesRead < HEAD_BYTES || !buffer.subarray(0, SIGNATURE.length).equals(SIGNATURE)) return false;
  return buffer.readUInt32BE(16) * buffer.readUInt32BE(20) <= MOST_PIXELS;
}

function isShown(found: Stats): boolean {
  return found.isFile() && found.size <= CARD_LIMITS.portraitBytes;
}

function versionOf({ mtimeMs, size, ino }: Stats): string {
  return createHash('sha256').update(`${mtimeMs} ${size} ${ino}`).digest('hex').slice(0, 16);
}

function streamOfBytes(bytes: Buffer): ReadableStream<Uint8Array> {
  return ReadableStream.from([bytes]);
}
