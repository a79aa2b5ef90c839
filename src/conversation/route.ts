/**
 * Steps 3 to 6 for one claimed room, in order: open, begin, think, finish. A turn that a crash left unfinished goes on
 * from there; what goes wrong with one is counted here, and ends it at last.
 */
import type { Channel } from '../core/channel.js';
import { Fault, sentenceOf } from '../core/errors.js';
import type { RoomId } from '../core/ids.js';
import { personaName } from '../core/persona.js';
import type { ChatStore, Claim, Claimed, OutboxStore, StoredTurn, TurnStore } from '../core/store.js';
import type { Admission } from './admit.js';
import { type BeginParts, type Begun, begin } from './begin.js';
import type { ContextParts } from './context.js';
import type { Deliver } from './deliver.js';
import { readFiles } from './files.js';
import { type FinishParts, finish } from './finish.js';
import { createFlights, type Flights } from './flights.js';
import type { TurnEnd } from './inbox.js';
import { type LeaseParts, whileHeld } from './lease.js';
import { type NoticeParts, postNotices } from './notices.js';
import { type OpeningParts, openRoom } from './opening.js';
import type { Pace } from './pace.js';
import { recipientIn } from './reply.js';
import { type ThinkParts, think } from './think.js';

export interface RouteParts
  extends LeaseParts,
    OpeningParts,
    BeginParts,
    ThinkParts,
    FinishParts,
    NoticeParts {
  store: TurnStore & ContextParts['store'] & Pick<OutboxStore, 'post'> & Pick<ChatStore, 'lastReply'>;
  deliver: Deliver;
  pace: Pace;
}

export interface Route extends Omit<Flights, 'fly'> {
  takeTurn(claimed: Claimed, alone: boolean, shutdown: AbortSignal): Promise<TurnEnd>;
  /** Ends step 3 in a room: what it was about is not to be answered any more. */
  giveUpOpening(room: RoomId): void;
}

const FAULTS_BEFORE_PARKING = 3;
const CRASHES_BEFORE_ALONE = 3;
const CRASHES_BEFORE_PARKING = 5;
const FIRST_RETRY_MS = 1_000;

const DONE: TurnEnd = { kind: 'done' };
/** Something may be left in the room: look again at once. */
const NEXT: TurnEnd = { kind: 'again', afterMs: 0 };

