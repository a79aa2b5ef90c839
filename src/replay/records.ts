/**
 * Records turns for `coterie replay`, outside the route: each run of a turn is appended as one compressed line. If the
 * disk is slow or full, records are dropped; turns are not affected.
 */
import { appendFileSync, mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextPass } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip, gzipSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { type Clock, OVER } from '../core/clock.js';
import { createMutex } from '../core/concurrency.js';
import type { ChatId, PersonaId } from '../core/ids.js';
import type {
  RecordedEnd,
  RecordedMessage,
  RecordedRequest,
  RecordedTurn,
  TurnRecord,
  TurnRecorder,
  TurnRecords,
} from '../core/journal.js';
import type { Log } from '../core/log.js';
import type { ModelClient, ModelEvent, ModelMessage } from '../core/model.js';
import { ENDING, folderOf, nameAt, trimRecords, VERSION } from './files.js';

/** Only a stuck disk lets so many pile up. */
const MOST_WAITING = 500;
const DAY_MS = 86_400_000;
/** Time after the end of a turn within which its record is written. */
export const WRITTEN_WITHIN_MS = 10_000;
const LAST_WRITES_MS = 2_000;
/** The same fault is logged at most once in this time. */
const SILENT_MS = 600_000;

/** Files go whole when they are old: a new one begins each day, at this size, and at a twentieth of all records. */
const FILE_BYTES = 1_000_000;
/** Personas whose file is known; another one begins a new file. */
const MOST_FILES = 1_000;

const compressed = promisify(gzip);
const LEVEL = { level: 1 };
/** Up to this size, in characters, the thread pool would cost several times as much as compressing here. */
const AT_ONCE = 200_000;

