/** Files of messages: fetched, examined, stored, put into words. Failures become outcomes with a reason. Between steps 2 and 4. */
import type { FetchResult } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import { cutWithMarker } from '../core/cut.js';
import { describe } from '../core/errors.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { Media, MediaFiles, StoredAttachment, TakeAsk, Taken, Transcriber } from '../core/media.js';
import type { Attachment } from '../core/message.js';
import { readDocument } from './documents.js';
import { extensionOf, pictureType } from './files.js';
import { createModelImages, type Images } from './images.js';
import {
  GONE,
  LATE,
  type MediaRefusal,
  NO_FETCHING,
  NO_TRANSCRIBER,
  SILENT,
  textWithAttachments,
  tooLarge,
  UNHEARD,
  UNKEPT,
  UNREACHABLE,
  UNREADABLE,
} from './words.js';

interface ByteGate {
  /** Resolves with a function that releases the bytes; null as soon as the signal aborts. Small files never wait. */
  enter(bytes: number, signal: AbortSignal): Promise<(() => void) | null>;
}

/** Up to this size, in bytes, a file need not wait. */
const SMALL_BYTES = 1_000_000;

/** `freed` is called after each release. */
export function createByteGate(most: number, freed: (bytes: number) => void): ByteGate {
  let held = 0;
  const queue: { bytes: number; admit(): void }[] = [];

  /** A file larger than the whole limit passes alone. */
  function admitNext(): void {
    for (let next = queue[0]; next && (held === 0 || held + next.bytes <= most); next = queue[0]) {
      queue.shift();
      held += next.bytes;
      next.admit();
    }
  }

  return {
    async enter(bytes, signal) {
      if (signal.aborted) return null;
      if (bytes <= SMALL_BYTES) return () => {};
      const isIn = await new Promise<boolean>((resolve) => {
        const waiting = { bytes, admit };
        function admit() {
          signal.removeEventListener('abort', leave);
          resolve(true);
        }
        function leave() {
          queue.splice(queue.indexOf(waiting), 1);
          resolve(false);
          admitNext();
        }
        signal.addEventListener('abort', leave, { once: true });
        queue.push(waiting);
        admitNext();
      });
      if (!isIn) return null;
      let isOut = false;
      return () => {
        if (isOut) return;
        isOut = true;
        held -= bytes;
        freed(bytes);
        admitNext();
      };
    },
  };
}

interface TakeOptions {
  files: MediaFiles;
  images: Images;
  /** null if none is configured. */
  transcriber: Transcriber | null;
  maxBytes: number;
  clock: Clock;
  log: Log;
}

interface TakeOne {
  chatId: ChatId;
  fetch:
    | ((attachment: Attachment, ask: { maxBytes: number; signal: AbortSignal }) => Promise<FetchResult>)
    | undefined;
  /** Aborts if the caller gives up or the time is over. */
  signal: AbortSignal;
}

interface TakenOne {
  attachment: StoredAttachment;
  /** For its sender. */
  notice: string | null;
}

interface Contents {
  mimeType: string;
  read?: string;
}

const WAITS_MS = [1_000, 4_000];
/** Longer recordings are not transcribed: music and lectures were not said in the chat. */
const MOST_SECONDS = 600;
/** The limit of transcription servers. */
const MOST_TRANSCRIBED_BYTES = 25_000_000;
const MOST_TRANSCRIPT_CHARS = 20_000;

/** Never throws, and ends soon after the signal aborts. */
async function takeOne(
  options: TakeOptions,
  gate: ByteGate,
  file: StoredAttachment,
  ask: TakeOne,
): Promise<TakenOne> {
  const { transcriber, maxBytes } = options;
  if (file.kind === 'voice' && transcriber === null) return refused(file, NO_TRANSCRIBER);
  if (file.bytes !== null && file.bytes > maxBytes) return refused(file, tooLarge(maxBytes));
  const most = Math.min(maxBytes, Math.max(file.bytes ?? maxBytes, SMALL_BYTES));
  const leave = await gate.enter(most, ask.signal);
  if (leave === null) return refused(file, LATE);
  try {
    const taken = await fetchAndKeep(options, file, most, ask);
    if (taken !== 'more') return taken;
  } finally {
    leave();
  }
  if (most === maxBytes) return refused(file, tooLarge(maxBytes));
  // The sender's size was wrong: again with the full limit.
  return takeOne(options, gate, { ...file, bytes: null }, ask);
}

