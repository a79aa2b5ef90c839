/**
 * The journal's files and its stream, made from the store in the background: nothing that a message or a tool call does
 * waits for them. Of the processes on one `data_dir`, the one that holds the lock writes; the others' entries are in the
 * same store. What could not be written is made up for, because the store knows what is missing.
 */

import { type Clock, OVER } from '../core/clock.js';
import { createMutex } from '../core/concurrency.js';
import { describe } from '../core/errors.js';
import type { JournalFiles, JournalStore } from '../core/journal.js';
import type { Log } from '../core/log.js';
import { createWorkingLog } from './working-log.js';

/** Where the entries go beside the files. */
export interface Stream {
  /** Adds what is missing there; throws where it cannot be reached. */
  catchUp(signal: AbortSignal): Promise<void>;
  close(): void;
}

export interface JournalParts {
  store: JournalStore & { watch(changed: () => void): () => void };
  folder: string;
  /** How long the archive is kept, days. */
  days: number | 'never';
  /** null: there is no stream. */
  stream: Stream | null;
  /** The right to write; null where another process has it. */
  take(): Promise<{ release(): void } | null>;
  clean(text: string): string;
  clock: Clock;
  log: Log;
}

/** Several changes in a row are one write. */
const SETTLE_MS = 200;
/** While entries keep coming, the files follow once a second: each time is all of `working.log`. */
const PAUSE_MS = 800;
/** On a slow disk the pauses are this many times what a write took. */
const PAUSE_FACTOR = 10;
const LONGEST_PAUSE_MS = 5_000;
const RETRY_MS = 2_000;
/** Whoever does not write asks so often whether it may now. */
const ASK_AGAIN_MS = 10_000;
const DAY_MS = 86_400_000;

export interface Journal extends JournalFiles {
  /** Resolves when the files are right, or could not be written, which it warns of. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function createJournal(parts: JournalParts): Journal {
  const { store, clock, log } = parts;
  const working = createWorkingLog(parts);
  const over = new AbortController();
  let held: { release(): void } | null = null;
  let isRunning = false;
  let isDue = false;
  let wake = () => {};
  const inTurn = createMutex();
  let streaming: Promise<void> = Promise.resolve();
  let loops: Promise<unknown> = Promise.resolve();
  let prunedAt = 0;
  const ends: (() => void)[] = [];
  const troubles = { files: false, stream: false };

  /** One after the other, whoever asks. Throws where the files cannot be written. */
  const write = () => inTurn(writeAll);

  async function writeAll(): Promise<void> {
    isDue = false;
    held ??= await parts.take();
    if (held === null) return;
    await pruneArchive();
    while (await working.write());
  }

  async function pruneArchive(): Promise<void> {
    const now = clock.now();
    if (parts.days === 'never' || now - prunedAt < DAY_MS) return;
    prunedAt = now;
    await working.prune(now - parts.days * DAY_MS);
  }

  async function keepFiles(): Promise<void> {
    while (!over.signal.aborted) {
      if (!isDue) await new Promise<void>((resolve) => (wake = resolve));
      await clock.sleep(SETTLE_MS, over.signal);
      const begun = clock.now();
      const isWritten = await attempt('files', write);
      // Where another process writes, it may end.
      const again = held === null && isWritten ? ASK_AGAIN_MS : isWritten ? null : RETRY_MS;
      if (again !== null) isDue = true;
      const slow = (clock.now() - begun) * PAUSE_FACTOR;
      await clock.sleep(again ?? Math.min(Math.max(PAUSE_MS, slow), LONGEST_PAUSE_MS), over.signal);
    }
  }

  async function attempt(what: keyof typeof troubles, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      if (troubles[what]) log.info({}, `${NAMES[what]} is up to date again`);
      troubles[what] = false;
      return true;
    } catch (error) {
      if (!troubles[what] && !over.signal.aborted)
        log.warn(
          { err: error, why: describe(error) },
          `${NAMES[what]} cannot be written; it will be made up for`,
        );
      troubles[what] = true;
      return false;
    }
  }

  /** The stream has a pace of its own: an outage of it does not hold the files. */
  let streamWake = () => {};
  let isStreamDue = false;
  async function keepStream(stream: Stream): Promise<void> {
    while (!over.signal.aborted) {
      if (!isStreamDue) await new Promise<void>((resolve) => (streamWake = resolve));
      await clock.sleep(SETTLE_MS, over.signal);
      isStreamDue = false;
      const isWritten = held !== null && (await attempt('stream', () => stream.catchUp(over.signal)));
      if (isWritten) continue;
      isStreamDue = true;
      await clock.sleep(RETRY_MS, over.signal);
    }
  }

  function changed(): void {
    isDue = true;
    isStreamDue = true;
    wake();
    streamWake();
  }

  return {
    async start() {
      isRunning = true;
      ends.push(store.watchJournal(changed), store.watch(changed));
      await attempt('files', write);
      changed();
      const { stream } = parts;
      streaming = stream === null ? Promise.resolve() : keepStream(stream);
      loops = Promise.all([keepFiles(), streaming]);
    },

    async caughtUp() {
      if (isRunning) await write();
    },

    async stop() {
      for (const end of ends) end();
      over.abort(OVER);
      changed();
      await loops;
      const { stream } = parts;
      if (isRunning) {
        await attempt('files', write);
        if (stream !== null && held !== null) {
          const enough = new AbortController();
          const limit = clock.sleep(LAST_MS, enough.signal);
          await Promise.race([attempt('stream', () => stream.catchUp(enough.signal)), limit]);
          enough.abort(OVER);
        }
      }
      stream?.close();
      isRunning = false;
      held?.release();
      held = null;
    },
  };
}

const LAST_MS = 1_000;
const NAMES = { files: 'working.log', stream: 'the stream of the journal in Redis' };
