/**
 * Pending flushes: archives whose messages left a window before a flush had seen them. They are flushed in the
 * background soon after the model works again; then their files are marked as flushed.
 */
import { OVER } from '../../core/clock.js';
import { type ArchivedSpan, isAfter, type Position } from '../../core/transcript.js';
import type { Subject } from '../services.js';
import type { CompactionEnd } from './compact.js';
import { flush } from './flush.js';
import { type CompactionServices, payerOf, subjectOf, viewKey, withPurse } from './subject.js';

export interface PendingFlushes {
  /** Views that a flush is owed to. Whoever sees none need not say that the model answers. */
  readonly owed: { readonly size: number };
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

/** What is owed to one view, and how it went so far. */
interface Owed {
  view: View;
  /** Tries in vain since the last one that got anywhere. */
  failures: number;
  lastTry: number;
  notBefore: number;
  /** The times of the tries of the last day. */
  tries: number[];
}

/** A retry at once would mostly fail again. */
const BREATH_MS = 1_000;
const FIRST_PAUSE_MS = 15_000;
const LONGEST_PAUSE_MS = 4 * 3_600_000;
/** When the model answers elsewhere, no pause is longer, nor shorter than the first. */
const PAUSE_WHEN_WELL_MS = 15 * 60_000;
/** At a limit of the day, which a new day may lift. */
const PAUSE_AT_LIMIT_MS = 15 * 60_000;
/** A view whose flush always fails must not cost a flush for everything that is said. */
const MOST_PER_DAY = 12;
const DAY_MS = 86_400_000;

export function createPendingFlushes(services: CompactionServices, run: Run): PendingFlushes {
  const { store, archives, clock, log } = services;
  const owed = new Map<string, Owed>();
  let sleeping: AbortController | null = null;
  let working = false;
  let stopped = false;

  /** Works until nothing is owed, each view in its own time. */
  async function work(): Promise<void> {
    if (working || stopped) return;
    working = true;
    try {
      while (owed.size > 0 && !stopped) {
        for (const one of [...owed.values()].filter(({ notBefore }) => notBefore <= clock.now())) {
          if (!stopped) await attempt(one);
        }
        const next = Math.min(...[...owed.values()].map(({ notBefore }) => notBefore));
        if (owed.size === 0 || stopped || next <= clock.now()) continue;
        sleeping = new AbortController();
        await clock.sleep(next - clock.now(), sleeping.signal);
        sleeping = null;
      }
    } finally {
      sleeping = null;
      working = false;
    }
  }

  /** Lets the work look again at what is due. */
  function begin(): void {
    sleeping?.abort(OVER);
    void work().catch((error) =>
      log.error({ err: error }, 'pending flushes failed; the next compaction or start tries again'),
    );
  }

  async function attempt(one: Owed): Promise<void> {
    const subject = await subjectOf(services, one.view);
    if (!subject) {
      owed.delete(viewKey(one.view));
      return;
    }
    const now = clock.now();
    if (await services.dailyLimits.reached(payerOf(one.view))) {
      one.notBefore = now + PAUSE_AT_LIMIT_MS;
      return;
    }
    one.lastTry = now;
    one.tries = [...one.tries.filter((at) => at > now - DAY_MS), now];
    const end = await run(subject, (signal) => makeUp(subject, signal));
    one.failures = end === 'moved' ? 0 : one.failures + 1;
    one.notBefore = Math.max(clock.now() + pauseAfter(one.failures), nextFree(one));
  }

  /** When the day has room for another try. */
  function nextFree({ tries }: Owed): number {
    return (tries.at(-MOST_PER_DAY) ?? Number.NEGATIVE_INFINITY) + DAY_MS;
  }

  async function makeUp(subject: Subject, signal: AbortSignal): Promise<CompactionEnd> {
    const open = await openOf(subject);
    const last = open.reduce<Position | null>(
      (to, span) => (to && isAfter(to, span.to) ? to : span.to),
      null,
    );
    if (!last) {
      owed.delete(viewKey(subject));
      return 'nothing';
    }
    const end = await withPurse(services, subject, (paid) => flush(paid, subject, last, signal));
    await look(subject);
    // The persona said nothing in it, so there is nothing to save; its next flush will start here.
    if (end.kind === 'unspoken') owed.delete(viewKey(subject));
    if (end.kind !== 'failed') return 'moved';
    log.warn(
      { room: subject.room, persona: subject.personaId, why: end.reason },
      'a memory flush that is owed did not finish; it is tried again later',
    );
    return 'nothing';
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
    else owed.delete(viewKey(subject));
  }

  function add(view: View): void {
    owe(view, clock.now() + BREATH_MS);
    begin();
  }

  /** Whoever is owed one already keeps its pause. */
  function owe({ room, personaId }: View, notBefore: number): void {
    const key = viewKey({ room, personaId });
    if (owed.has(key)) return;
    owed.set(key, {
      view: { room, personaId },
      failures: 0,
      lastTry: Number.NEGATIVE_INFINITY,
      notBefore,
      tries: [],
    });
  }

  async function openOf({ room, personaId }: Subject): Promise<ArchivedSpan[]> {
    return store.openArchives({ room, personaId });
  }

  async function takeUp(channels: string[]): Promise<void> {
    for (const span of await store.openArchives({ channels })) {
      if (span.state === 'unflushed') {
        owe(span, clock.now());
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
    owed,
    start(channels) {
      void takeUp(channels).catch((error) =>
        log.error({ err: error }, 'archives of an earlier run could not be checked'),
      );
    },
    add,
    look,
    modelAnswers() {
      for (const one of owed.values()) {
        const soonest = one.lastTry + Math.min(pauseAfter(one.failures), PAUSE_WHEN_WELL_MS);
        one.notBefore = Math.min(one.notBefore, Math.max(soonest, nextFree(one)));
      }
      begin();
    },
    stop() {
      stopped = true;
      sleeping?.abort(OVER);
    },
  };
}

function pauseAfter(failures: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.max(0, failures - 1), LONGEST_PAUSE_MS);
}
