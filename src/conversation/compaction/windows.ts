/** One queue per view, for flushes, compactions and other work on its memory. After a crash, the next turn finds the window full again. */
import { OVER } from '../../core/clock.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Measured } from '../../core/transcript.js';
import type { ArchiveCopy, Subject, Windows } from '../services.js';
import { type CompactionEnd, compact, copyOnce, putAway, type WaitingTurn } from './compact.js';
import { PendingFlushes } from './pending-flushes.js';
import { type CompactionServices, metered, payerOf, subjectOf, viewKey } from './subject.js';

interface QueuedWork {
  room: RoomId;
  /** The abort controllers of this work and of the work queued before it. */
  ends: AbortController[];
  urgency: Urgency;
  done: Promise<CompactionEnd>;
}

/** awaited: a turn waits for it; yielding: it gives way to any other work. */
type Urgency = 'awaited' | 'background' | 'yielding';

/** How long a turn waits for flush and compaction together; after that, leaving messages are archived instead. */
const DEADLINE_MS = 60_000;
/** A server's count this many times above our estimate is credible only if it falls when the window is compacted. */
const MOST_CREDIBLE = 4;

export class WindowQueue implements Windows {
  private readonly services: CompactionServices;
  private readonly running = new Map<string, QueuedWork>();
  /** By view: the server's count before the last compaction; and the views whose counts are not credible. */
  private readonly countedBefore = new Map<string, number>();
  private readonly distrusted = new Set<string>();
  private readonly pending: PendingFlushes;
  private stopping = false;

  constructor(services: Omit<CompactionServices, 'windows'>) {
    this.services = { ...services, windows: this };
    this.pending = new PendingFlushes(this.services, (subject, work) => this.run(subject, work).done);
  }

  /** Queues work on a view behind the work already running on it. */
  private run(
    subject: Subject,
    task: (signal: AbortSignal) => Promise<CompactionEnd>,
    urgency: Urgency = 'background',
  ): QueuedWork {
    const { room, personaId } = subject;
    const key = viewKey(subject);
    const before = this.running.get(key);
    const end = new AbortController();
    const done = (before?.done ?? Promise.resolve<CompactionEnd>('nothing'))
      .then(() => (end.signal.aborted || this.stopping ? 'dropped' : task(end.signal)))
      .catch((error): CompactionEnd => {
        this.services.log.error({ err: error, room, persona: personaId }, 'compaction failed');
        return 'nothing';
      });
    const work = { room, ends: [...(before?.ends ?? []), end], urgency, done };
    this.running.set(key, work);
    void done.then(() => {
      if (this.running.get(key) === work) this.running.delete(key);
    });
    return work;
  }

  private begin(
    subject: Subject,
    measured: Measured | null,
    turn: WaitingTurn | null,
  ): Promise<CompactionEnd> {
    const { services } = this;
    const task = async (signal: AbortSignal): Promise<CompactionEnd> => {
      // At a daily limit only awaited work is done, and without a model: the messages are archived.
      if (turn === null && (await services.dailyLimits.reached(payerOf(subject)))) return 'dropped';
      const end = await metered(services, subject, signal, (work) => compact(work, turn));
      if (end === 'moved' && measured) this.countedBefore.set(viewKey(subject), measured.counted);
      await this.pending.settle(subject);
      return end;
    };
    return this.run(subject, task, turn === null ? 'background' : 'awaited').done;
  }

  async makeRoom(subject: Subject, turnId: string, refused: number | null): Promise<void> {
    const { clock, store } = this.services;
    const until = clock.now() + DEADLINE_MS;
    const before = this.running.get(viewKey(subject));
    // Running work began with a smaller window and may free too little: one more compaction, within the same deadline.
    if (before) {
      const patienceMs = before.urgency === 'yielding' ? 0 : DEADLINE_MS / 2;
      const cancel = clock.after(patienceMs, () => void endAll([before]));
      await before.done.finally(cancel);
    }
    const { measured } = await store.view(subject.room, subject.personaId);
    await this.begin(subject, measured, {
      id: turnId,
      refused,
      patienceMs: Math.max(0, until - clock.now()),
    });
  }

  giveWay(): void {
    const idle = [...this.running.values()].filter(({ urgency }) => urgency !== 'awaited');
    if (idle.length === 0) return;
    this.services.log.info({ works: idle.length }, 'a chat waited for the model; background flushes aborted');
    void endAll(idle);
  }

  /** Distrust begins with a high count right after a compaction, and ends with the next count near our estimate. */
  credible(room: RoomId, personaId: PersonaId, measured: Measured): Measured {
    const { counted, estimated } = measured;
    const key = viewKey({ room, personaId });
    const before = this.countedBefore.get(key);
    this.countedBefore.delete(key);
    if (counted <= MOST_CREDIBLE * estimated) this.distrusted.delete(key);
    else if (before !== undefined && counted >= before * 0.9) {
      this.distrusted.add(key);
      const about = { room, persona: personaId, ...measured };
      this.services.log.warn(about, 'token count of the model server not credible; using our own estimate');
    }
    return this.distrusted.has(key) ? { counted: estimated, estimated } : measured;
  }

  consider(subject: Subject, measured: Measured | null): void {
    if (this.stopping || this.running.has(viewKey(subject))) return;
    this.services.log.debug(
      { room: subject.room, ...measured },
      'window fills up; compacting in the background',
    );
    void this.begin(subject, measured, null);
  }

  modelAnswers(): void {
    this.pending.modelAnswers();
  }

  async beside(subject: Subject, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    await this.run(subject, (signal) => work(signal).then(() => 'nothing'), 'yielding').done;
  }

  async halt(room: RoomId, personaId: PersonaId): Promise<void> {
    const work = this.running.get(viewKey({ room, personaId }));
    if (work) await endAll([work]);
  }

  async haltChat(chatId: ChatId): Promise<void> {
    await endAll([...this.running.values()].filter(({ room }) => roomParts(room).chatId === chatId));
  }

  async close(chatId: ChatId, personaId: PersonaId): Promise<void> {
    for (const room of await this.services.store.roomsHeard(chatId, personaId)) {
      const subject = await subjectOf(this.services, { room, personaId });
      if (!subject) return;
      await this.halt(room, personaId);
      await putAway({ ...this.services, subject });
      this.pending.add(subject);
    }
  }

  async copy(room: RoomId, personaId: PersonaId): Promise<ArchiveCopy | 'too many' | null> {
    const subject = await subjectOf(this.services, { room, personaId });
    return subject && copyOnce({ ...this.services, subject });
  }

  /** Takes up pending flushes, and work that an earlier run left unfinished. */
  start(channels: string[]): void {
    this.pending.start(channels);
  }

  async stop(): Promise<void> {
    this.stopping = true;
    this.pending.stop();
    await endAll([...this.running.values()]);
  }

  async resting(): Promise<void> {
    while (this.running.size > 0) await Promise.all([...this.running.values()].map(({ done }) => done));
  }
}

async function endAll(all: QueuedWork[]): Promise<void> {
  for (const end of all.flatMap(({ ends }) => ends)) end.abort(OVER);
  await Promise.all(all.map(({ done }) => done));
}
