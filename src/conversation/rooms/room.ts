/** Steps 2 to 6 of the route for one room, claimed only if there is work. A run does one turn; the next does the rest. */
import type { Channel } from '../../core/channel.js';
import { leaseOf } from '../../core/clock.js';
import type { Persona } from '../../core/persona.js';
import type { PendingCommand } from '../../core/receipt.js';
import { backoff, mayTry, SUSPECT } from '../../core/retry.js';
import type { Alarm, RoomState } from '../../core/store.js';
import type { StoredMessage } from '../../core/transcript.js';
import { recipientIn } from '../deliver/reply.js';
import { presentIn } from '../participants.js';
import { answer } from './answer.js';
import { decideWhoAnswers } from './arbiter.js';
import { takeCards } from './cards.js';
import { park, refuse } from './failure.js';
import { tellFileNotices, withSpokenWords } from './files.js';
import type { NextTurn } from './group-round.js';
import { resumeTurn } from './resume.js';
import type { RoomEnd, RoomRun } from './scheduler.js';
import { payerOf, type RoomServices, schedulerOf, type Turn } from './turn.js';

/** The result of a run, for the scheduler. */
type RunEnd = RoomEnd & { alarm?: Alarm; commands?: PendingCommand[] };

const FAULTS_BEFORE_PARKING = 3;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;

/** By crashes: how long a process must have lived before it resumes such a turn. A loop of ends at the start then hits no good turn. */
const SUSPECTS_REST_MS: Record<number, number> = { [SUSPECT]: 2_000, [SUSPECT + 1]: 8_000 };

const DONE: RunEnd = { kind: 'done' };
/** The room may hold more work: run it again at once. */
const AGAIN: RunEnd = { kind: 'again', afterMs: 0 };

export async function runRoom(services: RoomServices, run: RoomRun): Promise<RunEnd> {
  const { store, owner, clock, startedAt } = services;
  const seen = await store.readRoom(run.room, owner, clock.now());
  if (!seen) return DONE;
  const crashes = seen.unfinished?.crashes ?? 0;
  if (crashes < SUSPECT) return runSeen(services, run, seen);
  const restMs = startedAt + (SUSPECTS_REST_MS[crashes] ?? 0) - clock.now();
  if (restMs > 0) return { kind: 'again', afterMs: restMs };
  return services.suspects(async () => {
    const again = await store.readRoom(run.room, owner, clock.now());
    return again ? runSeen(services, run, again) : DONE;
  });
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
  if ('commands' in begun) return { ...AGAIN, commands: begun.commands };
  if (run.signal.aborted) {
    await store.hold(begun.claim, null);
    return AGAIN;
  }
  const { chat, turn } = begun;
  if (!mayTry(turn.crashes) || turn.attempts >= FAULTS_BEFORE_PARKING) {
    await park(services, begun);
    return AGAIN;
  }
  const isGiven = turn.anew?.how === 'edit' || turn.anew?.how === 'version';
  const limit = isGiven ? null : await dailyLimits.reached(payerOf(begun));
  if (limit) {
    await refuse(services, begun, limit);
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

/** Decides who answers which messages, and begins that turn. Messages for nobody are marked as heard in the same transaction. */
async function beginTurn(
  services: RoomServices,
  run: RoomRun,
  state: RoomState,
  channel: Channel,
): Promise<Turn | 'nothing to answer' | 'look again' | { commands: PendingCommand[] }> {
  const { store, clock, newId } = services;
  const hasFiles = state.waiting.some(({ attachments }) => attachments);
  const looked = hasFiles ? await takeCards(services, run, state, channel) : { seen: state };
  if ('commands' in looked) return looked;
  const heard = hasFiles
    ? await withSpokenWords(services, run, looked.seen, channel)
    : { ...looked, notices: [] };
  if (heard === null) return 'look again';
  const { seen, notices } = heard;
  const { room, chat, waiting, revision } = seen;
  const there = await services.personas.list(chat.id);
  const only = onlyPersonaIn(seen, there);
  const decided = only
    ? { next: onlyTurnOf(only, waiting), personas: there, meter: null }
    : await decideWhoAnswers(services, run, seen, there, channel);
  if (decided === null) return 'look again';

  const { meter, personas } = decided;
  const { noted, exchange, forBots } = decided.next;
  const turn = decided.next.turn && { id: newId(), ...decided.next.turn };
  const spent = meter?.spent(turn?.personaId ?? chat.activePersona);
  const hearers = presentIn(chat, personas);
  const lease = leaseOf(services);
  const heardNow = { seen: run.claim ?? seen, lease, turn, noted, hearers, exchange, forBots, spent };
  const claim = await store.hear(heardNow);
  await (claim ? meter?.paid() : meter?.settle());
  if (turn === null) {
    run.claim = null;
    services.recall.heard(room);
    return claim && !isMoreWaiting(seen, noted.length) ? 'nothing to answer' : 'look again';
  }
  if (claim === null) return 'look again';
  const { id } = turn;
  run.claim = claim;
  run.turnId = id;
  const mine = waiting.filter((message) => turn.batch.includes(message.id));
  // In a group round, a turn also answers earlier messages.
  const batch =
    mine.length === turn.batch.length
      ? mine.map((message) => ({ ...message, turnId: id }))
      : await store.messages({ turnId: id });
  // Only notices about this turn's messages: in a group, nobody is told about a failed voice note that was not for us.
  const ours = notices.filter(({ message }) => turn.batch.includes(message.id));
  if (ours.length > 0) await tellFileNotices(services, chat, room, ours);
  const fresh = { startedAt: clock.now(), attempts: 0, crashes: 0, steps: [], shown: [] };
  const scheduledBy = await schedulerOf(services, batch);
  const settled = turn.taken.length + noted.length;
  const begun = { id, personaId: turn.personaId, ...fresh };
  return {
    chat,
    room,
    revision,
    channel,
    claim,
    personas,
    turn: begun,
    batch,
    scheduledBy,
    settled,
    exchange,
  };
}

/** The only persona of a direct chat, if people have said something to it and nothing else waits. */
function onlyPersonaIn({ chat, waiting, exchange }: RoomState, personas: Persona[]): Persona | null {
  const [only, ...others] = personas;
  const isForIt = ({ author, quiet, late, reaction, addresses }: StoredMessage) =>
    author.kind === 'person' && !author.bot && !quiet && !late && !reaction && addresses === undefined;
  const isAlone = chat.kind === 'direct' && others.length === 0 && exchange === null;
  return only && isAlone && waiting.length > 0 && waiting.every(isForIt) ? only : null;
}

function onlyTurnOf({ id }: Persona, waiting: StoredMessage[]): NextTurn {
  const ids = waiting.map((message) => message.id);
  const turn = { personaId: id, batch: ids, taken: ids, addressed: [] };
  return { turn, noted: [], exchange: null, forBots: false };
}

/** After an internal error, the turn is tried three times, then parked. */
async function afterFault(services: RoomServices, { turn, claim }: Turn, error: unknown): Promise<RunEnd> {
  const fields = { err: error, room: claim.room, turn: turn.id };
  services.log.error(fields, 'a turn failed with an internal error; retrying');
  const attempts = await services.store.fail(claim, turn.id);
  if (attempts >= FAULTS_BEFORE_PARKING) return AGAIN;
  return { kind: 'again', afterMs: backoff(attempts, FIRST_RETRY_MS, LONGEST_RETRY_MS) };
}

/** Whether waiting messages are left for another turn. */
function isMoreWaiting({ waiting, more }: RoomState, settled: number): boolean {
  return more || waiting.length > settled;
}
