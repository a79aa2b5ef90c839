/** Files of messages: listing, fetching and sending them. */
import { open } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import type { Audio, PhotoSize } from 'grammy/types';
import { InputFile } from 'grammy/web';
import type { FetchResult, OutgoingFile } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { Attachment } from '../../core/message.js';
import type { Outward } from '../../core/network.js';
import { download } from '../kit/download.js';
import type { BotApi } from './api.js';
import type { Bots } from './bots.js';
import { type CallFailure, isKindRefused, isUnwanted } from './failure.js';
import { MOST_CAPTION, type SendRequest } from './outbound.js';
import { blockFilesIn } from './rich.js';
import type { ShownContent } from './update.js';

/** Telegram sends each file of an album as a message of its own; only rich and paid messages have several. */
export function filesIn(content: ShownContent): Attachment[] {
  const paid = [content.paid_media?.paid_media ?? []].flat() as ShownContent[];
  return [content, ...blockFilesIn(content.rich_message), ...paid].flatMap(ownFile);
}

function ownFile(content: ShownContent): Attachment[] {
  const { live_photo: live, voice, audio, document } = content;
  // A live photo also comes with a photo, its first frame.
  const photo = largest(content.photo ?? live?.photo);
  if (photo) return fileOf('image', { mime_type: 'image/jpeg', ...photo });
  if (voice) return fileOf('voice', voice);
  const film = content.video_note ?? content.video ?? content.animation ?? live;
  // An animation also comes with a document, the same file.
  if (film) return fileOf('video', film);
  if (audio) return fileOf('audio', { ...audio, file_name: audio.file_name ?? titleOf(audio) });
  if (document) return fileOf(isPicture(document.mime_type) ? 'image' : 'document', document);
  return [];
}

interface AnyFile {
  file_id: string;
  file_name?: string | undefined;
  mime_type?: string;
  file_size?: number;
  duration?: number;
}

/** Empty without an id: the file cannot be fetched, and a label takes its place. */
function fileOf(kind: Attachment['kind'], file: AnyFile): Attachment[] {
  const { file_id: source, file_name: name, mime_type: mimeType, file_size: bytes, duration } = file;
  if (!source) return [];
  return [
    {
      kind,
      source,
      name: name || null,
      mimeType: mimeType || null,
      bytes: bytes ?? null,
      seconds: duration ?? null,
    },
  ];
}

/** Telegram sorts them by size, smallest first. */
function largest(sizes: PhotoSize[] = []): PhotoSize | undefined {
  const area = ({ width, height }: PhotoSize) => (width ?? 0) * (height ?? 0);
  return sizes
    .filter((size) => size.file_id)
    .toSorted((one, other) => area(one) - area(other))
    .at(-1);
}

/** An SVG counts as a document: it is XML. */
function isPicture(mimeType: string | undefined): boolean {
  return mimeType !== undefined && /^image\/(?!svg)/i.test(mimeType);
}

export function titleOf(audio: Audio): string | undefined {
  if (audio.performer && audio.title) return `${audio.performer} – ${audio.title}`;
  return audio.title || audio.performer || audio.file_name;
}

// Fetches a file of a message: asks Telegram for its path, then downloads it. An operator's own Bot API
// server run with `--local` has saved it to its disk, with no other way to get it.

/** Permanently gone. */
const GONE = [404, 410];