export function createRoute(parts: RouteParts): Route {
  const { store, clock, log } = parts;
  const { fly, ...flights } = createFlights(clock);

  async function takeTurn(claimed: Claimed, alone: boolean, shutdown: AbortSignal): Promise<TurnEnd> {
    const channel = parts.channels.get(claimed.chat.channel);
    const unfinished = claimed.turn;
    if (!channel || (unfinished && !alone && mustRunAlone(unfinished))) {
      await store.release(claimed.claim);
      return channel ? { kind: 'alone' } : DONE;
    }
    return unfinished ? goOn(claimed, unfinished, channel, shutdown) : takeNext(claimed, channel, shutdown);
  }

  async function goOn(
    claimed: Claimed,
    turn: StoredTurn,
    channel: Channel,
    shutdown: AbortSignal,
  ): Promise<TurnEnd> {
    const personas = await parts.personas.list(claimed.chat.id);
    const { batch, exchange } = claimed;
    const end = await answer({ claimed, channel, personas, turn, batch, exchange }, shutdown);
    return end.kind === 'done' ? NEXT : end;
  }

  async function takeNext(claimed: Claimed, channel: Channel, shutdown: AbortSignal): Promise<TurnEnd> {
    const { claim } = claimed;
    const opening = await whileHeld(parts, claim, shutdown, (abort) =>
      fly({ id: openingIn(claim.room), room: claim.room }, abort, () =>
        openRoom(parts, claimed, channel, abort.signal),
      ),
    );
    if (opening === null) {
      await store.release(claim);
      return DONE;
    }
    if (typeof opening === 'string') return afterAbort(opening, claim, shutdown);
    const begun = await begin(parts, claimed, channel, opening);
    // Whoever spoke to others in a group is not told that we could not listen.
    const ours = new Set(begun?.batch.map(({ id }) => id));
    const notices = opening.notices.filter(({ message }) => ours.has(message.id));
    await postNotices(parts, claimed, notices);
    const end = begun ? await answer(begun, shutdown) : DONE;
    return end.kind === 'done' && isMoreWaiting(claimed, opening.admission) ? NEXT : end;
  }

  async function answer(begun: Begun, shutdown: AbortSignal): Promise<TurnEnd> {
    const { turn, claimed } = begun;
    const { claim } = claimed;
    if (turn.crashes >= CRASHES_BEFORE_PARKING || turn.attempts >= FAULTS_BEFORE_PARKING) return park(begun);
    return whileHeld(parts, claim, shutdown, async (abort) => {
      const stopTyping = showTyping(begun);
      try {
        const work = () => thinkAndFinish(begun, abort.signal);
        const end = await fly({ id: turn.id, room: claim.room }, abort, work);
        return typeof end === 'string' ? await afterAbort(end, claim, shutdown) : end;
      } catch (error) {
        return await afterFault(begun, error);
      } finally {
        stopTyping();
      }
    });
  }

  async function thinkAndFinish(admitted: Begun, signal: AbortSignal): Promise<TurnEnd> {
    const started = clock.now();
    const begun = await withFiles(admitted, signal);
    const thought = begun && (await think(parts, begun, signal));
    if (begun === null || thought === null) return DONE;
    await parts.pace();
    const finished = await finish(parts, begun, thought.ending);
    thought.consider();
    parts.metrics.observe('turn_seconds', (clock.now() - started) / 1000);
    return finished === 'next' ? NEXT : DONE;
  }

  /** The turn with what its files hold. null when it was aborted meanwhile. */
  async function withFiles(begun: Begun, signal: AbortSignal): Promise<Begun | null> {
    const { claimed, channel, batch } = begun;
    if (!batch.some(({ attachments }) => attachments !== undefined)) return begun;
    const { claim, chat } = claimed;
    const read = await readFiles(parts.files, { claim, channel, signal, chatId: chat.id, messages: batch });
    if (read === null) return null;
    await postNotices(parts, claimed, read.notices);
    return { ...begun, batch: read.messages };
  }

  function showTyping({ claimed, channel, turn }: Begun): () => void {
    return parts.deliver.typing(channel, claimed.chat.id, recipientIn(claimed), turn.personaId);
  }

  /** Whoever aborted it has ended it in the store, too; at shutdown it stays unfinished and is taken up again. */
  async function afterAbort(
    end: 'aborted' | 'cut off',
    claim: Claim,
    shutdown: AbortSignal,
  ): Promise<TurnEnd> {
    if (end === 'cut off' || shutdown.aborted) await store.release(claim);
    return end === 'cut off' ? NEXT : DONE;
  }

  /** A fault of our own: tried three times, then parked. */
  async function afterFault({ turn, claimed }: Begun, error: unknown): Promise<TurnEnd> {
    const { room } = claimed.claim;
    log.error({ err: error, room, turn: turn.id }, 'a turn failed by a fault of our own; it is tried again');
    const attempts = await store.failAttempt(claimed.claim, turn.id);
    return {
      kind: 'again',
      afterMs: attempts < FAULTS_BEFORE_PARKING ? FIRST_RETRY_MS * 2 ** (attempts - 1) : 0,
    };
  }

  /** Nothing more is tried: its messages count as answered, and the chat is told in one plain sentence. */
  async function park(begun: Begun): Promise<TurnEnd> {
    const { claim } = begun.claimed;
    const { id, personaId, crashes, attempts } = begun.turn;
    log.error({ turn: id, room: claim.room, crashes, attempts }, 'a turn is parked after too many tries');
    const finished = await finish(parts, begun, {
      outcome: 'parked',
      text: sentenceOf(new Fault('internal', 'parked')),
      speaker: personaName(begun.personas, personaId),
      ...{ lateByHours: null, usage: null, measured: null, given: null },
    });
    return finished === 'next' ? NEXT : DONE;
  }

  return { takeTurn, giveUpOpening: (room) => flights.abort(openingIn(room)), ...flights };
}

/** Step 3 is in flight, too, without a turn yet: a room has one at a time. */
function openingIn(room: RoomId): string {
  return `opening of ${room}`;
}

function mustRunAlone(turn: StoredTurn): boolean {
  return turn.crashes >= CRASHES_BEFORE_ALONE && turn.crashes < CRASHES_BEFORE_PARKING;
}

function isMoreWaiting(claimed: Claimed, admission: Admission): boolean {
  const taken = admission.noted.length + (admission.turn?.batch.length ?? 0);
  return claimed.more || claimed.waiting.length > taken;
}
