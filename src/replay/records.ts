/**
 * Records what turns saw and did, for `coterie replay`: beside the route, written one after the other in the background.
 * Where the disk does not keep up or is full, records are left out, never turns.
 */
import { rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
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

/** More than these wait only for a disk that is stuck. */
const MOST_WAITING = 200;
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

interface Waiting {
  chatId: ChatId;
  personaId: PersonaId;
  /** Null once it is not to be written any more. */
  run: RunOfTurn | null;
}

const compressed = promisify(gzip);

export function createRecords(parts: RecordsParts): KeptRecords {
  const { folder, bytes, days, clean, clock, newId, log } = parts;
  /** By chat and persona, in order of last use. */
  const files = new Map<string, OpenFile>();
  /** Runs that are under way or wait to be written. */
  const pending = new Set<Waiting>();
  let chars = 0;
  let waiting = 0;
  let writtenSinceTrim = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  let queue: Promise<unknown> = Promise.resolve();

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

  async function write(each: Waiting): Promise<void> {
    waiting--;
    try {
      if (each.run !== null) await append(each, each.run);
      if (writtenSinceTrim > bytes / 10) await trim(new AbortController().signal);
    } catch (error) {
      drop(keyOf(each));
      tell({ err: error }, 'what turns saw cannot be recorded for coterie replay; they go on without');
    } finally {
      pending.delete(each);
    }
  }

  async function append(of: Waiting, run: RunOfTurn): Promise<void> {
    const key = keyOf(of);
    const open = files.get(key);
    if (open !== undefined && isOpen(open)) {
      const { line, after } = lineOf(run, open.before);
      const packed = await packedLine(line);
      if (await goOnWith(open.path, packed)) {
        keep(key, { ...open, bytes: open.bytes + packed.length, turns: open.turns + 1, ...size(after) });
        writtenSinceTrim += packed.length;
        return;
      }
    }
    const { line, after } = lineOf(run, NOTHING_BEFORE);
    const packed = await packedLine(line);
    const place = folderOf(folder, of.chatId, of.personaId);
    const begun = clock.now();
    const path = await beginFile(place, { at: begun, id: newId(), bytes: packed });
    keep(key, { path, begun, bytes: packed.length, turns: 1, ...size(after) });
    writtenSinceTrim += packed.length;
  }

  async function packedLine(line: string): Promise<Buffer> {
    const text = clean(line);
    // Nothing behind a line that cannot be read could be read either.
    if (text !== line) JSON.parse(text);
    return compressed(`${text}\n`);
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
    const each: Waiting = { chatId, personaId: turn.personaId, run };
    pending.add(each);
    return {
      saw(sight: TurnSight) {
        run.sight = sight;
      },
      watch: (model: ModelClient) => watched(model, run.requests),
      end() {
        run.endedAt = clock.now();
        if (signal.aborted || run.requests.length === 0) return void pending.delete(each);
        if (waiting >= MOST_WAITING) {
          pending.delete(each);
          return tell(
            { waiting },
            'the disk does not keep up; some turns are not recorded for coterie replay',
          );
        }
        waiting++;
        void inTurn(() => write(each));
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
      const patience = new AbortController();
      await Promise.race([queue, clock.sleep(LAST_WRITES_MS, patience.signal)]);
      patience.abort(OVER);
    },
  };
}

const NO_RECORDER = { saw: () => {}, watch: (model: ModelClient) => model, end: () => {} };

function keyOf({ chatId, personaId }: { chatId: ChatId; personaId: PersonaId }): string {
  return `${chatId}/${personaId}/`;
}

function isEnd(event: ModelEvent): event is Asked['end'] {
  return event.kind === 'done' || event.kind === 'failed';
}

/** What is held of a request only to compare the next one with it. */
function size(before: Before): Pick<OpenFile, 'before' | 'chars'> {
  return { before, chars: before.messages.reduce((sum, { content }) => sum + content.length, 0) };
}
