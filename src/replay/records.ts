/**
 * Records turns for `coterie replay`, outside the route: one compressed JSON file per run of a turn,
 * `data/replay/<chat_id>/<persona_id>/<start time>-<turn_id>.json.gz`. If the disk is slow or full, records are dropped; turns are
 * not affected.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextPass } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { nameOnDisk } from '../core/beneath.js';
import { type Clock, OVER } from '../core/clock.js';
import { createMutex } from '../core/concurrency.js';
import { codeOf } from '../core/file-access.js';
import type { ChatId, PersonaId, RoomId } from '../core/ids.js';
import type { RecordedTurn, TurnRecorder, TurnRecords, TurnSight } from '../core/journal.js';
import type { Log } from '../core/log.js';
import type {
  ModelClient,
  ModelEvent,
  ModelMessage,
  ModelRequest,
  ToolCall,
  ToolDescription,
  Usage,
} from '../core/model.js';

export interface TurnRecord {
  turnId: string;
  room: RoomId;
  personaId: PersonaId;
  startedAt: number;
  endedAt: number;
  sight: TurnSight | null;
  requests: RecordedRequest[];
}

export interface RecordedRequest extends Omit<ModelRequest, 'messages' | 'tools'> {
  at: number;
  ms: number;
  messages: RecordedMessage[];
  tools: ToolDescription[];
  end: RecordedEnd;
}

/** Without the fields returned to the server, which are in the store, and without pictures. */
export type RecordedMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string; images?: { mimeType: string; bytes: number }[] }
  | { role: 'assistant'; content: string; calls: ToolCall[] }
  | { role: 'tool'; callId: string; content: string };

export type RecordedEnd =
  | {
      kind: 'done';
      text: string;
      calls: ToolCall[];
      usage: Usage | null;
      further?: Usage | undefined;
      model: string;
      truncated: boolean;
      cut?: true | undefined;
    }
  | { kind: 'failed'; code: string; why: string };

type EndEvent = ModelEvent & { kind: 'done' | 'failed' };

/** A run in memory until it is written, with its original, immutable requests. */
interface RecordedRun extends Omit<TurnRecord, 'requests'> {
  requests: SentRequest[];
}

interface Recording {
  chatId: ChatId;
  personaId: PersonaId;
  /** null once it must not be written. */
  run: RecordedRun | null;
}

interface SentRequest {
  at: number;
  ms: number;
  request: ModelRequest;
  end: EndEvent;
}

const ENDING = '.json.gz';
const VERSION = 2;
/** Records contain conversations. */
const PRIVATE_FOLDER = 0o700;
const PRIVATE_FILE = 0o600;
/** Only a stuck disk lets so many pile up. */
const MOST_WAITING = 500;
const DAY_MS = 86_400_000;
/** Time after the end of a turn within which its record is written. */
export const WRITTEN_WITHIN_MS = 10_000;
const LAST_WRITES_MS = 2_000;
/** The same fault is logged at most once in this time. */
const SILENT_MS = 600_000;

const compressed = promisify(gzip);
const uncompressed = promisify(gunzip);

/** `bytes`: limit of all records; 0 disables recording. `clean`: redacts secrets in a text. */
export class Records implements TurnRecords {
  /** Runs in progress, or ended but not written yet. */
  private readonly pending = new Set<Recording>();
  private readonly inTurn = createMutex();
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

  open({ chatId, ...turn }: RecordedTurn, signal: AbortSignal): TurnRecorder {
    const { bytes, clock } = this.options;
    if (bytes === 0) return NO_RECORDER;
    const run: RecordedRun = { ...turn, startedAt: clock.now(), endedAt: 0, sight: null, requests: [] };
    const recording: Recording = { chatId, personaId: turn.personaId, run };
    this.pending.add(recording);
    return {
      saw(sight) {
        run.sight = sight;
      },
      watch: (model) => watched(model, run.requests, clock),
      end: () => {
        run.endedAt = clock.now();
        if (signal.aborted || run.requests.length === 0) this.pending.delete(recording);
        else this.writeSoon(recording);
      },
    };
  }

