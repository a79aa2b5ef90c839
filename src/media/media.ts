/** Files of messages: fetched, examined, stored, put into words. Failures become outcomes with a reason. Between steps 2 and 4. */
import type { FetchResult } from '../core/channel.js';
import { type Clock, OVER, onAbort, orAborted } from '../core/clock.js';
import { once } from '../core/concurrency.js';
import { cutWithMarker } from '../core/cut.js';
import { describe } from '../core/errors.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { Media, MediaFiles, StoredAttachment, TakeAsk, Taken, Transcriber } from '../core/media.js';
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

/** Up to this size, in bytes, a file need not wait. */
const SMALL_BYTES = 1_000_000;

type ByteGate = ReturnType<typeof createByteGate>;

/** Bounds the bytes in memory at once. `freed` is called after each release. */
export function createByteGate(most: number, freed: (bytes: number) => void) {
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
    /** Resolves with a function that releases the bytes; null as soon as the signal aborts. Small files never wait. */
    async enter(bytes: number, signal: AbortSignal): Promise<(() => void) | null> {
      if (signal.aborted) return null;
      if (bytes <= SMALL_BYTES) return () => {};
      let stopListening = () => {};
      const isIn = await new Promise<boolean>((resolve) => {
        const waiting = { bytes, admit: () => resolve(true) };
        queue.push(waiting);
        admitNext();
        stopListening = onAbort(signal, () => {
          const at = queue.indexOf(waiting);
          if (at < 0) return;
          queue.splice(at, 1);
          resolve(false);
          admitNext();
        });
      });
      stopListening();
      if (!isIn) return null;
      return once(() => {
        held -= bytes;
        freed(bytes);
        admitNext();
        return true;
      });
    },
  };
}

interface MediaOptions {
  files: MediaFiles;
  images: Images;
  /** null if none is configured. */
  transcriber: Transcriber | null;
  maxBytes: number;
  clock: Clock;
  log: Log;
  /** Called with the size of each large file released from memory. */
  freed(bytes: number): void;
  /** Time limit for all files of a message, in ms. Default: one minute. */
  deadlineMs?: number;
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

/** Takes the files of one message. `signal`: the caller gives up, or the time is over. Never throws. */
class Taking {
  constructor(
    private readonly options: MediaOptions,
    private readonly gate: ByteGate,
    private readonly chatId: ChatId,
    private readonly fetch: TakeAsk['fetch'],
    private readonly signal: AbortSignal,
  ) {}

  async take(file: StoredAttachment): Promise<TakenOne> {
    const { transcriber, maxBytes } = this.options;
    if (file.kind === 'voice' && transcriber === null) return refused(file, NO_TRANSCRIBER);
    if (file.bytes !== null && file.bytes > maxBytes) return refused(file, tooLarge(maxBytes));
    const most = Math.min(maxBytes, Math.max(file.bytes ?? maxBytes, SMALL_BYTES));
    const leave = await this.gate.enter(most, this.signal);
    if (leave === null) return refused(file, LATE);
    try {
      const taken = await this.#fetchAndKeep(file, most);
      if (taken !== 'more') return taken;
    } finally {
      leave();
    }
    if (most === maxBytes) return refused(file, tooLarge(maxBytes));
    // The sender's size was wrong: again with the full limit.
    return this.take({ ...file, bytes: null });
  }

  /** `more`: the file exceeds `most`. */
  async #fetchAndKeep(file: StoredAttachment, most: number): Promise<TakenOne | 'more'> {
    const bytes = await this.#fetch(file, most);
    if (bytes === 'more') return bytes;
    if (!Buffer.isBuffer(bytes)) return refused(file, bytes);
    const attachment = { ...file, bytes: bytes.length };
    try {
      const contents = await this.#examine(attachment, bytes);
      if ('why' in contents) return refused(attachment, contents);
      const stored = await this.options.files.keep(this.chatId, bytes, contents.mimeType);
      const outcome = { kind: 'kept' as const, file: stored, ...contents };
      return { attachment: { ...attachment, outcome }, notice: null };
    } catch (error) {
      this.#log({ error: describe(error) }, 'storing a file of a message failed; not taken', 'error');
      return refused(attachment, UNKEPT);
    }
  }

