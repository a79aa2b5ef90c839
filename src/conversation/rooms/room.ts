/**
 * Steps 2 to 6 of the route for one room: reads waiting messages, decides whom they address, begins or resumes a turn, answers,
 * finishes. The room is claimed only if there is work. A run does one turn; the next run does the rest.
 */
import type { Channel } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { Persona } from '../../core/persona.js';
import { backoff, mayTry, SUSPECT } from '../../core/retry.js';
import type { Alarm, RoomState } from '../../core/store.js';
import { haveFiles, type StoredMessage } from '../../core/transcript.js';
import { recipientIn } from '../deliver/reply.js';
import { presentIn } from '../participants.js';
import { leaseOf, type MeteredModel } from '../services.js';
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
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;

const DONE: RunEnd = { kind: 'done' };
/** The room may hold more work: run it again at once. */
const AGAIN: RunEnd = { kind: 'again', afterMs: 0 };

export async function runRoom(services: RoomServices, run: RoomRun): Promise<RunEnd> {
  const { store, owner, clock } = services;
  const seen = await store.readRoom(run.room, owner, clock.now());
  if (seen?.unfinished && seen.unfinished.crashes >= SUSPECT)
    return services.suspects(async () => {
      const again = await store.readRoom(run.room, owner, clock.now());
      return again ? runSeen(services, run, again) : DONE;
    });
  return seen ? runSeen(services, run, seen) : DONE;
}

async function runSeen(services: RoomServices, run: RoomRun, seen: RoomState): Promise<RunEnd> {
  const { store, channels, dailyLimits, deliver } = services;
  const channel = channels.get(seen.chat.channel);
  if (!channel) return DONE;
  const begun = seen.unfinished
    ? await resumeTurn(services, run, seen, channel)
    : await beginTurn(services, run, seen, channel);
  if (begun === 'nothing to answer') return DONE;
  if (begun === 'look again') return AGAIN;
  if (run.signal.aborted) {
    await store.release(begun.claim);
    return AGAIN;
  }
  const { chat, turn } = begun;
  if (!mayTry(turn.crashes) || turn.attempts >= FAULTS_BEFORE_PARKING) {
    await park(services, begun);
    return AGAIN;
  }
  const limit = await dailyLimits.reached(payerOf(begun));
  if (limit) {
    await refuse(services, begun, limit, null);
    return AGAIN;
  }
  const stopTyping = deliver.typing(channel, chat.id, recipientIn(chat, run.room), turn.personaId);
  try {
    const end = await answer(services, begun, run.signal);
    if (end.kind === 'dropped') return DONE;
    if (end.kind === 'suspended') return end.alarm ? { ...AGAIN, alarm: end.alarm } : AGAIN;
    // Messages that arrive meanwhile wake the room themselves; this checks for earlier ones.
    const isMoreLeft = seen.unfinished !== null || end.isSomebodyNext || isMoreWaiting(seen, begun.settled);
    return isMoreLeft ? AGAIN : DONE;
  } catch (error) {
    if (run.signal.aborted) throw error;
    return await afterFault(services, begun, error);
  } finally {
    stopTyping();
  }
}

/** Resumes a turn that a crash or restart interrupted, or whose awaited result has come. */
async function resumeTurn(
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
  const { room, chat, revision, exchange } = seen;
  const personas = await services.personas.list(chat.id);
  const scheduledBy = await schedulerOf(services, batch);
  const resumed: Turn = {
    chat,
    room,
    channel,
    revision,
    claim,
    personas,
    turn,
    batch,
    scheduledBy,
    settled: 0,
    exchange,
  };
  await tellCutOff(services, resumed);
  return resumed;
}