  forget(chatId: ChatId, personaId: PersonaId | null): Promise<void> {
    for (const each of this.pending) {
      if (each.chatId === chatId && (personaId === null || each.personaId === personaId)) each.run = null;
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

  private writeSoon(recording: Recording): void {
    if (this.waiting >= MOST_WAITING) {
      this.pending.delete(recording);
      this.tell('disk does not keep up; some turns are not recorded for coterie replay');
      return;
    }
    this.waiting++;
    // The turn's replies are sent first.
    this.writing = nextPass()
      .then(() => this.inTurn(() => this.write(recording)))
      .finally(() => {
        this.waiting--;
      });
  }

  private async write(recording: Recording): Promise<void> {
    const { folder, bytes, clean } = this.options;
    const { chatId, personaId, run } = recording;
    this.pending.delete(recording);
    if (run === null) return;
    try {
      const text = clean(JSON.stringify({ v: VERSION, ...run, requests: run.requests.map(recorded) }));
      // Redacting may have broken the JSON.
      JSON.parse(text);
      const packed = await compressed(text, { level: 1 });
      const place = folderOf(folder, chatId, personaId);
      const time = new Date(run.startedAt).toISOString().replaceAll(/[-:Z]/g, '');
      // Synchronous: the thread pool would cost ten times as much CPU.
      mkdirSync(place, { recursive: true, mode: PRIVATE_FOLDER });
      writeFileSync(join(place, `${time}${endingOf(run.turnId)}`), packed, { mode: PRIVATE_FILE });
      this.writtenSinceTrim += packed.length;
      if (this.writtenSinceTrim > bytes / 10) await this.trimNow(new AbortController().signal);
    } catch (error) {
      // A failed record must not end the process.
      this.tell('recording a turn for coterie replay failed; the turn goes on without', error);
    }
  }

  private async trimNow(signal: AbortSignal): Promise<void> {
    const { folder, bytes, days, clock } = this.options;
    this.writtenSinceTrim = 0;
    const before = days === 'never' ? 0 : clock.now() - days * DAY_MS;
    await trimRecords(folder, { before, bytes }, signal);
  }

  private tell(what: string, error?: unknown): void {
    const { folder, clock, log } = this.options;
    if (clock.now() < this.toldAt + SILENT_MS) return;
    this.toldAt = clock.now();
    log.warn({ folder, err: error }, what);
  }
}

function watched(model: ModelClient, asked: SentRequest[], clock: Clock): ModelClient {
  async function* stream(...[request, signal]: Parameters<ModelClient['stream']>) {
    const at = clock.now();
    for await (const event of model.stream(request, signal)) {
      if (event.kind === 'done' || event.kind === 'failed') {
        asked.push({ at, ms: clock.now() - at, request, end: event });
      }
      yield event;
    }
  }
  return { ...model, stream };
}

const NO_RECORDER: TurnRecorder = { saw: () => {}, watch: (model: ModelClient) => model, end: () => {} };

function recorded({ request, end, ...times }: SentRequest): RecordedRequest {
  return { ...times, ...request, messages: request.messages.map(recordedMessage), end: endOf(end) };
}

function recordedMessage(message: ModelMessage): RecordedMessage {
  if (message.role === 'assistant') {
    const { role, content, calls } = message;
    return { role, content, calls };
  }
  if (message.role !== 'user' || message.images === undefined) return message as RecordedMessage;
  const images = message.images.map(({ mimeType, bytes }) => ({ mimeType, bytes: bytes.length }));
  return { role: 'user', content: message.content, images };
}

export function endOf(end: EndEvent): RecordedEnd {
  if (end.kind === 'failed') return { kind: 'failed', code: end.fault.code, why: end.fault.message };
  const { kind, text, calls, usage, further, model, truncated, cut } = end;
  return { kind, text, calls, usage, further, model, truncated, cut };
}

/** Throws for an invalid folder name: then the store was tampered with. */
function folderOf(folder: string, chatId: ChatId, personaId: PersonaId | null): string {
  const names = personaId === null ? [chatId] : [chatId, personaId];
  const wrong = names.find((name) => !/^[^./\\\0][^/\\\0]*$/u.test(name));
  if (wrong !== undefined) throw new Error(`${JSON.stringify(wrong)} names no folder of records`);
  const chat = join(folder, chatId);
  return personaId === null ? chat : join(chat, nameOnDisk(chat, personaId));
}

function endingOf(turnId: string): string {
  return `-${encodeURIComponent(turnId)}${ENDING}`;
}

/** A turn's records, oldest first; `torn`: number of unreadable files. */
export async function recordsOf(
  folder: string,
  { chatId, personaId, turnId }: { chatId: ChatId; personaId: PersonaId; turnId: string },
): Promise<{ records: TurnRecord[]; torn: number }> {
  const place = folderOf(folder, chatId, personaId);
  const names = (await namesIn(place)).filter((name) => name.endsWith(endingOf(turnId)));
  const found = await Promise.all(names.sort().map((name) => recordIn(join(place, name))));
  const records = found.filter((record) => record?.turnId === turnId) as TurnRecord[];
  return { records, torn: found.filter((record) => record === null).length };
}

/** null if unreadable or of another version. */
async function recordIn(path: string): Promise<TurnRecord | null> {
  try {
    const text = (await uncompressed(await readFile(path))).toString('utf8');
    const { v, ...record } = JSON.parse(text) as TurnRecord & { v: unknown };
    const isWhole = record.requests.every(
      ({ messages, end }) => Array.isArray(messages) && end !== undefined,
    );
    return v === VERSION && isWhole ? record : null;
  } catch {
    return null;
  }
}

/** Removes records older than `before`, and the oldest beyond `bytes`. */
async function trimRecords(
  folder: string,
  { before, bytes }: { before: number; bytes: number },
  signal: AbortSignal,
): Promise<void> {
  const files = await filesBelow(folder, signal);
  let all = 0;
  for (const { path, size, at } of files.sort((a, b) => b.at - a.at)) {
    if (signal.aborted) return;
    all += size;
    if (at < before || all > bytes) await rm(path, { force: true });
  }
}

async function filesBelow(folder: string, signal: AbortSignal) {
  const files: { path: string; size: number; at: number }[] = [];
  for (const chat of await namesIn(folder)) {
    for (const persona of await namesIn(join(folder, chat))) {
      for (const name of await namesIn(join(folder, chat, persona))) {
        if (signal.aborted) return [];
        const path = join(folder, chat, persona, name);
        // It may have been removed meanwhile.
        const entry = await stat(path).catch(() => null);
        if (entry?.isFile()) files.push({ path, size: entry.size, at: entry.mtimeMs });
      }
    }
  }
  return files;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return [];
    throw error;
  }
}
