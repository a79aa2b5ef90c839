/** Files of messages: fetching and sending them. */
import { readFile, stat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { InputFile } from 'grammy/web';
import { LRUCache } from 'lru-cache';
import type { FetchResult, OutgoingFile } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { Outward } from '../../core/network.js';
import { download } from '../kit/download.js';
import { readOutgoing, withEmptyNote } from '../kit/outgoing.js';
import type { BotApi, Ended, RawApi } from './api.js';
import type { Bots } from './bots.js';
import { isKindRefused, isUnwanted } from './failure.js';
import { MOST_CAPTION, type SendRequest } from './outbound.js';
import { outcomeOf, type SendWithFile, sendText } from './send.js';

/** HTTP statuses of a file that is permanently gone. */
const GONE = [404, 410];

/**
 * Asks Telegram for a file's path, then downloads it. `source`: as in an attachment; only the bot that received it
 * may fetch it. Never throws.
 */
export async function fetchFile(
  bots: Bots,
  source: string,
  { maxBytes, signal, outward }: { maxBytes: number; signal: AbortSignal; outward: Outward },
): Promise<FetchResult> {
  const [, id, fileId = source] = /^(\d{1,15}):(.*)$/s.exec(source) ?? [];
  const api = bots.withId(id === undefined ? null : Number(id))?.api;
  if (api === undefined) {
    return { kind: 'gone', reason: 'the bot that received it is not configured any more' };
  }
  const found = await api.attempt((raw, ended) => raw.getFile({ file_id: fileId }, ended), { signal });
  if ('failure' in found) {
    const { reason, code, description } = found.failure;
    // Telegram limits what bots may fetch, whatever our own limit.
    if (code === 400 && /file is too big/i.test(description)) return { kind: 'too large' };
    return { kind: code === 400 || code === 403 ? 'gone' : 'unreachable', reason };
  }
  const { file_path: path, file_size: size }: { file_path?: unknown; file_size?: unknown } = found.answer;
  if (typeof path !== 'string') return { kind: 'gone', reason: 'Telegram does not say where the file is' };
  if (typeof size === 'number' && size > maxBytes) return { kind: 'too large' };

  if (isAbsolute(path)) {
    // Telegram's own server never gives a local path, and a man in the middle must not read our disk.
    if (api.isPublic) return { kind: 'gone', reason: 'Telegram names a file on a disk' };
    return readLocal(path, maxBytes);
  }

  const address = api.fileAddress(path);
  const trusted = [new URL(address).origin];
  const server = "Telegram's file server";
  const loaded = await api.call(
    (_raw, ended) => download(address, { server, maxBytes, signal: ended, trusted, outward }),
    { signal, bytes: maxBytes },
  );
  if (loaded.kind === 'refused') {
    return { kind: GONE.includes(loaded.status) ? 'gone' : 'unreachable', reason: loaded.reason };
  }
  if (loaded.kind === 'fetched' && typeof size === 'number' && loaded.bytes.length < size) {
    return { kind: 'unreachable', reason: `only ${loaded.bytes.length} of ${size} bytes arrived` };
  }
  return loaded;
}

/**
 * An operator's own Bot API server run with `--local` has saved it to its disk, with no other way to get it. It may
 * run on another machine or as another user; the operator has to fix that.
 */
async function readLocal(path: string, maxBytes: number): Promise<FetchResult> {
  try {
    const { size } = await stat(path);
    if (size > maxBytes) return { kind: 'too large' };
    const bytes = await readFile(path);
    return bytes.length > maxBytes ? { kind: 'too large' } : { kind: 'fetched', bytes };
  } catch (error) {
    const where = `the Bot API server has put the file on its own disk, at ${path}`;
    const what = 'that folder must be readable for the gateway under the same path';
    return { kind: 'unreachable', reason: `${where}; ${what} (${describe(error)})` };
  }
}

/** For how many messages it is remembered that their text went out before their file. */
const MOST_SAID = 1_000;
/** Telegram's upload limit for bots. */
const UPLOADS = { bytes: 50_000_000, platform: 'Telegram' };
const MOST_PHOTO_BYTES = 10_000_000;

/** The text becomes the file's caption. If too long for that, it goes first, as a message of its own. */
export function createFileSending(): SendWithFile {
  const wordsSaid = new LRUCache<string, true>({ max: MOST_SAID });

  return async (bot, request, file, { key, signal }) => {
    const read = await readOutgoing(file, UPLOADS, signal);
    if (read.kind !== 'read') return { result: read };
    let below = request;
    if (request.text.length > MOST_CAPTION) {
      if (!wordsSaid.has(key)) {
        const said = await sendText(bot, request, signal);
        if (said.result.kind !== 'sent') return said;
        // If the file fails now, a retry sends only the file; after a crash it sends both.
        wordsSaid.set(key, true);
      }
      const { entities: _e, reply_markup: _m, reply_parameters: _r, ...where } = request;
      below = { ...where, text: '' };
    }
    if (read.bytes.length === 0) {
      return sendText(bot, { ...below, text: withEmptyNote(below.text, file) }, signal);
    }
    return outcomeOf(bot, await sendFile(bot.api, below, file, read.bytes, signal));
  };
}

/** In its own kind where Telegram accepts that (voice note, photo), else as a document. Never rejects. */
async function sendFile(
  api: BotApi,
  request: SendRequest,
  file: OutgoingFile,
  bytes: Buffer,
  signal: AbortSignal,
) {
  const limits = { signal, bytes: bytes.length, mostText: MOST_CAPTION };
  const upload = (run: (raw: RawApi, said: Caption, ended: Ended) => Promise<{ message_id: number }>) =>
    api.send(request, (raw, each, ended) => run(raw, captionRequest(each), ended), limits);
  // Each upload needs its own.
  const input = (name = formName(file.name)) => new InputFile(bytes, name);
  if (file.voiceSeconds !== undefined) {
    const duration = Math.max(1, Math.round(file.voiceSeconds));
    const spoken = await upload((raw, said, ended) =>
      raw.sendVoice({ ...said, voice: input(file.name), duration }, ended),
    );
    if (!('failure' in spoken) || !isKindRefused(spoken.failure)) return spoken;
    // A receiver who blocks voice notes blocks them from every bot; but a caption must not be lost.
    if (isUnwanted(spoken.failure) && request.text.trim() === '') return spoken;
  } else if (isPhoto(bytes)) {
    const shown = await upload((raw, said, ended) => raw.sendPhoto({ ...said, photo: input() }, ended));
    if (!('failure' in shown && isKindRefused(shown.failure))) return shown;
  }
  return upload((raw, said, ended) => raw.sendDocument({ ...said, document: input() }, ended));
}

type Caption = ReturnType<typeof captionRequest>;

/** By its first bytes, whatever its name. An animated WebP would lose its motion. */
function isPhoto(bytes: Buffer): boolean {
  const head = bytes.toString('latin1', 0, 16);
  const isWebp = head.startsWith('RIFF') && head.startsWith('WEBP', 8);
  const isAnimated = head.startsWith('VP8X', 12) && ((bytes[20] ?? 0) & 0x02) !== 0;
  const isPicture =
    head.startsWith('\xff\xd8\xff') || head.startsWith('\x89PNG\r\n') || (isWebp && !isAnimated);
  return isPicture && bytes.length <= MOST_PHOTO_BYTES;
}

/** The payload without the file: the text is its caption, for which Telegram shows no link previews. */
function captionRequest({ text, entities, link_preview_options: _, ...rest }: SendRequest) {
  if (text.trim() === '') return rest;
  return { ...rest, caption: text, ...(entities && { caption_entities: entities }) };
}

/** A file's name for a form: Telegram decodes percent signs there, and cuts at semicolons. */
function formName(name: string): string {
  return name.trim().replace(/[\p{Cc}%;"\\]/gu, encodeURIComponent);
}