  async #fetch(file: StoredAttachment, most: number): Promise<Buffer | MediaRefusal | 'more'> {
    const { fetch, signal } = this;
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
      this.#log({ kind: file.kind, reason }, 'fetching a file of a message failed');
      if (fetched?.kind === 'gone') return GONE;
      const wait = WAITS_MS[tries - 1];
      if (wait === undefined) return signal.aborted ? LATE : UNREACHABLE;
      await this.options.clock.sleep(wait, signal);
      if (signal.aborted) return LATE;
    }
  }

  async #examine(file: StoredAttachment, bytes: Buffer): Promise<Contents | MediaRefusal> {
    if (file.kind === 'image') {
      // Prepared once to prove that it can be; the original is stored.
      const prepared = await this.options.images.prepare(bytes);
      if (prepared.kind === 'image') return { mimeType: pictureType(bytes) ?? prepared.image.mimeType };
      // An SVG drawing counts as a picture, too.
      if (readDocument(bytes) !== null) return documentIn(file, bytes);
      this.#log({ reason: prepared.reason }, 'picture is unreadable; not taken', 'info');
      return UNREADABLE;
    }
    if (file.kind === 'voice' || file.kind === 'audio') {
      // A voice note is useless without its words; other recordings are stored anyway.
      const isVoice = file.kind === 'voice';
      const mimeType = file.mimeType ?? (isVoice ? 'audio/ogg' : 'audio/mpeg');
      const heard = await this.#transcribe(file, mimeType, bytes);
      if (typeof heard === 'string') return { mimeType, read: heard };
      return isVoice ? heard : { mimeType };
    }
    return documentIn(file, bytes);
  }

  /** The words of a recording, or why there are none. Never throws. */
  async #transcribe(
    { kind, seconds }: StoredAttachment,
    mimeType: string,
    bytes: Buffer,
  ): Promise<string | MediaRefusal> {
    const { transcriber } = this.options;
    if (transcriber === null) return NO_TRANSCRIBER;
    const isShort = kind === 'voice' || (seconds !== null && seconds <= MOST_SECONDS);
    if (!isShort || bytes.length > MOST_TRANSCRIBED_BYTES) return UNHEARD;
    const recording = { name: `recording.${extensionOf(mimeType)}`, mimeType, signal: this.signal };
    try {
      const words = await orAborted(transcriber.transcribe(bytes, recording), this.signal);
      if (words === null) return LATE;
      if (words.trim() === '') return SILENT;
      return cutWithMarker(words.trim(), MOST_TRANSCRIPT_CHARS, 'transcript-max-chars');
    } catch (error) {
      this.#log({ error: describe(error) }, 'transcribing a recording failed');
      return UNHEARD;
    }
  }

  #log(fields: object, message: string, level: 'info' | 'warn' | 'error' = 'warn'): void {
    this.options.log[level]({ chat: this.chatId, ...fields }, message);
  }
}

/** Text is read, whatever its type; anything else is only stored, for tools. */
function documentIn(file: StoredAttachment, bytes: Buffer): Contents {
  const read = readDocument(bytes);
  const mimeType = file.mimeType ?? 'application/octet-stream';
  return read === null ? { mimeType } : { mimeType, read };
}

function refused(file: StoredAttachment, { why, notice }: MediaRefusal): TakenOne {
  return { attachment: { ...file, outcome: { kind: 'left', why } }, notice: notice?.(file) ?? null };
}

const MOST_BYTES_AT_ONCE = 32_000_000;

export function createMedia(options: MediaOptions): Media {
  const { files, transcriber, clock, freed, deadlineMs = 60_000 } = options;
  const gate = createByteGate(MOST_BYTES_AT_ONCE, freed);

  async function take(ask: TakeAsk): Promise<Taken | null> {
    const late = new AbortController();
    const cancelDeadline = clock.after(deadlineMs, () => late.abort(OVER));
    const signal = AbortSignal.any([ask.signal, late.signal]);
    const taking = new Taking(options, gate, ask.chatId, ask.fetch, signal);
    const attachments: StoredAttachment[] = [];
    const notices = new Set<string>();
    try {
      for (const attachment of ask.attachments) {
        if (ask.signal.aborted) return null;
        const isAsked = ask.only === undefined || (attachment.kind === ask.only && !attachment.ofReply);
        const isWanted = isAsked && attachment.outcome === undefined;
        const taken = isWanted ? await taking.take(attachment) : { attachment, notice: null };
        attachments.push(taken.attachment);
        // For other people's files, the persona itself explains.
        if (taken.notice !== null && !attachment.ofReply) notices.add(taken.notice);
      }
    } finally {
      cancelDeadline();
    }
    if (ask.signal.aborted) return null;
    const notice = notices.size === 0 ? null : [...notices].join('\n');
    return { text: textWithAttachments(ask.words, attachments), attachments, notice };
  }

  return {
    tell: textWithAttachments,
    mayAddress: (attachments) =>
      transcriber !== null &&
      attachments.some(({ kind, ofReply, outcome }) => kind === 'voice' && !ofReply && outcome === undefined),
    take,
    images: createModelImages(files, options.images, options.log),
    async remove(names) {
      for (const name of names) await files.remove(name);
    },
  };
}
