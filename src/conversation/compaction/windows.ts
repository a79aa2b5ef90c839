/**
 * Decides when windows are compacted, beside the route: in the background once a window fills up, and before a turn only if
 * its request would not fit. One queue per view, for flushes, compactions and other work on its memory. Only committed
 * changes survive the process: after a crash, the next turn finds the window full again.
 */
import { OVER } from '../../core/clock.js';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Measured } from '../../core/transcript.js';
import type { Subject, Windows } from '../services.js';
import { expectedTokens, pressureOf } from '../turn/tokens.js';
import { type CompactionEnd, compact, copyOnce, putAway, type WaitingTurn } from './compact.js';
import { createPendingFlushes } from './flush.js';
import {
  type CompactionServices,
  metered,
  payerOf,
  requestTokensFor,
  subjectOf,
  viewKey,
} from './subject.js';

interface QueuedWork {
  room: RoomId;
  /** The abort controllers of this piece of work and of those queued before it. */
  ends: AbortController[];
  urgency: Urgency;
  done: Promise<CompactionEnd>;
}

/** A turn waits for it; nobody does, but it makes room; or it can be done any other time and yields at once. */
type Urgency = 'awaited' | 'background' | 'yielding';

/** How long a turn waits for a flush and its compaction together; after it, messages that leave are archived instead. */
const DEADLINE_MS = 60_000;
/** When nothing could leave, compaction is tried again only after this many further messages. */
const LOOK_AGAIN_AFTER = 4;
/** A count this many times above our estimate that did not fall after a compaction is not credible. */
const INCREDIBLE = 4;

