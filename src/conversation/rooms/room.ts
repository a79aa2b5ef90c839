/**
 * Steps 2 to 6 of the route for one room, from top to bottom: look at what is waiting, decide whom it is for, begin or
 * resume a turn, answer, finish. The room is claimed only when there is something to do. A run does one turn; the rest
 * is left to the next run.
 */
import type { Channel } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { Persona } from '../../core/persona.js';
import type { Alarm, Claim, RoomState } from '../../core/store.js';
import { haveFiles, type StoredMessage } from '../../core/transcript.js';
import { recipientIn } from '../deliver/reply.js';
import { presentIn } from '../participants.js';
import { leaseOf } from '../services.js';
import { answer, tellCutOff } from './answer.js';
import { chooseSpeaker } from './arbiter.js';
import { park, refuse } from './finish.js';
import { nextTurn } from './group-round.js';
import { type Routing, route } from './routing.js';
import type { RoomEnd, RoomRun } from './scheduler.js';
import {
  claimRoom,
  payerIn,
  payerOf,
  type RoomServices,
  schedulerOf,
  type Turn,
  tellFileNotices,
  withSpokenWords,
} from './turn.js';

/** The result of a run, for the scheduler. */
export type RunEnd = RoomEnd & { alarm?: Alarm };

const FAULTS_BEFORE_PARKING = 3;
const CRASHES_OF_A_SUSPECT = 3;
const CRASHES_BEFORE_PARKING = 5;
const FIRST_RETRY_MS = 1_000;

const DONE: RunEnd = { kind: 'done' };
/** The room may hold more work: run it again at once. */
const AGAIN: RunEnd = { kind: 'again', afterMs: 0 };

export async function runRoom(services: RoomServices, run: RoomRun): Promise<RunEnd> {
  const { store, clock, channels } = services;
  const seen = await store.readRoom(run.room, services.owner, clock.now());
  const channel = seen && channels.get(seen.chat.channel);
  if (!seen || !channel) return DONE;
  if (seen.unfinished && isSuspect(seen.unfinished) && !run.isSuspect) return { kind: 'suspect' };

  const begun = seen.unfinished
    ? await goOn(services, run, seen, channel)
    : await beginNext(services, run, seen, channel);
  if (begun === 'nothing to answer') return DONE;
  if (begun === 'look again') return AGAIN;
  if (run.signal.aborted) return leave(services, begun.claim);

  const { turn } = begun;
  if (turn.crashes >= CRASHES_BEFORE_PARKING || turn.attempts >= FAULTS_BEFORE_PARKING) {
    await park(services, begun);
    return AGAIN;
  }
  const limit = await services.dailyLimits.reached(payerOf(begun));
  if (limit) {
    await refuse(services, begun, limit, null);
    return AGAIN;
  }
  const stopTyping = services.deliver.typing(
    channel,
    begun.chat.id,
    recipientIn(begun.chat, run.room),
    turn.personaId,
  );
  try {
    const end = await answer(services, begun, run.signal);
    if (end.kind === 'dropped') return DONE;
    if (end.kind === 'suspended') return end.alarm ? { ...AGAIN, alarm: end.alarm } : AGAIN;
    // Messages that arrive meanwhile wake the room themselves; this checks for those that were there before.
    const isMoreLeft = seen.unfinished !== null || end.isSomebodyNext || waitsBehind(seen, begun.settled);
    return isMoreLeft ? AGAIN : DONE;
  } catch (error) {
    if (run.signal.aborted) throw error;
    return await afterFault(services, begun, error);
  } finally {
    stopTyping();
  }
}

/** Resumes a turn that was interrupted by a crash or restart, or whose awaited result has come. */
async function goOn(
  services: RoomServices,
  run: RoomRun,
  seen: RoomState,
  channel: Channel,
): Promise<Turn | 'look again'> {
  const claimed = await services.store.claim(seen, leaseOf(services));
  if (!claimed?.turn) return 'look again';
  const { claim, turn, batch } = claimed;
  run.claim = claim;
  run.turnId = turn.id;
  const personas = await services.personas.list(seen.chat.id);
  const { chat, exchange, revision } = seen;
  const scheduledBy = await schedulerOf(services, batch);
  const place = { chat, room: run.room, revision, channel, personas };
  const resumed = { ...place, claim, turn, batch, scheduledBy, settled: 0, exchange };
  await tellCutOff(services, resumed);
  return resumed;
}

