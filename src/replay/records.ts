/**
 * Records what turns saw and did, for `coterie replay`: beside the route, written together once a second. Where the disk
 * does not keep up or is full, records are left out, never turns.
 */
import { rm } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip, gzipSync } from 'node:zlib';
import { type Clock, OVER } from '../core/clock.js';
import type { ChatId, PersonaId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { ModelClient, ModelEvent } from '../core/model.js';
import type { RecordedTurn, TurnRecords, TurnSight } from '../core/turn-record.js';
import { type Asked, type Before, lineOf, NOTHING_BEFORE, type RunOfTurn } from './record.js';
import { beginFile, folderOf, goOnWith, trimRecords } from './record-files.js';

export interface RecordsParts {
  /** `data/replay`; for nothing else. */
  folder: string;
  /** How much is kept; 0: nothing is recorded. */
  bytes: number;
  days: number | 'never';
  /** Takes secrets out of a line. */
  clean(text: string): string;
  clock: Clock;
  newId(): string;
  log: Log;
}

export interface KeptRecords extends TurnRecords {
  /** Removes what is too old, or beyond the limit. */
  trim(signal: AbortSignal): Promise<void>;
  /** Resolves when everything is written, or the disk is stuck. */
  idle(): Promise<void>;
}

/** So long is gathered what is then written at once: a message by itself costs the processor as much as ten together. */
const GATHER_MS = 1_000;
/** The files that are due then are written one by one within this time, for each keeps a message that comes just then waiting. */
const SPREAD_MS = 800;
/** More than these wait only for a disk that is stuck. */
const MOST_WAITING = 2_000;
/** What is longer is compressed beside the event loop; for anything else, going there and back takes seven times as long. */
const SHORT_CHARS = 65_536;
/** A file is read from its first line on, so none grows for ever. */
const BYTES_A_FILE = 1_000_000;
const TURNS_A_FILE = 300;
const DAY_MS = 86_400_000;
/** What the files that are written to begin with, in characters of their last requests. */
const MOST_CHARS = 16_000_000;
const LAST_WRITES_MS = 2_000;
/** The same fault is told once in this time. */
const SILENT_MS = 600_000;

/** A file that is written to. */
interface OpenFile {
  path: string;
  begun: number;
  bytes: number;
  turns: number;
  before: Before;
  chars: number;
}

interface Recording {
  chatId: ChatId;
  personaId: PersonaId;
  /** Null once it is not to be written any more. */
  run: RunOfTurn | null;
}

const compressed = promisify(gzip);
/** The quickest level: half the time of the usual one, for files that are a twentieth larger. */
const COMPRESSION = { level: 1 };

export function createRecords(parts: RecordsParts): KeptRecords {
  const { folder, bytes, days, clean, clock, newId, log } = parts;
  /** By chat and persona, in order of last use. */
  const files = new Map<string, OpenFile>();
  /** Runs that are under way or wait to be written. */
  const pending = new Set<Recording>();
  let waiting: Recording[] = [];
  let stopGathering: (() => void) | null = null;
  let chars = 0;
  let writtenSinceTrim = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  /** What touches files, one after the other. */
  let queue: Promise<unknown> = Promise.resolve();
  let writing: Promise<unknown> = Promise.resolve();
  let hurry = new AbortController();

  function tell(fields: object, what: string): void {
    if (clock.now() < toldAt + SILENT_MS) return;
    toldAt = clock.now();
    log.warn({ folder, ...fields }, what);
  }

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = queue.then(work);
    queue = done.catch(() => {});
    return done;
  }

  function writeSoon(): void {
    stopGathering ??= clock.after(GATHER_MS, writeNow);
  }

  function writeNow(): void {
    stopGathering?.();
    stopGathering = null;
    if (waiting.length > 0) writing = writing.then(writeWaiting);
  }

  async function writeWaiting(): Promise<void> {
    const due = new Map<string, Recording[]>();
    for (const each of waiting) due.set(keyOf(each), [...(due.get(keyOf(each)) ?? []), each]);
    waiting = [];
    for (const [key, some] of due) {
      await inTurn(() => write(key, some));
      // Messages that have come meanwhile go first.
      await setImmediate();
      await clock.sleep(SPREAD_MS / due.size, hurry.signal);
    }
  }

  async function write(key: string, some: Recording[]): Promise<void> {
    try {
      await append(key, some);
      if (writtenSinceTrim > bytes / 10) await trim(new AbortController().signal);
    } catch (error) {
      drop(key);
      tell({ err: error }, NOT_RECORDED);
    } finally {
      for (const each of some) pending.delete(each);
    }
  }

  /** All of them are of one file. */
  async function append(key: string, some: Recording[]): Promise<void> {
    const runs = some.flatMap(({ run }) => run ?? []);
    const [first] = some;
    if (first === undefined || runs.length === 0) return;
    const open = files.get(key);
    if (open !== undefined && isOpen(open)) {
      const { packed, after } = await packedLines(runs, open.before);
      if (goOnWith(open.path, packed)) {
        const turns = open.turns + runs.length;
        keep(key, { ...open, bytes: open.bytes + packed.length, turns, ...size(after) });
        writtenSinceTrim += packed.length;
        return;
      }
    }
    const { packed, after } = await packedLines(runs, NOTHING_BEFORE);
    const place = folderOf(folder, first.chatId, first.personaId);
    const begun = clock.now();
    const path = beginFile(place, { at: begun, id: newId(), bytes: packed });
    keep(key, { path, begun, bytes: packed.length, turns: runs.length, ...size(after) });
    writtenSinceTrim += packed.length;
  }

  async function packedLines(runs: RunOfTurn[], before: Before): Promise<{ packed: Buffer; after: Before }> {
    let after = before;
    let text = '';
    for (const run of runs) {
      const made = lineOf(run, after);
      const line = clean(made.line);
      // Nothing behind a line that cannot be read could be read either.
      if (line !== made.line && !isJson(line)) {
        tell({ turn: run.turnId, err: 'it is no JSON without the secrets in it' }, NOT_RECORDED);
        continue;
      }
      text += `${line}\n`;
      ({ after } = made);
    }
    return {
      packed: text.length <= SHORT_CHARS ? gzipSync(text, COMPRESSION) : await compressed(text, COMPRESSION),
      after,
    };
  }

  function isOpen({ begun, bytes: written, turns }: OpenFile): boolean {
    return written < BYTES_A_FILE && turns < TURNS_A_FILE && clock.now() < begun + DAY_MS;
  }

  function drop(key: string): void {
    chars -= files.get(key)?.chars ?? 0;
    files.delete(key);
  }

  function keep(key: string, file: OpenFile): void {
    drop(key);
    files.set(key, file);
    chars += file.chars;
    for (const oldest of files.keys()) {
      if (chars <= MOST_CHARS || oldest === key) break;
      drop(oldest);
    }
  }

  async function trim(signal: AbortSignal): Promise<void> {
    writtenSinceTrim = 0;
    const before = days === 'never' ? 0 : clock.now() - days * DAY_MS;
    await trimRecords(folder, { before, bytes }, signal);
  }

  function watched(model: ModelClient, asked: Asked[]): ModelClient {
    async function* stream(...[request, signal]: Parameters<ModelClient['stream']>) {
      const at = clock.now();
      for await (const event of model.stream(request, signal)) {
        if (isEnd(event)) asked.push({ at, ms: clock.now() - at, request, end: event });
        yield event;
      }
    }
    return { ...model, stream };
  }

  function open({ chatId, ...turn }: RecordedTurn, signal: AbortSignal) {
    const run: RunOfTurn = { ...turn, startedAt: clock.now(), endedAt: 0, sight: null, requests: [] };
    const each: Recording = { chatId, personaId: turn.personaId, run };
    pending.add(each);
    return {
      saw(sight: TurnSight) {
        run.sight = sight;
      },
      watch: (model: ModelClient) => watched(model, run.requests),
      end() {
        run.endedAt = clock.now();
        if (signal.aborted || run.requests.length === 0) return void pending.delete(each);
        if (waiting.length >= MOST_WAITING) {
          pending.delete(each);
          return tell(
            { waiting: waiting.length },
            'the disk does not keep up; some turns are not recorded for coterie replay',
          );
        }
        waiting.push(each);
        writeSoon();
      },
    };
  }

  return {
    open: bytes === 0 ? () => NO_RECORDER : open,
    forget(chatId, personaId) {
      for (const each of pending) {
        if (each.chatId === chatId && (personaId === null || each.personaId === personaId)) each.run = null;
      }
      return inTurn(async () => {
        for (const key of files.keys()) {
          if (key.startsWith(personaId === null ? `${chatId}/` : keyOf({ chatId, personaId }))) drop(key);
        }
        await rm(folderOf(folder, chatId, personaId), { recursive: true, force: true });
      });
    },
    trim: (signal) => inTurn(() => trim(signal)),
    async idle() {
      hurry.abort(OVER);
      writeNow();
      const patience = new AbortController();
      await Promise.race([writing.then(() => queue), clock.sleep(LAST_WRITES_MS, patience.signal)]);
      patience.abort(OVER);
      hurry = new AbortController();
    },
  };
}

const NOT_RECORDED = 'what turns saw cannot be recorded for coterie replay; they go on without';

const NO_RECORDER = { saw: () => {}, watch: (model: ModelClient) => model, end: () => {} };

function keyOf({ chatId, personaId }: { chatId: ChatId; personaId: PersonaId }): string {
  return `${chatId}/${personaId}/`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function isEnd(event: ModelEvent): event is Asked['end'] {
  return event.kind === 'done' || event.kind === 'failed';
}

/** What is held of a request only to compare the next one with it. */
function size(before: Before): Pick<OpenFile, 'before' | 'chars'> {
  return { before, chars: before.messages.reduce((sum, { content }) => sum + content.length, 0) };
}
