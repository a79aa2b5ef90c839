/** Pending flushes: archived messages that no flush has seen are flushed later, with pauses, until it succeeds. */
import { backoff } from '../../core/retry.js';
import { isAfter } from '../../core/transcript.js';
import type { Subject } from '../services.js';
import { flush } from './flush.js';
import { type CompactionServices, metered, payerOf, subjectOf, type ViewId, viewKey } from './subject.js';

interface PendingFlush {
  view: ViewId;
  /** Consecutive failures. */
  failures: number;
  notBefore: number;
  /** Times of the tries in the last day. */
  tries: number[];
}

/** An immediate retry would mostly fail again. */
const BREATH_MS = 1_000;
const FIRST_PAUSE_MS = 15_000;
const LONGEST_PAUSE_MS = 4 * 3_600_000;
/** The longest pause while the model answers other requests. */
const PAUSE_WHEN_WELL_MS = 15 * 60_000;
/** After a daily limit was reached; a new day lifts it. */
const PAUSE_AT_LIMIT_MS = 15 * 60_000;
/** Otherwise a view whose flush always fails would cost one flush per message. */
const MOST_PER_DAY = 12;
const DAY_MS = 86_400_000;

export class PendingFlushes {
  private readonly views = new Map<string, PendingFlush>();
  private cancel = () => {};
  private isWorking = false;
  private stopped = false;

  /** `run` queues work behind the other work on a view. */
  constructor(
    private readonly services: CompactionServices,
    private readonly run: (
      subject: Subject,
      work: (signal: AbortSignal) => Promise<'nothing'>,
    ) => Promise<unknown>,
  ) {}

  start(channels: string[]): void {
    const failed = 'archives of an earlier run not checked; retrying at the next start';
    void this.takeUp(channels).catch((error) => this.services.log.error({ err: error }, failed));
  }

  /** A persona's messages were archived unflushed: flush them soon. */
  add(view: ViewId): void {
    this.owe(view, this.services.clock.now() + BREATH_MS);
    this.schedule();
  }

  /** After a flush or compaction of a view: settles the archives that it covered. */
  async settle({ room, personaId }: ViewId): Promise<void> {
    const { store, archives } = this.services;
    const { flushedTo } = await store.view(room, personaId);
    let isOwed = false;
    for (const { state, to, chatId, file } of await store.openArchives({ room, personaId })) {
      if (state !== 'unflushed') continue;
      if (isAfter(to, flushedTo)) {
        isOwed = true;
        continue;
      }
      // The file first: after a crash in between, the next call settles the row.
      await archives.mark(chatId, file, 'flushed');
      await store.noteArchive({ chatId, file, state: 'settled' });
    }
    if (isOwed) this.add({ room, personaId });
    else this.views.delete(viewKey({ room, personaId }));
  }

  modelAnswers(): void {
    for (const one of this.views.values()) {
      const last = one.tries.at(-1) ?? Number.NEGATIVE_INFINITY;
      const soonest = last + Math.min(pauseAfter(one.failures), PAUSE_WHEN_WELL_MS);
      one.notBefore = Math.min(one.notBefore, Math.max(soonest, nextFree(one)));
    }
    this.schedule();
  }

  stop(): void {
    this.stopped = true;
    this.cancel();
  }

  private schedule(): void {
    this.cancel();
    if (this.isWorking || this.stopped || this.views.size === 0) return;
    const { clock } = this.services;
    const pause = Math.min(...[...this.views.values()].map(({ notBefore }) => notBefore)) - clock.now();
    if (pause > 0) this.cancel = clock.after(pause, () => this.schedule());
    else void this.work();
  }

  private async work(): Promise<void> {
    const { clock, log } = this.services;
    this.isWorking = true;
    for (const one of this.views.values()) {
      if (this.stopped || one.notBefore > clock.now()) continue;
      await this.attempt(one).catch((error) =>
        log.error({ err: error }, 'pending flush failed; retrying later'),
      );
    }
    this.isWorking = false;
    this.schedule();
  }

  private async attempt(one: PendingFlush): Promise<void> {
    const { clock, dailyLimits } = this.services;
    const now = clock.now();
    one.notBefore = now + PAUSE_AT_LIMIT_MS;
    const subject = await subjectOf(this.services, one.view);
    if (!subject) {
      this.views.delete(viewKey(one.view));
      return;
    }
    if (await dailyLimits.reached(payerOf(one.view))) return;
    one.tries = [...one.tries.filter((at) => at > now - DAY_MS), now];
    let isDone = false;
    await this.run(subject, async (signal) => {
      isDone = await this.makeUp(subject, signal);
      return 'nothing';
    });
    one.failures = isDone ? 0 : one.failures + 1;
    one.notBefore = Math.max(clock.now() + pauseAfter(one.failures), nextFree(one));
  }

  /** False if the flush failed. */
  private async makeUp(subject: Subject, signal: AbortSignal): Promise<boolean> {
    const { store, log } = this.services;
    const { room, personaId } = subject;
    const open = (await store.openArchives({ room, personaId })).map(({ to }) => to);
    const last = open.sort((a, b) => (isAfter(a, b) ? 1 : -1)).at(-1);
    if (last === undefined) {
      this.views.delete(viewKey(subject));
      return true;
    }
    const end = await metered(this.services, subject, signal, (work) => flush(work, last));
    await this.settle(subject);
    // There is nothing to save; the next flush will start here.
    if (end.kind === 'unspoken') this.views.delete(viewKey(subject));
    if (end.kind !== 'failed') return true;
    log.warn({ room, persona: personaId, why: end.reason }, 'pending flush failed; retrying later');
    return false;
  }

  /** An already pending view keeps its pause. */
  private owe({ room, personaId }: ViewId, notBefore: number): void {
    const view = { room, personaId };
    const key = viewKey(view);
    if (!this.views.has(key)) this.views.set(key, { view, failures: 0, notBefore, tries: [] });
  }

  private async takeUp(channels: string[]): Promise<void> {
    const { store, clock } = this.services;
    for (const span of await store.openArchives({ channels })) {
      if (span.state === 'unflushed') {
        this.owe(span, clock.now());
        continue;
      }
      const subject = await subjectOf(this.services, span);
      // Queued, because a compaction may be writing such a file right now.
      if (subject) await this.run(subject, () => this.discardUnfinished(span));
    }
    this.schedule();
  }

  /** The process ended before the window moved past the file: its messages are still in the window. */
  private async discardUnfinished({ room, personaId }: ViewId): Promise<'nothing'> {
    const { store, archives } = this.services;
    for (const { chatId, file, state } of await store.openArchives({ room, personaId })) {
      if (state !== 'writing') continue;
      await archives.remove(chatId, file);
      await store.noteArchive({ chatId, file, state: 'dropped' });
    }
    return 'nothing';
  }
}

/** When the daily limit allows another try. */
function nextFree({ tries }: PendingFlush): number {
  return (tries.at(-MOST_PER_DAY) ?? Number.NEGATIVE_INFINITY) + DAY_MS;
}

function pauseAfter(failures: number): number {
  return backoff(failures, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
}