/** Decides who answers which messages, and begins that turn. Messages for nobody are marked as heard in the same transaction. */
async function beginTurn(
  services: RoomServices,
  run: RoomRun,
  state: RoomState,
  channel: Channel,
): Promise<Turn | 'nothing to answer' | 'look again'> {
  const { store, clock, newId, settings, rulesFor } = services;
  const heard = haveFiles(state.waiting)
    ? await withSpokenWords(services, run, state, channel)
    : { seen: state, notices: [] };
  if (heard === null) return 'look again';
  const { seen, notices } = heard;
  const { room, chat, waiting, revision } = seen;
  const personas = await personasIn(services, seen);
  const routing = route(waiting, personas, {
    ...chat,
    requireMention: rulesFor(chat.channel).requireMention,
    botNames: channel.names?.() ?? [],
    botLimitReached: seen.turnsForBots >= settings.caps.replies,
  });
  const chosen = await chooseWhoAnswers(services, run, seen, routing, personas);
  if (chosen === null) return 'look again';

  const { meter } = chosen;
  const { turn, noted, exchange, forBots } = nextTurn(seen, chosen.routing, personas);
  const spent = meter?.spent(turn?.personaId ?? chat.activePersona);
  const begin = {
    seen: run.claim ?? seen,
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
    services.recall.heard(room);
    return isNoted && !isMoreWaiting(seen, noted.length) ? 'nothing to answer' : 'look again';
  }
  const id = newId();
  const claim = await store.startTurn({ ...begin, turn: { id, ...turn } });
  await (claim ? meter?.paid() : meter?.settle());
  if (claim === null) return 'look again';
  run.claim = claim;
  run.turnId = id;
  const batch = await batchOf(services, id, turn.batch, waiting);
  // Only notices about this turn's messages: in a group, nobody is told about a failed voice note that was not for us.
  const ours = notices.filter(({ message }) => turn.batch.includes(message.id));
  if (ours.length > 0) await tellFileNotices(services, chat, room, ours);
  const { personaId } = turn;
  return {
    chat,
    room,
    revision,
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

/** The messages a turn answers: those that were waiting and, in a group round, earlier ones. */
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
  let isNew = false;
  for (const each of called) {
    if (there.some(({ id }) => id === each) || chat.away?.includes(each)) continue;
    try {
      isNew = (await personas.meet(chat.id, each)) || isNew;
    } catch (error) {
      const fields = { chat: chat.id, persona: each, reason: describe(error) };
      log.warn(fields, 'a persona could not be created; another one answers');
    }
  }
  return isNew ? personas.list(chat.id) : there;
}

/** With `personas.natural`, asks the model if nobody was named and several could answer. null: look again. */
async function chooseWhoAnswers(
  services: RoomServices,
  run: RoomRun,
  seen: RoomState,
  routing: Routing,
  personas: Persona[],
): Promise<{ routing: Routing; meter: MeteredModel | null } | null> {
  const { turn } = routing;
  if (!services.settings.natural || turn === null || turn.open === null) return { routing, meter: null };
  if ((await claimRoom(services, run, seen)) === null) return null;
  const last = await services.store.lastReply(run.room);
  const meter = services.dailyLimits.meter(payerIn(seen, turn.batch));
  const choice = {
    present: presentIn(seen.chat, personas).flatMap((id) => personas.filter((each) => each.id === id)),
    batch: turn.batch,
    last: last?.personaId ?? null,
    sure: turn.open === 'sure',
  };
  const personaId = await chooseSpeaker(services, run.room, choice, meter.model, run.signal);
  if (run.signal.aborted) {
    await meter.settle();
    return null;
  }
  if (personaId !== null) return { routing: { ...routing, turn: { ...turn, personaId } }, meter };
  const noted = [...routing.noted, ...turn.batch].sort((a, b) => a.id - b.id);
  return { routing: { turn: null, noted }, meter };
}

/** After an internal error, the turn is tried three times, then parked. */
async function afterFault(services: RoomServices, { turn, claim }: Turn, error: unknown): Promise<RunEnd> {
  const { store, log } = services;
  log.error(
    { err: error, room: claim.room, turn: turn.id },
    'a turn failed with an internal error; retrying',
  );
  const attempts = await store.fail(claim, turn.id);
  if (attempts >= FAULTS_BEFORE_PARKING) return AGAIN;
  return { kind: 'again', afterMs: backoff(attempts, FIRST_RETRY_MS, LONGEST_RETRY_MS) };
}

/** Whether waiting messages are left for another turn. */
function isMoreWaiting({ waiting, more }: RoomState, settled: number): boolean {
  return more || waiting.length > settled;
}
