/**
 * Pending flushes: archives whose messages left a window before a flush had seen them. They are flushed in the
 * background soon after the model works again; then their files are marked as flushed.
 */
import { OVER } from '../../core/clock.js';
import { type ArchivedSpan, isAfter, type Position } from '../../core/view.js';
import type { CompactionEnd } from './compact.js';
import { deadline } from './deadline.js';
import { flush } from './flush.js';
import { type CompactionServices, type Subject, subjectOf, viewKey } from './subject.js';

export interface PendingFlushes {
  start(channels: string[]): void;
  /** A persona's messages were archived unseen: flush them soon. */
  add(subject: Subject): void;
  /** After a flush or compaction of a view: settles the archives that it has covered. */
  look(subject: Subject): Promise<void>;
  /** The model has just answered a turn, so a retry may succeed. */
  modelAnswers(): void;
  stop(): void;
}

type View = Pick<ArchivedSpan, 'room' | 'personaId'>;
type Run = (
  subject: Subject,
  work: (signal: AbortSignal) => Promise<CompactionEnd>,
) => Promise<CompactionEnd>;

const FIRST_PAUSE_MS = 15_000;
const LONGEST_PAUSE_MS = 15 * 60_000;
/** The shortest interval between retries, however busy the chats are. */
const LEAST_PAUSE_MS = 10_000;

export function createPendingFlushes(services: CompactionServices, run: Run): PendingFlushes {
  const { store, archives, clock, log } = services;
  const waiting = new Map<string, View>();
  let pauseMs = FIRST_PAUSE_MS;
  let lastTry = Number.NEGATIVE_INFINITY;
  let sleeping: AbortController | null = null;
  let working = false;
  let stopped = false;

  /** Works until nothing is pending, with back-off while there is no progress. */
  async function work(): Promise<void> {
    if (working || stopped) return;
    working = true;
    while (waiting.size > 0 && !stopped) {
      lastTry = clock.now();
      let settled = false;
      for (const [key, view] of [...waiting]) {
        const subject = await subjectOf(services, view);
        if (!subject) waiting.delete(key);
        else settled = (await run(subject, (signal) => makeUp(subject, signal))) === 'moved' || settled;
        if (stopped) break;
      }
      pauseMs = settled ? FIRST_PAUSE_MS : Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      if (waiting.size === 0 || stopped) break;
      sleeping = new AbortController();
      await clock.sleep(pauseMs, sleeping.signal);
      sleeping = null;
    }
    working = false;
  }

  const begin = () =>
    void work().catch((error) => {
      working = false;
      log.error({ err: error }, 'pending flushes failed; the next compaction or start tries again');
    });

  async function makeUp(subject: Subject, signal: AbortSignal): Promise<CompactionEnd> {
    const open = await openOf(subject);
    const last = open.reduce<Position | null>(
      (to, span) => (to && isAfter(to, span.to) ? to : span.to),
      null,
    );
    if (!last) {
      waiting.delete(viewKey(subject));
      return 'nothing';
    }
    const late = deadline(clock, signal);
    try {
      const end = await flush(services, subject, last, late.signal);
      await look(subject);
      // The persona said nothing in it, so there is nothing to save; its next flush will start here.
      if (end.kind === 'unspoken') waiting.delete(viewKey(subject));
      return end.kind === 'flushed' ? 'moved' : 'nothing';
    } finally {
      late.over();
    }
  }

  async function look(subject: Subject): Promise<void> {
    const { flushedTo } = await store.view(subject.room, subject.personaId);
    let left = false;
    for (const span of await openOf(subject)) {
      if (span.state !== 'unflushed') continue;
      if (isAfter(span.to, flushedTo)) {
        left = true;
        continue;
      }
      // The file first: if a crash comes in between, the next `look` settles the row.
      await archives.mark(span.chatId, span.file, 'flushed');
      await store.settleArchive(span.chatId, span.file);
    }
    if (left) add(subject);
    else waiting.delete(viewKey(subject));
  }

  function add(view: View): void {
    waiting.set(viewKey(view), { room: view.room, personaId: view.personaId });
    if (!working) {
      // Retrying at once would mostly fail again.
      void clock.sleep(1_000).then(begin);
    }
  }

  async function openOf({ room, personaId }: Subject): Promise<ArchivedSpan[]> {
    return store.openArchives({ room, personaId });
  }

  async function takeUp(channels: string[]): Promise<void> {
    for (const span of await store.openArchives({ channels })) {
      if (span.state === 'unflushed') {
        waiting.set(viewKey(span), { room: span.room, personaId: span.personaId });
        continue;
      }
      const subject = await subjectOf(services, span);
      if (subject) await run(subject, () => discardHalves(subject));
    }
    begin();
  }

  /** Queued behind the view's compactions, because one of them may be writing such a file right now. */
  async function discardHalves(subject: Subject): Promise<CompactionEnd> {
    for (const { chatId, file, state } of await openOf(subject)) {
      if (state !== 'writing') continue;
      // The process ended before the window moved past the file: its messages are still in the window.
      await archives.remove(chatId, file);
      await store.dropArchive(chatId, file);
    }
    return 'nothing';
  }

  return {
    start(channels) {
      void takeUp(channels).catch((error) =>
        log.error({ err: error }, 'archives of an earlier run could not be checked'),
      );
    },
    add,
    look,
    modelAnswers() {
      if (waiting.size === 0 || clock.now() - lastTry < LEAST_PAUSE_MS) return;
      pauseMs = FIRST_PAUSE_MS;
      if (sleeping) sleeping.abort(OVER);
      else begin();
    },
    stop() {
      stopped = true;
      sleeping?.abort(OVER);
    },
  };
}
