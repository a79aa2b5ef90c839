/**
 * Hands events to step 1 of the route, in order and one batch at a time: at once where nothing is being stored, else
 * together with what came meanwhile. What could not be stored is handed over again until it is, and everything behind it
 * waits.
 */
import type { Receive, Reception } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { InboundEvent } from '../../core/message.js';
import { backoffMs, type State } from '../kit/supervise.js';
import type { Answers } from './answers.js';
import type { Base } from './api.js';
import type { Identity } from './identity.js';
import type { Presses } from './presses.js';
import type { Packet, Session } from './session.js';

/** So that no transaction becomes too long for those of others. */
const MOST_AT_ONCE = 100;

interface Item {
  events: InboundEvent[];
  /** null for what was fetched. */
  packet: Packet | null;
  finish(): void;
}

export type Queue = ReturnType<typeof createQueue>;

interface QueueParts extends Base {
  identity: Identity;
  answers: Answers;
  presses: Presses;
  session: Session;
  storing: State;
}

export function createQueue(parts: QueueParts, receive: Receive, signal: AbortSignal) {
  const { identity, answers, presses, session, storing, clock, log } = parts;
  let waiting: Item[] = [];
  let working: Promise<void> | null = null;

  async function work(): Promise<void> {
    while (waiting.length > 0 && !signal.aborted) {
      const batch = nextBatch();
      const reception = await store(batch);
      if (reception !== null) session.done(packetsOf(batch));
      for (const { platformMessageId, why } of reception?.turnedAway ?? []) {
        void answers.turnAway(platformMessageId, why);
      }
      for (const [id, became] of reception?.choices ?? []) presses.settle(id, became);
      for (const { finish } of batch) finish();
    }
    for (const { finish } of waiting) finish();
    waiting = [];
    working = null;
  }

  /** What was fetched comes as a batch already. */
  function nextBatch(): Item[] {
    const fetched = waiting.findIndex(({ packet }) => packet === null);
    const live = fetched === -1 ? waiting.length : fetched;
    return waiting.splice(0, Math.min(Math.max(1, live), MOST_AT_ONCE));
  }

  /** null when the channel stops before it is stored. */
  async function store(batch: Item[]): Promise<Reception | null> {
    const events = batch.flatMap((item) => item.events);
    const piledUp = batch.some(({ packet }) => packet === null || packet.isReplay);
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        const cursor = session.cursorAfter(packetsOf(batch));
        const reception = await receive({
          channel: 'discord',
          account: identity.known()?.id ?? '',
          events,
          piledUp,
          ...(cursor === undefined ? {} : { cursor }),
        });
        storing.up();
        return reception;
      } catch (error) {
        const reason = `what came from Discord could not be stored: ${describe(error)}`;
        const pauseMs = backoffMs(failures);
        storing.down(reason);
        log.warn({ channel: 'discord', reason, pauseMs }, 'taking in from Discord is held up; trying again');
        await clock.sleep(pauseMs, signal);
      }
    }
    return null;
  }

  function add(events: InboundEvent[], packet: Packet | null): Promise<void> {
    return new Promise((resolve) => {
      if (events.length === 0 || signal.aborted) return resolve();
      waiting.push({ events, packet, finish: resolve });
      working ??= work();
    });
  }

  return {
    /** An event of the gateway. */
    add: (event: InboundEvent, packet: Packet) => void add([event], packet),
    /** What was fetched. Resolves when it is stored, or never will be because the channel stops. */
    addMissed: (events: InboundEvent[]) => add(events, null),
    /** Resolves when nothing is being stored. */
    async idle(): Promise<void> {
      await working;
    },
  };
}

function packetsOf(batch: Item[]): Packet[] {
  return batch.flatMap(({ packet }) => packet ?? []);
}
