/**
 * Takes one file that came with a message: fetches it within its limit, finds out what it is, keeps it, and reads
 * what can be read. Whatever goes wrong becomes an outcome that says so.
 */
import type { FetchResult } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/errors.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { AttachmentOutcome, MediaFiles, StoredAttachment, Transcriber } from '../core/media.js';
import type { Attachment } from '../core/message.js';
import { orAborted } from './abort.js';
import { readDocument } from './documents.js';
import { hear } from './hear.js';
import type { Images } from './images.js';
import {
  GONE,
  LATE,
  NO_FETCHING,
  NO_TRANSCRIBER,
  type Refusal,
  tooLarge,
  UNKEPT,
  UNREACHABLE,
  UNREADABLE,
} from './refusals.js';
import { pictureType } from './types.js';

export interface TakeParts {
  files: MediaFiles;
  images: Images;
  /** null where none is configured. */
  transcriber: Transcriber | null;
  maxBytes: number;
  clock: Clock;
  log: Log;
}

export interface TakeOne {
  chatId: ChatId;
  fetch:
    | ((attachment: Attachment, ask: { maxBytes: number; signal: AbortSignal }) => Promise<FetchResult>)
    | undefined;
  /** Aborts when nobody waits any more, or the time is over. */
  signal: AbortSignal;
}

export interface TookOne {
  attachment: StoredAttachment;
  /** For its sender. */
  notice: string | null;
}

/** A connection that broke is tried again. */
const WAITS_MS = [1_000, 4_000];

/** Never throws, and ends soon after the signal aborts. */
export async function takeOne(parts: TakeParts, file: StoredAttachment, ask: TakeOne): Promise<TookOne> {
  const { transcriber, maxBytes, log } = parts;
  if (file.kind === 'voice' && transcriber === null) return refused(file, NO_TRANSCRIBER);
  if (file.bytes !== null && file.bytes > maxBytes) return refused(file, tooLarge(maxBytes));
  const fetched = await fetchOne(parts, file, ask);
  if (!Buffer.isBuffer(fetched)) return refused(file, fetched);

  const attachment = { ...file, bytes: fetched.length };
  try {
    return await read(parts, attachment, fetched, ask);
  } catch (error) {
    log.error(
      { chat: ask.chatId, error: describe(error) },
      'a file that came with a message could not be kept',
    );
    return refused(attachment, UNKEPT);
  }
}

async function fetchOne(parts: TakeParts, file: StoredAttachment, ask: TakeOne): Promise<Buffer | Refusal> {
  const { fetch, signal, chatId } = ask;
  const { maxBytes, clock, log } = parts;
  if (fetch === undefined) return NO_FETCHING;
  const { outcome: _none, ...attachment } = file;
  const get = async () => fetch(attachment, { maxBytes, signal });
  for (let tries = 1; ; tries++) {
    const fetched = await orAborted(get(), signal).catch(
      (error): FetchResult => ({ kind: 'unreachable', reason: describe(error) }),
    );
    if (fetched?.kind === 'fetched' && fetched.bytes.length <= maxBytes) return fetched.bytes;
    if (fetched?.kind === 'fetched' || fetched?.kind === 'too large') return tooLarge(maxBytes);
    const reason = fetched?.reason ?? 'there was no answer in time';
    log.warn(
      { chat: chatId, kind: file.kind, reason },
      'a file that came with a message could not be fetched',
    );
    if (fetched?.kind === 'gone') return GONE;
    const wait = WAITS_MS[tries - 1];
    if (wait === undefined) return signal.aborted ? LATE : UNREACHABLE;
    await clock.sleep(wait, signal);
    if (signal.aborted) return LATE;
  }
}

function read(parts: TakeParts, file: StoredAttachment, bytes: Buffer, ask: TakeOne): Promise<TookOne> {
  switch (file.kind) {
    case 'image':
      return readPicture(parts, file, bytes, ask);
    case 'voice':
    case 'audio':
      return readSound(parts, file, bytes, ask);
    case 'video':
    case 'document':
      return readRest(parts, file, bytes, ask);
  }
}

/** It is made ready once, to know that it can be; what is kept is what came. */
async function readPicture(
  parts: TakeParts,
  file: StoredAttachment,
  bytes: Buffer,
  ask: TakeOne,
): Promise<TookOne> {
  const prepared = await parts.images.prepare(bytes);
  if (prepared.kind === 'image') {
    return keep(parts, file, bytes, ask, { mimeType: pictureType(bytes) ?? prepared.image.mimeType });
  }
  // A drawing in XML is called a picture, too.
  if (readDocument(bytes).kind === 'text') return readRest(parts, file, bytes, ask);
  parts.log.info({ chat: ask.chatId, reason: prepared.reason }, 'a picture could not be read');
  return refused(file, UNREADABLE);
}

/** What was spoken for this chat is of no use unheard; a recording of another kind is kept all the same. */
async function readSound(
  parts: TakeParts,
  file: StoredAttachment,
  bytes: Buffer,
  ask: TakeOne,
): Promise<TookOne> {
  const spoken = file.kind === 'voice';
  const mimeType = file.mimeType ?? (spoken ? 'audio/ogg' : 'audio/mpeg');
  const heard = await hear(parts, { ...file, mimeType }, bytes, ask);
  if (heard.kind === 'words') return keep(parts, file, bytes, ask, { mimeType, read: heard.words });
  return spoken ? refused(file, heard.refusal) : keep(parts, file, bytes, ask, { mimeType });
}

/** A text is read, whatever it came as; anything else only lies there, for tools. */
function readRest(parts: TakeParts, file: StoredAttachment, bytes: Buffer, ask: TakeOne): Promise<TookOne> {
  const found = readDocument(bytes);
  const mimeType = file.mimeType ?? 'application/octet-stream';
  const what = found.kind === 'text' ? { mimeType, read: found.text } : { mimeType };
  return keep(parts, file, bytes, ask, what);
}

/** Throws where the disk does. */
async function keep(
  { files }: TakeParts,
  file: StoredAttachment,
  bytes: Buffer,
  { chatId }: TakeOne,
  what: { mimeType: string; read?: string },
): Promise<TookOne> {
  const kept = await files.keep(chatId, bytes, what.mimeType);
  const outcome: AttachmentOutcome = { kind: 'kept', file: kept, ...what };
  return { attachment: { ...file, outcome }, notice: null };
}

function refused(file: StoredAttachment, { why, notice }: Refusal): TookOne {
  return { attachment: { ...file, outcome: { kind: 'left', why } }, notice: notice?.(file) ?? null };
}
