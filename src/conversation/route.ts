/**
 * Steps 3 to 6 for one claimed room, in order: admit, context, turn, finish. Here a turn begins, is taken up
 * again after a crash, is aborted, and here is counted what went wrong with it.
 */
import type { Channel, Recipient } from '../core/channel.js';
import { OVER } from '../core/clock.js';
import { describe, Fault, sentenceOf } from '../core/errors.js';
import type { Exchange } from '../core/exchange.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import type { Metrics } from '../core/log.js';
import { type Persona, personaName } from '../core/persona.js';
import type { ChatStore, Claim, Claimed, OutboxStore, StoredTurn, TurnStore } from '../core/store.js';
import type { Step, StoredMessage } from '../core/transcript.js';
import type { Measured } from '../core/view.js';
import { calledOf, turnedTo } from './addressing.js';
import type { Admission } from './admit.js';
import type { Windows } from './compaction/windows.js';
import { buildContext, type Context, type ContextParts } from './context.js';
import type { Deliver } from './deliver.js';
import { spoken } from './exchange.js';
import { type FilesRead, readFiles } from './files.js';
import { type Ending, type FinishAsk, finish, replyOf } from './finish.js';
import { takeFloor } from './floor.js';
import { stepMessages, tokensOf } from './history.js';
import type { TurnEnd } from './inbox.js';
import { whileHeld } from './lease.js';
import { createLive, type Live, NOT_LIVE } from './live.js';
import { type OpeningParts, openRoom } from './opening.js';
import type { Pace } from './pace.js';
import { faceOf, presentIn } from './presence.js';
import { runTurn, type TurnAsk, type TurnOutcome, type TurnParts } from './turn.js';

export interface RouteParts extends OpeningParts {
  store: TurnStore & ContextParts['store'] & Pick<OutboxStore, 'post'> & Pick<ChatStore, 'lastReply'>;
  context: ContextParts;
  turn: TurnParts;
  windows: Windows;
  /** Somebody heard something in a room: it can be recalled soon. */
  onHeard(room: RoomId): void;
  channels: ReadonlyMap<string, Channel>;
  deliver: Deliver;
  /** Whether replies are shown there while they are written. */
  streams(channel: string): boolean;
  maxAgeMs: number;
  newId(): string;
  pace: Pace;
  metrics: Metrics;
}

export interface Route {
  takeTurn(claimed: Claimed, alone: boolean, shutdown: AbortSignal): Promise<TurnEnd>;
  /** Ends a turn in flight at once; what it would still have said or saved is dropped. */
  abort(turnId: string): void;
  /** Where a turn in flight is; null for one that is over. */
  roomOf(turnId: string): RoomId | null;
  /** Cuts off the turns in flight in a chat; they write nothing more when it resolves, and are taken up again. */
  interrupt(chatId: ChatId): Promise<void>;
}

const FAULTS_BEFORE_PARKING = 3;
const CRASHES_BEFORE_ALONE = 3;
const CRASHES_BEFORE_PARKING = 5;
const HOUR_MS = 3_600_000;
const FIRST_RETRY_MS = 1_000;
/** What is cut off comes to rest within this time, or hangs in a socket where it can write nothing. */
const LANDING_MS = 2_000;

const DONE: TurnEnd = { kind: 'done' };
/** Something may be left in the room: look again at once. */
const NEXT: TurnEnd = { kind: 'again', afterMs: 0 };

/** A turn in flight. */
interface Flight {
  abort: AbortController;
  room: RoomId;
  /** Cut off, to be taken up again at once. */
  interrupted: boolean;
  landed: Promise<TurnEnd> | null;
}

/** A turn as far as it is known when it begins or goes on. */
interface Begun {
  claimed: Claimed;
  channel: Channel;
  /** Of the chat, as read when the turn began or went on. */
  personas: Persona[];
  turn: StoredTurn;
  batch: StoredMessage[];
  /** What goes on between personas behind it; null for nothing. */
  exchange: Exchange | null;
}