export function createWindows(given: Omit<CompactionServices, 'windows'>): Windows {
  const { store, log } = given;
  const services = { ...given } as CompactionServices;
  /** The model's window may turn out smaller while the gateway runs. */
  const limitsOf = (subject: Subject) => ({
    tokens: requestTokensFor(services, subject),
    messages: services.settings.compactAfterMessages,
  });
  const running = new Map<string, QueuedWork>();
  /** By view: the number of messages in the window when nothing could leave. */
  const stuckAt = new Map<string, number>();
  /** By view: the server's count before the last compaction; and the views whose counts are not credible. */
  const countedBefore = new Map<string, number>();
  const distrusted = new Set<string>();
  let stopping = false;
  const pendingFlushes = createPendingFlushes(services, (subject, work) => run(subject, work).done);

  /** Queues work on a view behind the work already running on it. */
  function run(
    subject: Subject,
    task: (signal: AbortSignal) => Promise<CompactionEnd>,
    urgency: Urgency = 'background',
  ): QueuedWork {
    const key = viewKey(subject);
    const before = running.get(key);
    const end = new AbortController();
    const done = (before?.done ?? Promise.resolve<CompactionEnd>('nothing'))
      .then(() => (end.signal.aborted || stopping ? 'dropped' : task(end.signal)))
      .catch((error): CompactionEnd => {
        log.error({ err: error, room: subject.room, persona: subject.personaId }, 'compaction failed');
        return 'nothing';
      });
    const work = { room: subject.room, ends: [...(before?.ends ?? []), end], urgency, done };
    running.set(key, work);
    void done.then(() => {
      if (running.get(key) === work) running.delete(key);
    });
    return work;
  }

  /** Aborts the work after that time. */
  async function doneWithin(work: QueuedWork, ms: number): Promise<void> {
    const cancel = services.clock.after(ms, () => void endOf([work]));
    await work.done.finally(cancel);
  }

  function begin(
    subject: Subject,
    /** How full the window is: the number of messages, and the request's size as the server counted it. */
    { messages, measured }: { messages: number; measured: Measured | null },
    turn: WaitingTurn | null,
  ): QueuedWork {
    const key = viewKey(subject);
    const task = async (signal: AbortSignal): Promise<CompactionEnd> => {
      // Above a limit only what a turn waits for is done, and without a model: there is an archive for that.
      if (turn === null && (await services.dailyLimits.reached(payerOf(subject)))) return 'dropped';
      const end = await metered(services, subject, (paid) => compact(paid, subject, turn, signal));
      if (end === 'moved' && measured) countedBefore.set(key, measured.counted);
      if (end === 'nothing') stuckAt.set(key, messages);
      else stuckAt.delete(key);
      await pendingFlushes.settle(subject);
      return end;
    };
    return run(subject, task, turn === null ? 'background' : 'awaited');
  }

  async function halt(room: RoomId, personaId: PersonaId): Promise<void> {
    const work = running.get(viewKey({ room, personaId }));
    if (work) await endOf([work]);
  }

  services.windows = {
    isFull: (subject, sizes, measured) => pressureOf(sizes, measured, limitsOf(subject)) === 'now',

    async makeRoom(subject, turnId, refused) {
      const until = services.clock.now() + DEADLINE_MS;
      const before = running.get(viewKey(subject));
      // Running work started with a smaller window and may free too little, so another compaction follows; together
      // they share one deadline, and what runs in the background with none leaves the other its half.
      if (before) await doneWithin(before, before.urgency === 'yielding' ? 0 : DEADLINE_MS / 2);
      const { measured } = await store.view(subject.room, subject.personaId);
      const patienceMs = Math.max(0, until - services.clock.now());
      await begin(subject, { messages: 0, measured }, { id: turnId, refused, patienceMs }).done;
    },

    giveWay: () =>
      services.clock.after(DEADLINE_MS, () => {
        const idle = [...running.values()].filter(({ urgency }) => urgency !== 'awaited');
        if (idle.length === 0) return;
        log.info({ works: idle.length }, 'a chat waited for the model; background flushes aborted');
        void endOf(idle);
      }),

    credible(room, personaId, measured) {
      if (!measured) return null;
      const key = viewKey({ room, personaId });
      const before = countedBefore.get(key);
      countedBefore.delete(key);
      const unmoved = before !== undefined && measured.counted >= before * 0.9;
      if (unmoved && measured.counted > INCREDIBLE * measured.estimated) {
        distrusted.add(key);
        log.warn(
          { room, persona: personaId, ...measured },
          'token count of the model server not credible; using our own estimate',
        );
      }
      if (measured.counted <= INCREDIBLE * measured.estimated) distrusted.delete(key);
      return distrusted.has(key) ? { counted: measured.estimated, estimated: measured.estimated } : measured;
    },

    consider(subject, sizes, measured, isCut) {
      pendingFlushes.modelAnswers();
      if (stopping || (!isCut && pressureOf(sizes, measured, limitsOf(subject)) === 'none')) return;
      const key = viewKey(subject);
      if (running.has(key)) return;
      const stuck = stuckAt.get(key);
      if (stuck !== undefined && sizes.messages < stuck + LOOK_AGAIN_AFTER && sizes.messages >= stuck) return;
      log.debug(
        { room: subject.room, tokens: expectedTokens(sizes.estimated, measured), messages: sizes.messages },
        'window fills up; compacting in the background',
      );
      begin(subject, { messages: sizes.messages, measured }, null);
    },

    async beside(subject, work) {
      await run(subject, (signal) => work(signal).then(() => 'nothing'), 'yielding').done;
    },

    halt,

    async haltChat(chatId) {
      await endOf([...running.values()].filter(({ room }) => roomParts(room).chatId === chatId));
    },

    async close(chatId, personaId) {
      const chat = await store.chat(chatId);
      if (!chat) return;
      const personas = await services.personas.list(chatId);
      for (const room of await store.roomsHeard(chatId, personaId)) {
        const subject = { chat, room, personaId, personas };
        await halt(room, personaId);
        await putAway(services, subject);
        pendingFlushes.add(subject);
      }
    },

    async copy(room, personaId) {
      const subject = await subjectOf(services, { room, personaId });
      if (!subject) return null;
      return copyOnce(services, subject);
    },

    start: (channels) => pendingFlushes.start(channels),

    async stop() {
      stopping = true;
      pendingFlushes.stop();
      await endOf([...running.values()]);
    },

    async resting() {
      while (running.size > 0) await Promise.all([...running.values()].map(({ done }) => done));
    },
  };
  return services.windows;
}

async function endOf(all: QueuedWork[]): Promise<void> {
  for (const end of all.flatMap(({ ends }) => ends)) end.abort(OVER);
  await Promise.all(all.map(({ done }) => done));
}
