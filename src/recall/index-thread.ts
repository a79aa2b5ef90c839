/** The gateway's side of the indexing thread, which starts with a call and ends when idle. The next call restarts it, also after a crash. */
import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import { Fault } from '../core/errors.js';
import type { ChatId, PersonaId, RoomId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { Position } from '../core/position.js';
import type { Recalled, RecallQuery, Scope } from '../core/recall.js';

export interface IndexedView {
  addressed: Position;
  overheard: Position;
}

export interface MessagePage {
  scope: Scope;
  room: RoomId;
  resetAt: number;
  addressed: boolean;
  /** Position of the index when the page was read; if it has moved on since, the page is not added. */
  after: Position;
  messages: { id: number; heardAfter: number; at: number; author: string; text: string }[];
}

interface FileText {
  scope: Scope;
  file: string;
  stamp: string;
  text: string;
}

/** A hit before the store has confirmed that it may be seen. */
export type Ranked =
  /** `before`: the preceding message in its room. */
  | { kind: 'message'; messageId: number; before: number | null; relevance: number; rare: boolean }
  | { kind: 'line'; recalled: Recalled };

export interface WaitingChunk {
  chunk: number;
  scope: Scope;
  /** The id of the message with this text; null if `text` has it. */
  messageId: number | null;
  text: string | null;
  author: string;
}

export interface IndexPort {
  /** How far each view is indexed; unknown or reset views start at the beginning. */
  views(views: { room: RoomId; scope: Scope; resetAt: number }[]): IndexedView[];
  /** Drops a view that the store no longer has. */
  dropView(scope: Scope, room: RoomId): void;
  /** Drops views and scopes that are not listed. */
  keepOnly(views: { chatId: ChatId; personaId: PersonaId; room: RoomId }[], scopes: Scope[]): void;
  newest(views: { room: RoomId; scope: Scope }[]): ({ messageId: number; at: number } | null)[];
  /** Per page: false if it was not added, because the index has moved on since it was read. */
  addMessages(pages: MessagePage[]): boolean[];
  files(scope: Scope): { file: string; stamp: string }[];
  dropFile(scope: Scope, file: string): void;
  /** Resolves when the whole file is indexed; until then its old version is found. False: it was dropped. */
  addFile(file: FileText): Promise<boolean>;
  search(ask: {
    scope: Scope;
    query: RecallQuery;
    most: number;
    /** The query's vectors; the first model with nearly all of the scope's chunks is used. */
    vectors: { model: string; value: Float32Array }[];
  }): { ranked: Ranked[]; byVectors: boolean };
  forget(chatId: ChatId): void;
  withoutVector(model: string, most: number): WaitingChunk[];
  /** null: the chunk will never have a vector. */
  addVectors(model: string, vectors: { chunk: number; value: Float32Array | null }[]): void;
  /** `former`: the model used until this one's vectors are complete. */
  counts(model: string | null): { indexed: number; vectorsWaiting: number; former: string | null };
  close(): void;
}

export interface IndexCall {
  id: number;
  name: keyof IndexPort;
  values: unknown[];
}

export type IndexAnswer =
  | { kind: 'done'; id: number; value: unknown }
  | { kind: 'failed'; id: number; reason: string }
  | { kind: 'anew'; reason: string };

export interface WorkerSettings {
  file: string;
  zone: string;
}

export type RemoteIndex = {
  [Name in keyof IndexPort]: (
    ...values: Parameters<IndexPort[Name]>
  ) => Promise<Awaited<ReturnType<IndexPort[Name]>>>;
} & {
  /** If false, a call has to wait for the thread's start. */
  readonly thread: { isRunning: boolean };
};

const NAMES = [
  ...['views', 'dropView', 'keepOnly', 'newest', 'addMessages', 'files', 'dropFile', 'addFile'],
  ...['search', 'forget', 'withoutVector', 'addVectors', 'counts', 'close'],
] as (keyof IndexPort)[];
/** Minimum time between starts, for a thread that crashes immediately. */
const RESTART_AFTER_MS = 5_000;

/** `anew` is called when the index was lost and must be rebuilt. */
export function createIndexThread(
  entry: URL,
  file: string,
  zone: Zone,
  idleMs: number,
  clock: Clock,
  log: Log,
  anew: () => void,
): RemoteIndex {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let worker: Worker | null = null;
  const thread = { isRunning: false };
  let startedAt = Number.NEGATIVE_INFINITY;
  /** The file's inode when an idle thread ended. */
  let left: { inode: number | undefined } | null = null;
  let ending: Promise<void> | null = null;
  let stopIdling = () => {};
  let closed = false;
  let lastId = 0;

  function start(): Worker {
    // Absolute, so that a clock set back does not block restarts.
    if (Math.abs(clock.now() - startedAt) < RESTART_AFTER_MS) {
      throw new Fault('internal', 'recall: the indexing thread ended and will be restarted in a few seconds');
    }
    const died = startedAt !== Number.NEGATIVE_INFINITY;
    const isOther = left !== null && left.inode !== inode();
    startedAt = clock.now();
    // Latency does not matter here: a small young generation saves some 30 MB of garbage.
    const resourceLimits = { maxYoungGenerationSizeMb: 6 };
    // The zone is read now: the system's may change while the gateway runs.
    const workerData: WorkerSettings = { file, zone: zone.name };
    const started = new Worker(entry, { workerData, resourceLimits });
    thread.isRunning = true;
    started.unref();
    started.on('message', (answer: IndexAnswer) => {
      if (answer.kind === 'anew') {
        log.warn({ file, reason: answer.reason }, 'the search index is being rebuilt');
        anew();
        return;
      }
      const asked = waiting.get(answer.id);
      waiting.delete(answer.id);
      if (waiting.size === 0 && ending === null) rest(started);
      if (answer.kind === 'done') asked?.resolve(answer.value);
      else asked?.reject(new Fault('internal', `${file}: ${answer.reason}`));
    });
    started.on('error', (error) =>
      log.error({ error: error.message, entry: entry.href }, 'the indexing thread failed'),
    );
    started.on('exit', () => {
      worker = null;
      thread.isRunning = false;
      stopIdling();
      const ended = new Fault('internal', 'recall: the indexing thread ended');
      for (const { reject } of waiting.values()) reject(ended);
      waiting.clear();
    });
    if (died || isOther) anew();
    return started;
  }

  function inode(): number | undefined {
    return statSync(file, { throwIfNoEntry: false })?.ino;
  }

  function rest(idle: Worker): void {
    idle.unref();
    stopIdling = clock.after(idleMs, () => {
      left = { inode: inode() };
      thread.isRunning = false;
      ending = end(idle).finally(() => {
        ending = null;
        // It ended on purpose, so it may restart at once.
        startedAt = Number.NEGATIVE_INFINITY;
      });
    });
  }

  async function end(running: Worker): Promise<void> {
    const exited = new Promise((resolve) => running.once('exit', resolve));
    await call(running, 'close', []).catch((error: Error) =>
      log.warn({ error: error.message }, 'the search index could not be closed'),
    );
    await exited;
  }

  function call(running: Worker, name: keyof IndexPort, values: unknown[]): Promise<unknown> {
    const id = ++lastId;
    stopIdling();
    running.ref();
    running.postMessage({ id, name, values } satisfies IndexCall);
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }

  async function ask(name: keyof IndexPort, values: unknown[]): Promise<unknown> {
    if (ending !== null && !closed) await ending;
    if (closed) throw new Fault('internal', 'recall: the index was closed');
    worker ??= start();
    return call(worker, name, values);
  }

  async function close(): Promise<void> {
    closed = true;
    stopIdling();
    if (worker !== null) ending ??= end(worker);
    await ending;
  }

  const calls = NAMES.map((name) => [name, (...values: unknown[]) => ask(name, values)]);
  return { ...Object.fromEntries(calls), close, thread };
}
