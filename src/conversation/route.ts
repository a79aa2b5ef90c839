/**
 * Steps 3 to 6 for one claimed room, in order: admit, context, turn, finish. Here a turn begins, is taken up
 * again after a crash, is aborted, and here is counted what went wrong with it.
 */
import type { Channel, Recipient } from '../core/channel.js';
import { type Clock, OVER } from '../core/clock.js';
import { describe, Fault, sentenceOf } from '../core/errors.js';
import { roomParts } from '../core/ids.js';
import type { Log, Metrics } from '../core/log.js';
import type { Persona, Personas } from '../core/persona.js';
import type { Claim, Claimed, StoredMessage, StoredTurn, TurnStore } from '../core/store.js';
import type { AccessRules } from './access.js';
import { type Admission, admit } from './admit.js';
import { buildContext, type ContextParts } from './context.js';
import type { Deliver } from './deliver.js';
import { type Ending, finish } from './finish.js';
import { LEASE_MS, type TurnEnd } from './inbox.js';
import type { Pace } from './pace.js';
import { runTurn, type TurnParts } from './turn.js';

export interface RouteParts {
  store: TurnStore & ContextParts['store'];
  context: ContextParts;
  turn: TurnParts;
  personas: Personas;
  channels: ReadonlyMap<string, Channel>;
  deliver: Deliver;
  rulesFor(channel: string): AccessRules;
  maxAgeMs: number;
  newId(): string;
  pace: Pace;
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

export interface Route {
  takeTurn(claimed: Claimed, alone: boolean, shutdown: AbortSignal): Promise<TurnEnd>;
  /** Ends a turn in flight at once; what it would still have said or saved is dropped. */
  abort(turnId: string): void;
}

const FAULTS_BEFORE_PARKING = 3;
const CRASHES_BEFORE_ALONE = 3;
const CRASHES_BEFORE_PARKING = 5;
const HOUR_MS = 3_600_000;
const FIRST_RETRY_MS = 1_000;

const DONE: TurnEnd = { kind: 'done' };
/** Something may be left in the room: look again at once. */
const NEXT: TurnEnd = { kind: 'again', afterMs: 0 };

/** A turn as far as it is known when it begins or goes on. */
interface Begun {
  claimed: Claimed;
  channel: Channel;
  /** Of the chat, as read when the turn began or went on. */
  personas: Persona[];
  turn: StoredTurn;
  batch: StoredMessage[];
}

export function createRoute(parts: RouteParts): Route {
  const { store, clock, log } = parts;
  /** The turns that run, by id. */
  const inFlight = new Map<string, AbortController>();

  async function takeTurn(claimed: Claimed, alone: boolean, shutdown: AbortSignal): Promise<TurnEnd> {
    const channel = parts.channels.get(claimed.chat.channel);
    const unfinished = claimed.turn;
    if (!channel || (unfinished && !alone && mustRunAlone(unfinished))) {
      await store.release(claimed.claim);
      return channel ? { kind: 'alone' } : DONE;
    }
    if (unfinished) {
      const personas = await parts.personas.list(claimed.chat.id);
      const begun = { claimed, channel, personas, turn: unfinished, batch: claimed.batch };
      const end = await answer(begun, shutdown);
      return end.kind === 'done' ? NEXT : end;
    }
    const personas = await parts.personas.list(claimed.chat.id);
    const admission = admitWaiting(claimed, personas);
    const begun = await begin(claimed, admission, channel, personas);
    const end = begun ? await answer(begun, shutdown) : DONE;
    return end.kind === 'done' && isMoreWaiting(claimed, admission) ? NEXT : end;
  }

  // ── 3 admit ──────────────────────────────────────────────────────────────────────────────────────────────

  function admitWaiting({ chat, waiting }: Claimed, personas: Persona[]): Admission {
    return admit(waiting, personas, {
      kind: chat.kind,
      requireMention: parts.rulesFor(chat.channel).requireMention,
      activePersona: chat.activePersona,
    });
  }

  /** Null when nothing is to be answered, or the claim was lost. */
  async function begin(
    claimed: Claimed,
    admission: Admission,
    channel: Channel,
    personas: Persona[],
  ): Promise<Begun | null> {
    const now = clock.now();
    const turn = admission.turn && { id: parts.newId(), personaId: admission.turn.personaId };
    const batch = await store.beginTurn({
      claim: claimed.claim,
      turn: turn && { ...turn, batch: admission.turn?.batch.map((message) => message.id) ?? [] },
      noted: admission.noted.map((message) => message.id),
      hearers: [claimed.chat.activePersona],
      now,
    });
    if (batch && turn) {
      return {
        claimed,
        channel,
        personas,
        batch,
        turn: { ...turn, startedAt: now, attempts: 0, crashes: 0, steps: [] },
      };
    }
    if (batch) await store.release(claimed.claim);
    return null;
  }

  // ── 4 to 6 ───────────────────────────────────────────────────────────────────────────────────────────────

  async function answer(begun: Begun, shutdown: AbortSignal): Promise<TurnEnd> {
    const { turn } = begun;
    const { claim } = begun.claimed;
    if (turn.crashes >= CRASHES_BEFORE_PARKING || turn.attempts >= FAULTS_BEFORE_PARKING) return park(begun);
    const abort = new AbortController();
    const end = () => abort.abort(OVER);
    if (shutdown.aborted) end();
    // Not AbortSignal.any: with a listener on it, Node keeps one for each turn for as long as the process lives.
    shutdown.addEventListener('abort', end, { once: true });
    inFlight.set(turn.id, abort);
    const stopHolding = holdLease(claim, abort);
    const stopTyping = showTyping(begun);
    try {
      // A hung tool or socket may not listen to the signal; the room must not wait for it.
      return await Promise.race([think(begun, abort.signal), whenAborted(abort.signal, shutdown, claim)]);
    } catch (error) {
      return await afterFault(begun, error);
    } finally {
      stopTyping();
      stopHolding();
      shutdown.removeEventListener('abort', end);
      inFlight.delete(turn.id);
    }
  }

  async function think(begun: Begun, signal: AbortSignal): Promise<TurnEnd> {
    const { turn, batch, personas } = begun;
    const { chat, claim } = begun.claimed;
    const started = clock.now();
    const lateByHours = waitedTooLong(batch, turn.startedAt);
    const context = await buildContext(parts.context, {
      chat,
      room: claim.room,
      turnId: turn.id,
      personaId: turn.personaId,
      personas,
      batch,
      now: started,
      lateByHours,
    });
    const outcome = await runTurn(parts.turn, {
      turnId: turn.id,
      context,
      authorisation: {
        chatId: chat.id,
        personaId: turn.personaId,
        senderId: senderOf(batch),
        channel: chat.channel,
        controlChats: parts.rulesFor(chat.channel).controlChats,
      },
      steps: turn.steps,
      save: (step) => store.addStep(claim, turn.id, step),
      signal,
    });
    if (outcome.kind === 'dropped') return DONE;
    await parts.pace();
    if (outcome.kind === 'failed') {
      log.warn(
        { code: outcome.fault.code, room: claim.room, turn: turn.id, why: describe(outcome.fault) },
        'the model gave no answer; the chat was told',
      );
    }
    await end(begun, context.persona.name, lateByHours, endingOf(outcome));
    parts.metrics.observe('turn_seconds', (clock.now() - started) / 1000);
    return DONE;
  }

  async function end(
    begun: Begun,
    speaker: string,
    lateByHours: number | null,
    ending: Ending,
  ): Promise<void> {
    const { turn, batch, channel } = begun;
    const { claim, chat } = begun.claimed;
    const outcome = await finish(
      { store, channel },
      {
        claim,
        turnId: turn.id,
        personaId: turn.personaId,
        hearers: [chat.activePersona],
        speaker,
        kind: chat.kind,
        batch,
        lateByHours,
        now: clock.now(),
      },
      ending,
    );
    if (outcome === 'lost') return;
    parts.deliver.wake(chat.id);
    parts.metrics.count('turns_total', { outcome: ending.outcome });
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
    const persona = begun.personas.find((candidate) => candidate.id === personaId);
    const text = sentenceOf(new Fault('internal', 'parked'));
    await end(begun, persona?.name ?? personaId, null, { outcome: 'parked', text, usage: null });
    return DONE;
  }

  /** Whoever aborted a turn has ended it in the store; at shutdown it stays unfinished and is taken up again. */
  async function whenAborted(signal: AbortSignal, shutdown: AbortSignal, claim: Claim): Promise<TurnEnd> {
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    }
    if (shutdown.aborted) await store.release(claim);
    return DONE;
  }