/** Decides who answers what, and begins that turn. Messages for nobody are noted in the same transaction. */
async function beginNext(
  services: RoomServices,
  run: RoomRun,
  state: RoomState,
  channel: Channel,
): Promise<Turn | 'nothing to answer' | 'look again'> {
  const { store, clock, newId } = services;
  const heard = haveFiles(state.waiting)
    ? await withSpokenWords(services, run, state, channel)
    : { seen: state, notices: [] };
  if (heard === null) return 'look again';
  const { seen, notices } = heard;
  const { chat } = seen;
  const personas = await personasIn(services, seen);
  const admission = route(seen.waiting, personas, {
    ...chat,
    requireMention: services.rulesFor(chat.channel).requireMention,
    botNames: channel.names?.() ?? [],
    botLimitReached: seen.turnsForBots >= services.settings.caps.replies,
  });
  const decided = await decideWhoAnswers(services, run, { seen, admission, personas });
  if (decided === null) return 'look again';

  const { turn, noted, exchange, forBots } = nextTurn(seen, decided.admission, personas);
  const { meter } = decided;
  const spent = meter?.spent(turn?.personaId ?? chat.activePersona);
  const begin = {
    seen: decided.held,
    lease: leaseOf(services),
    noted,
    hearers: presentIn(chat, personas),
    exchange,
    ...(forBots === undefined ? {} : { forBots }),
    ...(spent && { spent }),
  };
  if (turn === null) {
    const isNoted = await store.markHeard(begin);
    await (isNoted ? meter?.paid() : meter?.settle());
    run.claim = null;
    services.recall.heard(run.room);
    return isNoted && !waitsBehind(seen, noted.length) ? 'nothing to answer' : 'look again';
  }
  const id = newId();
  const claim = await store.startTurn({ ...begin, turn: { id, ...turn } });
  await (claim ? meter?.paid() : meter?.settle());
  if (claim === null) return 'look again';
  run.claim = claim;
  run.turnId = id;
  const batch = await batchOf(services, id, turn.batch, seen.waiting);
  // Only those about this turn's messages: in a group, nobody is told about a failed voice note that was not for us.
  const ours = notices.filter(({ message }) => turn.batch.includes(message.id));
  if (ours.length > 0) await tellFileNotices(services, { chat, room: run.room }, ours);
  const { personaId } = turn;
  return {
    chat,
    room: run.room,
    revision: seen.revision,
    channel,
    claim,
    personas,
    turn: { id, personaId, startedAt: clock.now(), attempts: 0, crashes: 0, steps: [], shown: [] },
    batch,
    scheduledBy: await schedulerOf(services, batch),
    settled: turn.taken.length + noted.length,
    exchange,
  };
}

/** The messages a turn answers: those that were waiting and, in an exchange between personas, earlier ones. */
async function batchOf(
  { store }: RoomServices,
  turnId: string,
  ids: number[],
  waiting: StoredMessage[],
): Promise<StoredMessage[]> {
  const batch = waiting.filter(({ id }) => ids.includes(id)).map((message) => ({ ...message, turnId }));
  return batch.length === ids.length ? batch : store.turnMessages(turnId);
}

/** The chat's personas, after adding any whose own account was written to. */
async function personasIn({ personas, log }: RoomServices, { chat, waiting }: RoomState): Promise<Persona[]> {
  const there = await personas.list(chat.id);
  const called = new Set(
    waiting.flatMap(({ addresses, author }) => (author.kind === 'person' ? (addresses ?? []) : [])),
  );
  const missing = [...called].filter(
    (each) => !there.some((persona) => persona.id === each) && !chat.away?.includes(each),
  );
  const made = await Promise.all(
    missing.map((each) =>
      // If the persona's folder cannot be written, another persona answers.
      personas.meet(chat.id, each).catch((error) => {
        log.warn({ chat: chat.id, persona: each, reason: describe(error) }, 'a persona could not be made');
        return false;
      }),
    ),
  );
  return made.includes(true) ? personas.list(chat.id) : there;
}

/** If nobody was named and several could answer, the model is asked, where that is turned on. */
async function decideWhoAnswers(
  services: RoomServices,
  run: RoomRun,
  { seen, admission, personas }: { seen: RoomState; admission: Routing; personas: Persona[] },
) {
  const { turn } = admission;
  const held = run.claim ?? seen;
  if (!services.settings.natural || turn === null || turn.open === null)
    return { held, admission, meter: null };
  const claim = await claimRoom(services, run, held);
  if (claim === null) return null;
  const last = await services.store.lastReply(run.room);
  const present = presentIn(seen.chat, personas).flatMap((id) => personas.filter((each) => each.id === id));
  const meter = services.dailyLimits.meter(payerIn(seen, turn.batch));
  const choice = {
    present,
    batch: turn.batch,
    last: last?.personaId ?? null,
    sure: turn.open === 'sure',
  };
  const personaId = await chooseSpeaker(services, run.room, choice, meter.model, run.signal);
  if (run.signal.aborted) {
    await meter.settle();
    return null;
  }
  if (personaId !== null) {
    return { held: claim, admission: { ...admission, turn: { ...turn, personaId } }, meter };
  }
  const noted = [...admission.noted, ...turn.batch].sort((a, b) => a.id - b.id);
  return { held: claim, admission: { turn: null, noted }, meter };
}

async function leave({ store }: RoomServices, claim: Claim): Promise<RunEnd> {
  await store.release(claim);
  return AGAIN;
}

/** An internal error: the turn is tried three times, then parked. */
async function afterFault(
  { store, log }: RoomServices,
  { turn, claim }: Turn,
  error: unknown,
): Promise<RunEnd> {
  log.error(
    { err: error, room: claim.room, turn: turn.id },
    'a turn failed with an internal error; it is tried again',
  );
  const attempts = await store.fail(claim, turn.id);
  return {
    kind: 'again',
    afterMs: attempts < FAULTS_BEFORE_PARKING ? FIRST_RETRY_MS * 2 ** (attempts - 1) : 0,
  };
}

function isSuspect({ crashes }: { crashes: number }): boolean {
  return crashes >= CRASHES_OF_A_SUSPECT && crashes < CRASHES_BEFORE_PARKING;
}

/** Whether messages that were waiting are left for another turn. */
function waitsBehind({ waiting, more }: RoomState, settled: number): boolean {
  return more || waiting.length > settled;
}
