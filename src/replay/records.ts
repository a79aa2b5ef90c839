/**
 * Records what turns saw and did, for `coterie replay`: beside the route, written together some seconds later. Where the disk
 * does not keep up or is full, records are left out, never turns.
 */

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { setImmediate as nextPass } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip, gzipSync } from 'node:zlib';
import { type Clock, OVER } from '../core/clock.js';
import { createMutex } from '../core/concurrency.js';
import type { ChatId, PersonaId } from '../core/ids.js';
import type { RecordedTurn, TurnRecords, TurnSight } from '../core/journal.js';
import type { Log } from '../core/log.js';
import type { ModelClient, ModelEvent } from '../core/model.js';
import { type Asked, type Before, createPrints, lineOf, NOTHING_BEFORE, type RunOfTurn } from './record.js';
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
const GATHER_MS = 5_000;
/** The files that are due then are written one by one within this time, for each keeps a message that comes just then waiting. */
const SPREAD_MS = 4_000;
/** When so many lines wait, writing begins at once, without pauses until they are fewer. */
const MANY_WAITING = 500;
/** More than these wait only for a disk that is stuck. */
const MOST_WAITING = 2_000;
/** What is longer is compressed beside the event loop; for anything else, going there and back takes seven times as long. */
const SHORT_CHARS = 65_536;
/** A file is read from its first line on, so none grows for ever. */
const BYTES_A_FILE = 1_000_000;
const TURNS_A_FILE = 300;
const DAY_MS = 86_400_000;
/** By then the record of a turn that is over is on the disk. */
export const WRITTEN_WITHIN_MS = GATHER_MS + SPREAD_MS + 1_000;
/** What the files that are written to begin with, in messages of their last requests: some 10 MB. */
const MOST_PRINTS = 200_000;
const LAST_WRITES_MS = 2_000;
/** The same fault is told once in this time. */
const SILENT_MS = 600_000;

/** A file that is written to. */
interface OpenFile {
  chatId: ChatId;
  personaId: PersonaId;
  /** null: nothing of it is on the disk yet. */
  path: string | null;
  begun: number;
  bytes: number;
  turns: number;
  before: Before;
  /** The lines that are still to be written, and how many these are. */
  text: string;
  unwritten: number;
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
  /** Runs that are under way, or have ended and have no line yet. */
  const pending = new Set<Recording>();
  let ended: Recording[] = [];
  /** Files that lines wait for. */
  const due = new Set<OpenFile>();
  let unwritten = 0;
  let stopGathering: (() => void) | null = null;
  const printOf = createPrints();
  let prints = 0;
  let writtenSinceTrim = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  /** What touches files, one after the other. */
  const inTurn = createMutex();
  let writing: Promise<unknown> = Promise.resolve();
  let hurry = new AbortController();

  function tell(fields: object, what: string): void {
    if (clock.now() < toldAt + SILENT_MS) return;
    toldAt = clock.now();
    log.warn({ folder, ...fields }, what);
  }

  /** Soon, for a line is a fraction of what a run holds. */
  function noteEnded(): void {
    const runs = ended;
    ended = [];
    for (const each of runs) {
      pending.delete(each);
      try {
        if (each.run !== null) addLine(fileFor(each), each.run);
      } catch (error) {
        // A record is not worth the process.
        tell({ err: error }, NOT_RECORDED);
      }
    }
  }

  function addLine(file: OpenFile, run: RunOfTurn): void {
    if (unwritten >= MOST_WAITING) {
      tell(
        { waiting: unwritten },
        'the disk does not keep up; some turns are not recorded for coterie replay',
      );
      return;
    }
    const made = lineOf(run, file.before, printOf);
    const line = clean(made.line);
    // Nothing behind a line that cannot be read could be read either.
    if (line !== made.line && !isJson(line)) {
      tell({ turn: run.turnId, err: 'it is no JSON without the secrets in it' }, NOT_RECORDED);
      return;
    }
    file.text += `${line}\n`;
    file.unwritten++;
    file.turns++;
    unwritten++;
    due.add(file);
    keep(file, made.after);
    if (unwritten === MANY_WAITING) writeAtOnce();
    else stopGathering ??= clock.after(GATHER_MS, writeNow);
  }