/** `source`: as in an attachment; only the bot that received it may fetch it. Never throws. */
export async function fetchFile(
  bots: Bots,
  source: string,
  { maxBytes, signal, outward }: { maxBytes: number; signal: AbortSignal; outward: Outward },
): Promise<FetchResult> {
  const { bot, fileId } = readSource(source);
  const api = bots.withId(bot)?.api;
  if (api === undefined)
    return { kind: 'gone', reason: 'the bot that received it is not configured any more' };
  let path: unknown;
  let size: unknown;
  try {
    const file = await api.call((raw, ended) => raw.getFile({ file_id: fileId }, ended), { signal });
    ({ file_path: path, file_size: size } = file);
  } catch (error) {
    const { reason, code, description } = api.failure(error);
    // Telegram limits what bots may fetch, whatever our own limit.
    if (code === 400 && /file is too big/i.test(description)) return { kind: 'too large' };
    return { kind: code === 400 || code === 403 ? 'gone' : 'unreachable', reason };
  }
  if (typeof path !== 'string') return { kind: 'gone', reason: 'Telegram does not say where the file is' };
  if (typeof size === 'number' && size > maxBytes) return { kind: 'too large' };

  if (isAbsolute(path)) {
    // Telegram's own server never gives a local path, and a man in the middle must not read our disk.
    if (api.isPublic) return { kind: 'gone', reason: 'Telegram names a file on a disk' };
    return readLocal(path, maxBytes);
  }

  const address = api.fileAddress(path);
  const loaded = await api.call(
    (_raw, ended) =>
      download(address, {
        server: "Telegram's file server",
        maxBytes,
        signal: ended,
        trusted: [new URL(address).origin],
        outward,
      }),
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

/** The bot (null: the main one), and the file's id for that bot. */
function readSource(source: string): { bot: number | null; fileId: string } {
  const [, bot, fileId] = /^(\d{1,15}):(.*)$/s.exec(source) ?? [];
  return bot === undefined || fileId === undefined
    ? { bot: null, fileId: source }
    : { bot: Number(bot), fileId };
}

/** The server may run on another machine or as another user; the operator has to fix that. */
async function readLocal(path: string, maxBytes: number): Promise<FetchResult> {
  try {
    const file = await open(path);
    try {
      const { size } = await file.stat();
      if (size > maxBytes) return { kind: 'too large' };
      const bytes = await file.readFile();
      return bytes.length > maxBytes ? { kind: 'too large' } : { kind: 'fetched', bytes };
    } finally {
      await file.close();
    }
  } catch (error) {
    const where = `the Bot API server has put the file on its own disk, at ${path}`;
    const what = 'that folder must be readable for the gateway under the same path';
    return { kind: 'unreachable', reason: `${where}; ${what} (${describe(error)})` };
  }
}

// Sends a file in its own kind where Telegram accepts that (voice note, photo), else as a document.

const MOST_PHOTO_BYTES = 10_000_000;

/** By its first bytes, whatever its name. An animated WebP would lose its motion. */
function isPhoto(bytes: Buffer): boolean {
  const head = bytes.toString('latin1', 0, 16);
  const isWebp = head.startsWith('RIFF') && head.startsWith('WEBP', 8);
  const isAnimated = head.startsWith('VP8X', 12) && ((bytes[20] ?? 0) & 0x02) !== 0;
  const isPicture =
    head.startsWith('\xff\xd8\xff') || head.startsWith('\x89PNG\r\n') || (isWebp && !isAnimated);
  return isPicture && bytes.length <= MOST_PHOTO_BYTES;
}

/** The request's text becomes the caption. Never rejects. */
export async function sendFile(
  api: BotApi,
  request: SendRequest,
  file: OutgoingFile,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<{ answer: { message_id?: unknown } } | { failure: CallFailure }> {
  const limits = { signal, bytes: bytes.length, mostText: MOST_CAPTION };
  // Each upload needs its own.
  const input = (name = formName(file.name)) => new InputFile(bytes, name);
  if (file.voiceSeconds !== undefined) {
    const duration = Math.max(1, Math.round(file.voiceSeconds));
    const spoken = await api.send(
      request,
      (raw, each, ended) =>
        raw.sendVoice({ ...captionRequest(each), voice: input(file.name), duration }, ended),
      limits,
    );
    if (!('failure' in spoken) || !isKindRefused(spoken.failure)) return spoken;
    // A receiver who blocks voice notes blocks them from every bot; but a caption must not be lost.
    if (isUnwanted(spoken.failure) && request.text.trim() === '') return spoken;
  } else if (isPhoto(bytes)) {
    const shown = await api.send(
      request,
      (raw, each, ended) => raw.sendPhoto({ ...captionRequest(each), photo: input() }, ended),
      limits,
    );
    if (!('failure' in shown && isKindRefused(shown.failure))) return shown;
  }
  return api.send(
    request,
    (raw, each, ended) => raw.sendDocument({ ...captionRequest(each), document: input() }, ended),
    limits,
  );
}

/** The payload without the file: the text is its caption, for which Telegram shows no link previews. */
function captionRequest({ text, entities, link_preview_options: _, ...rest }: SendRequest) {
  if (text.trim() === '') return rest;
  return { ...rest, caption: text, ...(entities === undefined ? {} : { caption_entities: entities }) };
}

/** A file's name for a form: Telegram decodes percent signs there, and cuts at semicolons. */
function formName(name: string): string {
  return name.trim().replace(/[\p{Cc}%;"\\]/gu, encodeURIComponent);
}