export function createRoute(parts: RouteParts): Route {
  const { store, clock, log } = parts;
  /** The turns that run, by id. */
  const inFlight = new Map<string, Flight>();

  async function takeTurn(claimed: Claimed, alone: boolean, shutdown: AbortSignal): Promise<TurnEnd> {
    const channel = parts.channels.get(claimed.chat.channel);
    const unfinished = claimed.turn;
    if (!channel || (unfinished && !alone && mustRunAlone(unfinished))) {
      await store.release(claimed.claim);
      return channel ? { kind: 'alone' } : DONE;
    }
    if (unfinished) {
      const personas = await parts.personas.list(claimed.chat.id);
      const { batch, exchange } = claimed;
      const begun = { claimed, channel, personas, turn: unfinished, batch, exchange };
      const end = await answer(begun, shutdown);
      return end.kind === 'done' ? NEXT : end;
    }
    const opening = await openRoom(parts, claimed, channel, shutdown);
    if (opening === null) return DONE;
    const { personas, admission, notices } = opening;
    const begun = await begin(claimed, admission, channel, personas);
    // Whoever spoke to others in a group is not told that we could not listen.
    const ours = new Set(begun?.batch.map(({ id }) => id));
    await postNotices(
      claimed,
      notices.filter(({ message }) => ours.has(message.id)),
    );
    const end = begun ? await answer(begun, shutdown) : DONE;
    return end.kind === 'done' && isMoreWaiting(claimed, admission) ? NEXT : end;
  }

  /** Null when nothing is to be answered, or the claim was lost. */
  async function begin(
    claimed: Claimed,
    admission: Admission,
    channel: Channel,
    personas: Persona[],
  ): Promise<Begun | null> {
    const now = clock.now();
    const taking = takeFloor(claimed, admission, personas);
    const turn = taking.turn && { id: parts.newId(), ...taking.turn };
    const batch = await store.beginTurn({
      ...taking,
      ...{ claim: claimed.claim, turn, now },
      hearers: presentIn(claimed.chat, personas),
    });
    if (batch && turn) {
      const { id, personaId } = turn;
      return {
        ...{ claimed, channel, personas, batch, exchange: taking.exchange },
        turn: { id, personaId, startedAt: now, attempts: 0, crashes: 0, steps: [] },
      };
    }
    if (batch) {
      await store.release(claimed.claim);
      parts.onHeard(claimed.claim.room);
    }
    return null;
  }

  // ── 4 to 6 ───────────────────────────────────────────────────────────────────────────────────────────────

  async function answer(begun: Begun, shutdown: AbortSignal): Promise<TurnEnd> {
    const { turn } = begun;
    const { claim } = begun.claimed;
    if (turn.crashes >= CRASHES_BEFORE_PARKING || turn.attempts >= FAULTS_BEFORE_PARKING) return park(begun);
    return whileHeld(parts, claim, shutdown, (abort) => fly(begun, abort, shutdown));
  }

  async function fly(begun: Begun, abort: AbortController, shutdown: AbortSignal): Promise<TurnEnd> {
    const { turn } = begun;
    const { claim } = begun.claimed;
    const flight: Flight = { abort, room: claim.room, interrupted: false, landed: null };
    inFlight.set(turn.id, flight);
    const stopTyping = showTyping(begun);
    try {
      // A hung tool or socket may not listen to the signal; the room must not wait for it.
      flight.landed = think(begun, abort.signal);
      return await Promise.race([flight.landed, whenAborted(flight, shutdown, claim)]);
    } catch (error) {
      return await afterFault(begun, error);
    } finally {
      stopTyping();
      inFlight.delete(turn.id);
    }
  }

  async function think(admitted: Begun, signal: AbortSignal): Promise<TurnEnd> {
    const started = clock.now();
    const begun = await withFiles(admitted, signal);
    if (begun === null) return DONE;
    const { turn, batch, personas } = begun;
    const { chat, claim } = begun.claimed;
    const lateByHours = waitedTooLong(batch, turn.startedAt);
    const subject = { chat, room: claim.room, personaId: turn.personaId, personas };
    const gather = () =>
      buildContext(parts.context, { ...subject, turnId: turn.id, batch, now: started, lateByHours });
    const makeRoom = async (refused: number | null) => {
      await parts.windows.makeRoom(subject, turn.id, refused);
      context = await gather();
    };
    let context = await gather();
    if (parts.windows.isFull(context.sizes, context.view.measured)) await makeRoom(null);
    const live = liveFor(begun, context, lateByHours);
    signal.addEventListener('abort', live.end, { once: true });
    const ask = () => runTurn(parts.turn, askOf(begun, context, signal, live));
    const askUntilItFits = async () => {
      const first = await ask();
      if (first.kind !== 'failed' || first.fault.code !== 'context_too_long' || signal.aborted) return first;
      log.warn({ room: claim.room, why: describe(first.fault) }, 'a request did not fit; compacting first');
      await makeRoom(context.requestTokens);
      return ask();
    };
    const outcome = await askUntilItFits().finally(live.end);
    if (outcome.kind === 'dropped') return DONE;
    await parts.pace();
    if (outcome.kind === 'failed') {
      log.warn(
        { code: outcome.fault.code, room: claim.room, turn: turn.id, why: describe(outcome.fault) },
        'the model gave no answer; the chat was told',
      );
    }
    const measured = parts.windows.credible(
      claim.room,
      turn.personaId,
      measuredOf(outcome, context, turn.steps),
    );
    const kept = { lateByHours, measured, given: context.given };
    const ended = await end(begun, context.persona.name, kept, endingOf(outcome));
    if (outcome.kind === 'answered') {
      parts.windows.consider(subject, context.sizes, measured ?? context.view.measured);
    }
    parts.metrics.observe('turn_seconds', (clock.now() - started) / 1000);
    return ended;
  }

  /** The turn with what its files hold. null when it was aborted meanwhile. */
  async function withFiles(begun: Begun, signal: AbortSignal): Promise<Begun | null> {
    const { claimed, channel, batch } = begun;
    if (!batch.some(({ attachments }) => attachments !== undefined)) return begun;
    const { claim, chat } = claimed;
    const ask = { claim, channel, signal, chatId: chat.id, messages: batch };
    const read = await readFiles(parts.files, ask);
    if (read === null) return null;
    await postNotices(claimed, read.notices);
    return { ...begun, batch: read.messages };
  }

  /** Whoever sent a file that is not taken hears it, whatever the model makes of it. */
  async function postNotices({ claim, chat }: Claimed, notices: FilesRead['notices']): Promise<void> {
    const channel = parts.channels.get(chat.channel);
    for (const { message, text } of notices) {
      const [body] = channel?.compose(text) ?? [];
      if (!body) continue;
      await store.post({
        ...{ chatId: chat.id, channel: chat.channel, address: chat.address, kind: chat.kind },
        threadId: roomParts(claim.room).threadId,
        now: clock.now(),
        delivery: {
          ...{ origin: `notice:${message.id}`, personaId: null, speaker: 'coterie', part: 0, body },
          replyTo: chat.kind === 'group' ? message.platformMessageId : null,
        },
      });
      parts.deliver.wake(chat.id);
    }
  }

  async function end(
    begun: Begun,
    speaker: string,
    kept: Pick<FinishAsk, 'lateByHours' | 'measured' | 'given'>,
    ending: Ending,
  ): Promise<TurnEnd> {
    const { turn, batch, channel, personas } = begun;
    const { claim, chat } = begun.claimed;
    const { personaId } = turn;
    const present = presentIn(chat, personas);
    const addressed = ending.outcome === 'answered' ? companyCalled(begun, ending.text) : [];
    const exchange = begun.exchange && spoken(begun.exchange, addressed, parts.caps);
    const outcome = await finish(
      { store, channel },
      {
        ...{ claim, turnId: turn.id, personaId, speaker, batch, kind: chat.kind },
        hearers: [...new Set([...present, ...(begun.exchange?.party ?? [])])],
        ...{ addressed, exchange, face: faceOf(chat, personas, personaId) },
        ...kept,
        now: clock.now(),
      },
      ending,
    );
    if (outcome === 'lost') return DONE;
    parts.deliver.wake(chat.id);
    parts.onHeard(claim.room);
    parts.metrics.count('turns_total', { outcome: ending.outcome });
    return exchange === null ? DONE : NEXT;
  }

  /** Whom of the others present a reply turns to. */
  function companyCalled({ claimed, personas, turn }: Begun, reply: string): PersonaId[] {
    const others = presentIn(claimed.chat, personas).filter((id) => id !== turn.personaId);
    if (others.length === 0) return [];
    return turnedTo(reply, personas.filter(({ id }) => others.includes(id)).map(calledOf));
  }

  // ── When it does not go well ─────────────────────────────────────────────────────────────────────────────

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
    const text = sentenceOf(new Fault('internal', 'parked'));
    const kept = { lateByHours: null, measured: null, given: null };
    return end(begun, personaName(begun.personas, personaId), kept, { outcome: 'parked', text, usage: null });
  }

  /** Whoever aborted a turn has ended it in the store; at shutdown it stays unfinished and is taken up again. */
  async function whenAborted(flight: Flight, shutdown: AbortSignal, claim: Claim): Promise<TurnEnd> {
    const { signal } = flight.abort;
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    }
    if (shutdown.aborted || flight.interrupted) await store.release(claim);
    return flight.interrupted ? NEXT : DONE;
  }

  async function interrupt(chatId: ChatId): Promise<void> {
    const ofChat = [...inFlight.values()].filter(({ room }) => roomParts(room).chatId === chatId);
    for (const flight of ofChat) {
      flight.interrupted = true;
      flight.abort.abort(OVER);
    }
    const landed = Promise.allSettled(ofChat.map((flight) => flight.landed));
    await Promise.race([landed, clock.sleep(LANDING_MS)]);
  }

  function askOf(
    { claimed, turn, batch }: Begun,
    context: Context,
    signal: AbortSignal,
    live: Live,
  ): TurnAsk {
    const { chat, claim } = claimed;
    return {
      turnId: turn.id,
      context,
      authorisation: {
        chatId: chat.id,
        personaId: turn.personaId,
        senderId: senderOf(batch),
        channel: chat.channel,
        controlChats: parts.rulesFor(chat.channel).controlChats,
      },
      cause: { kind: 'turn', personaId: turn.personaId, turnId: turn.id },
      steps: turn.steps,
      save: (step) => store.addStep(claim, turn.id, step),
      onText: live.tell,
      signal,
    };
  }

  /** What is written is shown, where the channel can do that and may. */
  function liveFor(begun: Begun, context: Context, lateByHours: number | null): Live {
    const { claimed, channel, turn, batch, personas } = begun;
    const { chat, claim } = claimed;
    const canShow =
      channel.preview !== undefined || (channel.edit !== undefined && channel.remove !== undefined);
    if (!canShow || !parts.streams(channel.name)) return NOT_LIVE;
    const { threadId } = roomParts(claim.room);
    const face = faceOf(chat, personas, turn.personaId);
    const as = { speaker: context.persona.name, personaId: turn.personaId, face, batch, kind: chat.kind };
    return createLive(
      { show: parts.deliver.show, clock },
      {
        ...{ turnId: turn.id, room: claim.room, chatId: chat.id, channel },
        to: { address: chat.address, kind: chat.kind, threadId },
        deliveriesOf: (text) => replyOf(channel, { ...as, turnId: turn.id, lateByHours }, text),
      },
    );
  }

  function showTyping({ claimed, channel, turn }: Begun): () => void {
    const { threadId } = roomParts(claimed.claim.room);
    const to: Recipient = { address: claimed.chat.address, kind: claimed.chat.kind, threadId };
    return parts.deliver.typing(channel, claimed.chat.id, to, turn.personaId);
  }

  function waitedTooLong(batch: StoredMessage[], startedAt: number): number | null {
    const oldest = Math.min(...batch.map((message) => message.receivedAt));
    const waited = startedAt - oldest;
    return waited > parts.maxAgeMs ? Math.floor(waited / HOUR_MS) : null;
  }

  return {
    ...{ takeTurn, interrupt },
    abort: (turnId) => inFlight.get(turnId)?.abort.abort(),
    roomOf: (turnId) => inFlight.get(turnId)?.room ?? null,
  };
}

