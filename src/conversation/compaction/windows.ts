/**
 * Decides when windows are compacted: in the background once a window fills up, and before a turn only if its request
 * would not fit. One queue per view, for flushes, compactions and other work on its memory. Only committed changes
 * survive a crash; then the next turn finds the window full again.
 */
import { OVER } from '../../core/clock.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Measured } from '../../core/transcript.js';
import type { Subject, WindowSize, Windows } from '../services.js';
import { expectedTokens, type Pressure, pressureOf } from '../turn/tokens.js';
import { type CompactionEnd, compact, copyOnce, putAway, type WaitingTurn } from './compact.js';
import { PendingFlushes } from './flush.js';
import {
  type CompactionServices,
  metered,
  payerOf,
  requestTokensFor,
  subjectOf,
  type ViewId,
  viewKey,
} from './subject.js';

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
/** If nothing could leave, compaction is retried only after this many further messages. */
const LOOK_AGAIN_AFTER = 4;
/** A server's count this many times above our estimate that did not fall after a compaction is not credible. */
const INCREDIBLE = 4;

export function createWindows(given: Omit<CompactionServices, 'windows'>): Windows {
  const services = { ...given } as CompactionServices;
  services.windows = new WindowQueue(services);
  return services.windows;
}

class WindowQueue implements Windows {
  private readonly running = new Map<string, QueuedWork>();
  /** By view: the number of messages in the window when nothing could leave. */
  private readonly stuckAt = new Map<string, number>();
  /** By view: the server's count before the last compaction; and the views whose counts are not credible. */
  private readonly countedBefore = new Map<string, number>();
  private readonly distrusted = new Set<string>();
  private readonly pending: PendingFlushes;
  private stopping = false;

  constructor(private readonly services: CompactionServices) {
    this.pending = new PendingFlushes(services, (subject, work) => this.run(subject, work).done);
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

  /** `messages` and `measured`: how full the window is. */
  private begin(
    subject: Subject,
    messages: number,
    measured: Measured | null,
    turn: WaitingTurn | null,
  ): QueuedWork {
    const { services } = this;
    const key = viewKey(subject);
    const task = async (signal: AbortSignal): Promise<CompactionEnd> => {
      // At a daily limit only awaited work is done, and without a model: the messages are archived.
      if (turn === null && (await services.dailyLimits.reached(payerOf(subject)))) return 'dropped';
      const end = await metered(services, subject, (paid) => compact(paid, subject, turn, signal));
      if (end === 'moved' && measured) this.countedBefore.set(key, measured.counted);
      if (end === 'nothing') this.stuckAt.set(key, messages);
      else this.stuckAt.delete(key);
      await this.pending.settle(subject);
      return end;
    };
    return this.run(subject, task, turn === null ? 'background' : 'awaited');
  }

  /** The model's window may turn out smaller while the gateway runs. */
  private pressureOn(subject: Subject, size: WindowSize, measured: Measured | null): Pressure {
    return pressureOf(size, measured, {
      tokens: requestTokensFor(this.services, subject),
      messages: this.services.settings.compactAfterMessages,
    });
  }

  isFull(subject: Subject, size: WindowSize, measured: Measured | null): boolean {
    return this.pressureOn(subject, size, measured) === 'now';
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
    const patienceMs = Math.max(0, until - clock.now());
    await this.begin(subject, 0, measured, { id: turnId, refused, patienceMs }).done;
  }

  giveWay(): () => void {
    return this.services.clock.after(DEADLINE_MS, () => {
      const idle = [...this.running.values()].filter(({ urgency }) => urgency !== 'awaited');
      if (idle.length === 0) return;
      this.services.log.info(
        { works: idle.length },
        'a chat waited for the model; background flushes aborted',
      );
      void endAll(idle);
    });
  }

  credible(room: RoomId, personaId: PersonaId, measured: Measured | null): Measured | null {
    if (!measured) return null;
    const { counted, estimated } = measured;
    const key = viewKey({ room, personaId });
    const before = this.countedBefore.get(key);
    this.countedBefore.delete(key);
    const isIncredible = counted > INCREDIBLE * estimated;
    if (!isIncredible) this.distrusted.delete(key);
    else if (before !== undefined && counted >= before * 0.9) {
      this.distrusted.add(key);
      const about = { room, persona: personaId, ...measured };
      this.services.log.warn(about, 'token count of the model server not credible; using our own estimate');
    }
    return this.distrusted.has(key) ? { counted: estimated, estimated } : measured;
  }

  consider(subject: Subject, size: WindowSize, measured: Measured | null, isCut: boolean): void {
    this.pending.modelAnswers();
    if (this.stopping || (!isCut && this.pressureOn(subject, size, measured) === 'none')) return;
    const key = viewKey(subject);
    if (this.running.has(key)) return;
    const { messages, estimated } = size;
    const stuck = this.stuckAt.get(key);
    if (stuck !== undefined && messages < stuck + LOOK_AGAIN_AFTER && messages >= stuck) return;
    const about = { room: subject.room, tokens: expectedTokens(estimated, measured), messages };
    this.services.log.debug(about, 'window fills up; compacting in the background');
    this.begin(subject, messages, measured, null);
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
    const { store, personas } = this.services;
    const chat = await store.chat(chatId);
    if (!chat) return;
    const all = await personas.list(chatId);
    for (const room of await store.roomsHeard(chatId, personaId)) {
      const subject = { chat, room, personaId, personas: all };
      await this.halt(room, personaId);
      await putAway(this.services, subject);
      this.pending.add(subject);
    }
  }

  async copy(room: RoomId, personaId: PersonaId): ReturnType<Windows['copy']> {
    const view: ViewId = { room, personaId };
    const subject = await subjectOf(this.services, view);
    return subject && copyOnce(this.services, subject);
  }

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