  function fileFor({ chatId, personaId }: Recording): OpenFile {
    const open = files.get(keyOf({ chatId, personaId }));
    if (open !== undefined && isOpen(open)) return open;
    const begun = clock.now();
    return {
      ...{ chatId, personaId, path: null, begun, bytes: 0, turns: 0 },
      ...{ before: NOTHING_BEFORE, text: '', unwritten: 0 },
    };
  }

  function writeNow(): void {
    stopGathering?.();
    stopGathering = null;
    if (due.size > 0) writing = writing.then(writeDue);
  }

  function writeAtOnce(): void {
    hurry.abort(OVER);
    hurry = new AbortController();
    writeNow();
  }

  async function writeDue(): Promise<void> {
    const some = [...due];
    for (const file of some) {
      if (due.has(file)) await inTurn(() => write(file));
      // Messages that have come meanwhile go first.
      await nextPass();
      if (unwritten < MANY_WAITING) await clock.sleep(SPREAD_MS / some.length, hurry.signal);
    }
  }

  async function write(file: OpenFile): Promise<void> {
    // Forgotten meanwhile.
    if (!due.delete(file)) return;
    const { text } = file;
    unwritten -= file.unwritten;
    file.text = '';
    file.unwritten = 0;
    try {
      await append(file, text);
      if (writtenSinceTrim > bytes / 10) await trim(new AbortController().signal);
    } catch (error) {
      discard(file);
      tell({ err: error }, NOT_RECORDED);
    }
  }

  async function append(file: OpenFile, text: string): Promise<void> {
    const packed =
      text.length <= SHORT_CHARS ? gzipSync(text, COMPRESSION) : await compressed(text, COMPRESSION);
    if (file.path === null) {
      const place = folderOf(folder, file.chatId, file.personaId);
      file.path = beginFile(place, { at: file.begun, id: newId(), bytes: packed });
    } else if (!goOnWith(file.path, packed)) {
      // It went in the last seconds, and with it what these lines refer to.
      discard(file);
      return;
    }
    file.bytes += packed.length;
    writtenSinceTrim += packed.length;
  }

  function isOpen({ path, begun, bytes: written, turns }: OpenFile): boolean {
    if (path !== null && !existsSync(path)) return false;
    return written < BYTES_A_FILE && turns < TURNS_A_FILE && clock.now() < begun + DAY_MS;
  }

  function drop(file: OpenFile): void {
    if (files.get(keyOf(file)) !== file) return;
    prints -= file.before.messages.length;
    files.delete(keyOf(file));
  }

  /** With the lines that wait for it. */
  function discard(file: OpenFile): void {
    drop(file);
    if (due.delete(file)) unwritten -= file.unwritten;
  }

  function keep(file: OpenFile, before: Before): void {
    const former = files.get(keyOf(file));
    if (former !== undefined) drop(former);
    file.before = before;
    files.set(keyOf(file), file);
    prints += before.messages.length;
    for (const oldest of files.values()) {
      if (prints <= MOST_PRINTS || oldest === file) break;
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
        // What the turn says goes out first.
        if (ended.push(each) === 1) setImmediate(noteEnded);
      },
    };
  }

  return {
    open: bytes === 0 ? () => NO_RECORDER : open,
    forget(chatId, personaId) {
      for (const each of pending) {
        if (each.chatId === chatId && (personaId === null || each.personaId === personaId)) each.run = null;
      }
      const isTheirs = (file: OpenFile) =>
        file.chatId === chatId && (personaId === null || file.personaId === personaId);
      for (const file of [...files.values(), ...due].filter(isTheirs)) discard(file);
      return inTurn(() => rm(folderOf(folder, chatId, personaId), { recursive: true, force: true }));
    },
    trim: (signal) => inTurn(() => trim(signal)),
    async idle() {
      noteEnded();
      hurry.abort(OVER);
      writeNow();
      const patience = new AbortController();
      await Promise.race([
        writing.then(() => inTurn(() => {})),
        clock.sleep(LAST_WRITES_MS, patience.signal),
      ]);
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