function mustRunAlone(turn: StoredTurn): boolean {
  return turn.crashes >= CRASHES_BEFORE_ALONE && turn.crashes < CRASHES_BEFORE_PARKING;
}

function isMoreWaiting(claimed: Claimed, admission: Admission): boolean {
  const taken = admission.noted.length + (admission.turn?.batch.length ?? 0);
  return claimed.more || claimed.waiting.length > taken;
}

/** What the server counted of the turn's last request, beside our estimate of that very request. */
function measuredOf(outcome: TurnOutcome, context: Context, steps: Step[]): Measured | null {
  if (outcome.kind !== 'answered' || !outcome.last || outcome.last.inputTokens <= 0) return null;
  const estimated = context.requestTokens + tokensOf(stepMessages(steps));
  return { counted: outcome.last.inputTokens, estimated };
}

function senderOf(batch: StoredMessage[]): string {
  const last = batch.findLast(({ author }) => author.kind === 'person')?.author;
  return last?.kind === 'person' ? last.id : '';
}

function endingOf(
  outcome:
    | { kind: 'answered'; text: string; usage: Ending['usage'] }
    | { kind: 'failed'; fault: Fault; usage: Ending['usage'] },
): Ending {
  if (outcome.kind === 'failed')
    return { outcome: 'failed', text: outcome.fault.sentence, usage: outcome.usage };
  if (outcome.text !== '') return { outcome: 'answered', text: outcome.text, usage: outcome.usage };
  return { outcome: 'failed', text: new Fault('model_empty', 'no words').sentence, usage: outcome.usage };
}