/** `more`: the file exceeds `most`. */
async function fetchAndKeep(
  options: TakeOptions,
  file: StoredAttachment,
  most: number,
  ask: TakeOne,
): Promise<TakenOne | 'more'> {
  const { files, log } = options;
  const bytes = await fetchOne(options, file, most, ask);
  if (bytes === 'more') return bytes;
  if (!Buffer.isBuffer(bytes)) return refused(file, bytes);

  const attachment = { ...file, bytes: bytes.length };
  try {
    const contents = await examine(options, attachment, bytes, ask);
    if ('why' in contents) return refused(attachment, contents);
    const stored = await files.keep(ask.chatId, bytes, contents.mimeType);
    return {
      attachment: { ...attachment, outcome: { kind: 'kept', file: stored, ...contents } },
      notice: null,
    };
  } catch (error) {
    log.error({ chat: ask.chatId, error: describe(error) }, 'storing a file of a message failed; not taken');
    return refused(attachment, UNKEPT);
  }
}

async function fetchOne(
  options: TakeOptions,
  file: StoredAttachment,
  most: number,
  ask: TakeOne,
): Promise<Buffer | MediaRefusal | 'more'> {
  const { fetch, signal, chatId } = ask;
  const { clock, log } = options;
  if (fetch === undefined) return NO_FETCHING;
  const { outcome: _none, ...attachment } = file;
  const get = async () => fetch(attachment, { maxBytes: most, signal });
  for (let tries = 1; ; tries++) {
    const fetched = await orAborted(get(), signal).catch(
      (error): FetchResult => ({ kind: 'unreachable', reason: describe(error) }),
    );
    if (fetched?.kind === 'fetched' && fetched.bytes.length <= most) return fetched.bytes;
    if (fetched?.kind === 'fetched' || fetched?.kind === 'too large') return 'more';
    const reason = fetched?.reason ?? 'there was no answer in time';
    log.warn({ chat: chatId, kind: file.kind, reason }, 'fetching a file of a message failed');
    if (fetched?.kind === 'gone') return GONE;
    const wait = WAITS_MS[tries - 1];
    if (wait === undefined) return signal.aborted ? LATE : UNREACHABLE;
    await clock.sleep(wait, signal);
    if (signal.aborted) return LATE;
  }
}

async function examine(
  options: TakeOptions,
  file: StoredAttachment,
  bytes: Buffer,
  ask: TakeOne,
): Promise<Contents | MediaRefusal> {
  if (file.kind === 'image') {
    // Prepared once to prove that it can be; the original is stored.
    const prepared = await options.images.prepare(bytes);
    if (prepared.kind === 'image') return { mimeType: pictureType(bytes) ?? prepared.image.mimeType };
    // An SVG drawing counts as a picture, too.
    if (readDocument(bytes).kind === 'text') return documentIn(file, bytes);
    options.log.info({ chat: ask.chatId, reason: prepared.reason }, 'picture is unreadable; not taken');
    return UNREADABLE;
  }
  if (file.kind === 'voice' || file.kind === 'audio') {
    // A voice note is useless without its words; other recordings are stored anyway.
    const isVoice = file.kind === 'voice';
    const mimeType = file.mimeType ?? (isVoice ? 'audio/ogg' : 'audio/mpeg');
    const heard = await transcribe(options, file, mimeType, bytes, ask);
    if (typeof heard === 'string') return { mimeType, read: heard };
    return isVoice ? heard : { mimeType };
  }
  return documentIn(file, bytes);
}