  function holdLease(claim: Claim, abort: AbortController): () => void {
    const stop = new AbortController();
    void (async () => {
      for (;;) {
        await clock.sleep(LEASE_MS / 3, stop.signal);
        if (stop.signal.aborted) return;
        const held = await store.renew(claim, clock.now(), LEASE_MS).catch((error) => {
          log.warn({ err: error, room: claim.room }, 'the lease of a room could not be prolonged just now');
          return true;
        });
        if (!held) abort.abort();
      }
    })();
    return () => stop.abort(OVER);
  }

  function showTyping({ claimed, channel }: Begun): () => void {
    const { threadId } = roomParts(claimed.claim.room);
    const to: Recipient = { address: claimed.chat.address, kind: claimed.chat.kind, threadId };
    return parts.deliver.typing(channel, claimed.chat.id, to);
  }

  function waitedTooLong(batch: StoredMessage[], startedAt: number): number | null {
    const oldest = Math.min(...batch.map((message) => message.receivedAt));
    const waited = startedAt - oldest;
    return waited > parts.maxAgeMs ? Math.floor(waited / HOUR_MS) : null;
  }

  return { takeTurn, abort: (turnId) => inFlight.get(turnId)?.abort() };
}

function mustRunAlone(turn: StoredTurn): boolean {
  return turn.crashes >= CRASHES_BEFORE_ALONE && turn.crashes < CRASHES_BEFORE_PARKING;
}

function isMoreWaiting(claimed: Claimed, admission: Admission): boolean {
  const taken = admission.noted.length + (admission.turn?.batch.length ?? 0);
  return claimed.more || claimed.waiting.length > taken;
}

function senderOf(batch: StoredMessage[]): string {
  const last = batch.at(-1)?.author;
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