/** `bytes`: limit of all records; 0 disables recording. `clean`: redacts secrets in a text. */
export class Records implements TurnRecords {
  /** Runs in progress, or ended but not written yet. A forgotten one is no longer here. */
  private readonly pending = new Set<TurnRecord>();
  private readonly inTurn = createMutex();
  /** By persona's folder. A new process begins new files: the last line of an old one may be cut. */
  private readonly files = new LRUCache<string, { path: string; day: string; bytes: number }>({
    max: MOST_FILES,
  });
  private waiting = 0;
  private writing: Promise<unknown> = Promise.resolve();
  private writtenSinceTrim = 0;
  private toldAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly options: {
      folder: string;
      bytes: number;
      days: number | 'never';
      clean(text: string): string;
      clock: Clock;
      log: Log;
    },
  ) {}

  open(turn: RecordedTurn, signal: AbortSignal): TurnRecorder {
    const { bytes, clock } = this.options;
    const record: TurnRecord = { ...turn, startedAt: clock.now(), endedAt: 0, sight: null, requests: [] };
    if (bytes > 0) this.pending.add(record);
    return {
      saw(sight) {
        record.sight = sight;
      },
      watch: (model) => (bytes > 0 ? watched(model, record.requests, clock) : model),
      end: () => {
        record.endedAt = clock.now();
        if (signal.aborted || record.requests.length === 0) this.pending.delete(record);
        else if (this.pending.has(record)) this.writeSoon(record);
      },
    };
  }

  forget(chatId: ChatId, personaId: PersonaId | null): Promise<void> {
    for (const each of this.pending) {
      const isMeant = each.chatId === chatId && (personaId === null || each.personaId === personaId);
      if (isMeant) this.pending.delete(each);
    }
    const place = () => folderOf(this.options.folder, chatId, personaId);
    return this.inTurn(() => rm(place(), { recursive: true, force: true }));
  }

  /** Removes records that are too old or beyond the limit. */
  trim(signal: AbortSignal): Promise<void> {
    return this.inTurn(() => this.trimNow(signal));
  }

  /** Resolves when everything is written, or after two seconds. */
  async idle(): Promise<void> {
    const patience = new AbortController();
    await Promise.race([this.writing, this.options.clock.sleep(LAST_WRITES_MS, patience.signal)]);
    patience.abort(OVER);
  }

  private writeSoon(record: TurnRecord): void {
    if (this.waiting >= MOST_WAITING) {
      this.pending.delete(record);
      this.tell('disk does not keep up; some turns are not recorded for coterie replay');
      return;
    }
    this.waiting++;
    // The turn's replies are sent first.
    this.writing = nextPass()
      .then(() => this.inTurn(() => this.write(record)))
      .finally(() => void this.waiting--);
  }

  private async write(record: TurnRecord): Promise<void> {
    const { folder, bytes, clean } = this.options;
    if (!this.pending.delete(record)) return;
    try {
      const json = JSON.stringify({ v: VERSION, ...record });
      const text = clean(json);
      // Redacting may have broken the JSON.
      if (text !== json) JSON.parse(text);
      const line = `${text}\n`;
      const packed = line.length < AT_ONCE ? gzipSync(line, LEVEL) : await compressed(line, LEVEL);
      this.append(folderOf(folder, record.chatId, record.personaId), record.startedAt, packed);
      this.writtenSinceTrim += packed.length;
      if (this.writtenSinceTrim > bytes / 10) await this.trimNow(new AbortController().signal);
    } catch (error) {
      // A failed record must not end the process.
      this.tell('recording a turn for coterie replay failed; the turn goes on without', error);
    }
  }

  /** A file for each record would cost a quarter of a message's time on a busy disk. */
  private append(place: string, startedAt: number, packed: Buffer): void {
    const time = nameAt(startedAt);
    const day = time.slice(0, 8);
    const known = this.files.get(place);
    const isFull = known === undefined || known.bytes >= Math.min(FILE_BYTES, this.options.bytes / 20);
    const file =
      isFull || known.day !== day ? { path: join(place, `${time}${ENDING}`), day, bytes: 0 } : known;
    // After a failed write, the next record begins a new file.
    this.files.delete(place);
    // Records contain conversations. Synchronous: the thread pool would cost ten times as much CPU.
    mkdirSync(place, { recursive: true, mode: 0o700 });
    appendFileSync(file.path, packed, { mode: 0o600 });
    this.files.set(place, { ...file, bytes: file.bytes + packed.length });
  }

  private trimNow(signal: AbortSignal): Promise<void> {
    const { folder, bytes, days, clock } = this.options;
    this.writtenSinceTrim = 0;
    return trimRecords(folder, days === 'never' ? 0 : clock.now() - days * DAY_MS, bytes, signal);
  }

  private tell(what: string, error?: unknown): void {
    const { folder, clock, log } = this.options;
    if (clock.now() < this.toldAt + SILENT_MS) return;
    this.toldAt = clock.now();
    log.warn({ folder, err: error }, what);
  }
}

function watched(model: ModelClient, requests: RecordedRequest[], clock: Clock): ModelClient {
  async function* stream(...[request, signal]: Parameters<ModelClient['stream']>) {
    const at = clock.now();
    for await (const event of model.stream(request, signal)) {
      if (event.kind === 'done' || event.kind === 'failed') {
        const messages = request.messages.map(recorded);
        requests.push({ at, ms: clock.now() - at, ...request, messages, end: endOf(event) });
      }
      yield event;
    }
  }
  return { ...model, stream };
}

function recorded(message: ModelMessage): RecordedMessage {
  if (message.role === 'assistant') {
    const { role, content, calls } = message;
    return { role, content, calls };
  }
  if (message.role !== 'user' || message.images === undefined) return message as RecordedMessage;
  const images = message.images.map(({ mimeType, bytes }) => ({ mimeType, bytes: bytes.length }));
  return { role: 'user', content: message.content, images };
}

export function endOf(end: ModelEvent & { kind: 'done' | 'failed' }): RecordedEnd {
  if (end.kind === 'failed') return { kind: 'failed', code: end.fault.code, why: end.fault.message };
  const { kind, text, calls, usage, further, model, truncated, cut, prices } = end;
  return { kind, text, calls, usage, further, model, truncated, cut, prices };
}