/** Text is read, whatever its type; anything else is only stored, for tools. */
function documentIn(file: StoredAttachment, bytes: Buffer): Contents {
  const found = readDocument(bytes);
  const mimeType = file.mimeType ?? 'application/octet-stream';
  return found.kind === 'text' ? { mimeType, read: found.text } : { mimeType };
}

/** The words of a recording, or why there are none. Never throws. */
async function transcribe(
  { transcriber, log }: TakeOptions,
  { kind, seconds }: StoredAttachment,
  mimeType: string,
  bytes: Buffer,
  { chatId, signal }: TakeOne,
): Promise<string | MediaRefusal> {
  if (transcriber === null) return NO_TRANSCRIBER;
  const isShort = kind === 'voice' || (seconds !== null && seconds <= MOST_SECONDS);
  if (!isShort || bytes.length > MOST_TRANSCRIBED_BYTES) return UNHEARD;
  const recording = { name: `recording.${extensionOf(mimeType)}`, mimeType, signal };
  try {
    const words = await orAborted(transcriber.transcribe(bytes, recording), signal);
    if (words === null) return LATE;
    if (words.trim() === '') return SILENT;
    return cutWithMarker(words.trim(), MOST_TRANSCRIPT_CHARS, 'transcript-max-chars');
  } catch (error) {
    log.warn({ chat: chatId, error: describe(error) }, 'transcribing a recording failed');
    return UNHEARD;
  }
}

function refused(file: StoredAttachment, { why, notice }: MediaRefusal): TakenOne {
  return { attachment: { ...file, outcome: { kind: 'left', why } }, notice: notice?.(file) ?? null };
}

/** null as soon as the signal aborts; later results and errors of `work` are ignored. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const abort = () => resolve(null);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

const MOST_BYTES_AT_ONCE = 32_000_000;

interface MediaOptions extends TakeOptions {
  /** Called with the size of each large file released from memory. */
  freed(bytes: number): void;
  /** Time limit for all files of a message, in ms. Default: one minute. */
  deadlineMs?: number;
}

export function createMedia(options: MediaOptions): Media {
  const { transcriber, clock, freed, deadlineMs = 60_000 } = options;
  const gate = createByteGate(MOST_BYTES_AT_ONCE, freed);

  const isWaiting = ({ outcome }: StoredAttachment) => outcome === undefined;
  const mayAddress = (attachments: StoredAttachment[]) =>
    transcriber !== null &&
    attachments.some((each) => each.kind === 'voice' && !each.ofReply && isWaiting(each));

  async function take(ask: TakeAsk): Promise<Taken | null> {
    const over = new AbortController();
    const stop = () => over.abort();
    ask.signal.addEventListener('abort', stop, { once: true });
    const cancelDeadline = clock.after(deadlineMs, stop);
    const attachments: StoredAttachment[] = [];
    const notices: string[] = [];
    try {
      for (const attachment of ask.attachments) {
        if (ask.signal.aborted) return null;
        const isAsked = ask.only === undefined || (attachment.kind === ask.only && !attachment.ofReply);
        const wanted = isAsked && isWaiting(attachment);
        const taken = wanted
          ? await takeOne(options, gate, attachment, {
              chatId: ask.chatId,
              fetch: ask.fetch,
              signal: over.signal,
            })
          : { attachment, notice: null };
        attachments.push(taken.attachment);
        // For other people's files, the persona itself explains.
        const notice = attachment.ofReply ? null : taken.notice;
        if (notice !== null && !notices.includes(notice)) notices.push(notice);
      }
    } finally {
      cancelDeadline();
      ask.signal.removeEventListener('abort', stop);
    }
    if (ask.signal.aborted) return null;
    const notice = notices.length === 0 ? null : notices.join('\n');
    return { text: textWithAttachments(ask.words, attachments), attachments, notice };
  }

  return {
    tell: textWithAttachments,
    mayAddress,
    take,
    images: createModelImages(options.files, options.images, options.log),
    async remove(files) {
      for (const file of files) await options.files.remove(file);
    },
  };
}
