/**
 * Steps 2 to 6 of the route for one room, from top to bottom: what waits is looked at, whom it is for is decided, a turn
 * begins or goes on, answers and finishes. Nothing is claimed before something is to be done. Each run does one turn; what
 * is left then is the next run's.
 */
import type { Channel } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { Persona } from '../../core/persona.js';
import type { Alarm, Claim, RoomState } from '../../core/store.js';
import type { StoredMessage } from '../../core/transcript.js';
import { hearVoices, mayAddress } from '../context/files.js';
import { recipientIn } from '../deliver/reply.js';
import { postNotices } from '../deliver/say.js';
import { presentIn } from '../participants.js';
import { leaseOf } from '../services.js';
import { type Admission, admit } from './admit.js';
import { answer, park } from './answer.js';
import type { RoomServices, Turn } from './room-services.js';
import type { RoomEnd, RoomRun } from './scheduler.js';
import { speakersOf } from './speakers.js';

/** What a run came to, for whoever plans the next one. */
export type RunEnd = RoomEnd & { alarm?: Alarm };

const FAULTS_BEFORE_PARKING = 3;
const CRASHES_OF_A_SUSPECT = 3;
const CRASHES_BEFORE_PARKING = 5;
const FIRST_RETRY_MS = 1_000;

const DONE: RunEnd = { kind: 'done' };
/** Something may be left in the room: look again at once. */
const AGAIN: RunEnd = { kind: 'again', afterMs: 0 };

export async function runRoom(services: RoomServices, run: RoomRun): Promise<RunEnd> {
  const { store, clock, channels } = services;
  const seen = await store.look(run.room, services.owner, clock.now());
  const channel = seen && channels.get(seen.chat.channel);
  if (!seen || !channel) return DONE;
  if (seen.unfinished && isSuspect(seen.unfinished) && !run.isSuspect) return { kind: 'suspect' };

  const begun = seen.unfinished
    ? await goOn(services, run, seen, channel)
    : await beginNext(services, run, seen, channel);
  if (begun === 'nothing to answer') return seen.more ? AGAIN : DONE;
  if (begun === 'overtaken') return AGAIN;
  if (run.signal.aborted) return leave(services, begun.claim);

  const { turn } = begun;
  if (turn.crashes >= CRASHES_BEFORE_PARKING || turn.attempts >= FAULTS_BEFORE_PARKING) {
    await park(services, begun);
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
    // What comes meanwhile wakes the room by itself; here is looked after what was there before.
    const isMoreLeft = seen.unfinished !== null || end.isSomebodyNext || waitsBehind(seen, begun);
    return isMoreLeft ? AGAIN : DONE;
  } catch (error) {
    if (run.signal.aborted) throw error;
    return await afterFault(services, begun, error);
  } finally {
    stopTyping();
  }
}

/** A turn that an end of the process left unfinished, or that what it waited for has brought back. */
async function goOn(
  services: RoomServices,
  run: RoomRun,
  seen: RoomState,
  channel: Channel,
): Promise<Turn | 'overtaken'> {
  const claimed = await services.store.claim(seen, leaseOf(services));
  if (!claimed?.turn) return 'overtaken';
  const { claim, turn, batch } = claimed;
  run.claim = claim;
  run.turnId = turn.id;
  const personas = await services.personas.list(seen.chat.id);
  const { chat, exchange, revision } = seen;
  return { chat, room: run.room, revision, channel, claim, personas, turn, batch, noted: 0, exchange };
}

/** Decides who speaks to what, and begins that turn. What is for nobody is noted in the same transaction. */
async function beginNext(
  services: RoomServices,
  run: RoomRun,
  state: RoomState,
  channel: Channel,
): Promise<Turn | 'nothing to answer' | 'overtaken'> {
  const { store, clock, newId } = services;
  const heard = await withSpokenWords(services, run, state, channel);
  if (heard === null) return 'overtaken';
  const { seen, notices } = heard;
  const { chat } = seen;
  const personas = await personasIn(services, seen);
  const admission = admit(seen.waiting, personas, {
    ...chat,
    requireMention: services.rulesFor(chat.channel).requireMention,
    tiredOfBots: seen.turnsForBots >= services.settings.caps.replies,
  });
  const decided = await decideWhoAnswers(services, run, { seen, admission, personas });
  if (decided === null) return 'overtaken';

  const { turn, noted, exchange, forBots } = speakersOf(seen, decided.admission, personas);
  const spent = decided.usage && { personaId: turn?.personaId ?? chat.activePersona, usage: decided.usage };
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
    const isNoted = await store.note(begin);
    run.claim = null;
    services.recall.heard(run.room);
    return isNoted ? 'nothing to answer' : 'overtaken';
  }
  const id = newId();
  const claim = await store.begin({ ...begin, turn: { id, ...turn } });
  if (claim === null) return 'overtaken';
  run.claim = claim;
  run.turnId = id;
  const batch = await batchOf(services, id, turn.batch, seen.waiting);
  // Whoever spoke to others in a group is not told that we could not listen.
  await postNotices(
    services,
    { chat, room: run.room },
    notices.filter(({ message }) => turn.batch.includes(message.id)),
  );
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
    noted: noted.length,
    exchange,
  };
}

/** What a turn answers: what waited, and where personas talk among themselves, what was said before. */
async function batchOf(
  { store }: RoomServices,
  turnId: string,
  ids: number[],
  waiting: StoredMessage[],
): Promise<StoredMessage[]> {
  const batch = waiting.filter(({ id }) => ids.includes(id)).map((message) => ({ ...message, turnId }));
  return batch.length === ids.length ? batch : store.turnMessages(turnId);
}

interface Heard {
  /** As it stands when voice notes were listened to. */
  seen: RoomState;
  /** What is to be told of those that could not be listened to. */
  notices: { message: StoredMessage; text: string }[];
}

/** A voice note may name whom it is for: so it is heard before anybody decides that. null when it was aborted. */
async function withSpokenWords(
  services: RoomServices,
  run: RoomRun,
  seen: RoomState,
  channel: Channel,
): Promise<Heard | null> {
  const { chat, waiting } = seen;
  if (!waiting.some((message) => mayAddress(services.media, message))) return { seen, notices: [] };
  const held = await hold(services, run, seen);
  if (held === null) return null;
  // Whoever speaks to the bot sees that it listens; in a group it is not known yet whether anybody will answer.
  const stopTyping =
    chat.kind === 'direct'
      ? services.deliver.typing(channel, chat.id, recipientIn(chat, run.room), chat.activePersona)
      : () => {};
  const ask = { claim: held, channel, signal: run.signal, messages: waiting, chatId: chat.id };
  const read = await hearVoices(services, ask).finally(stopTyping);
  if (read === null) return null;
  return { seen: { ...seen, fence: held.fence, waiting: read.messages }, notices: read.notices };
}

/** The chat's personas; one whose own account somebody has written to comes to be there. */
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
      // Somebody else answers where a folder cannot be written.
      personas.meet(chat.id, each).catch((error) => {
        log.warn({ chat: chat.id, persona: each, reason: describe(error) }, 'a persona could not be made');
        return false;
      }),
    ),
  );
  return made.includes(true) ? personas.list(chat.id) : there;
}

/** Where nobody was named and several could answer, a model is asked, if the configuration says so. */
async function decideWhoAnswers(
  services: RoomServices,
  run: RoomRun,
  { seen, admission, personas }: { seen: RoomState; admission: Admission; personas: Persona[] },
) {
  const { turn } = admission;
  const { arbiter } = services;
  const held = run.claim ?? seen;
  if (arbiter === null || turn === null || turn.open === null) return { held, admission, usage: null };
  const claim = await hold(services, run, held);
  if (claim === null) return null;
  const last = await services.store.lastReply(run.room);
  const present = presentIn(seen.chat, personas).flatMap((id) => personas.filter((each) => each.id === id));
  const { personaId, usage } = await arbiter.choose({
    room: run.room,
    present,
    batch: turn.batch,
    last: last?.personaId ?? null,
    sure: turn.open === 'sure',
    signal: run.signal,
  });
  if (run.signal.aborted) return null;
  if (personaId !== null) {
    return { held: claim, admission: { ...admission, turn: { ...turn, personaId } }, usage };
  }
  const noted = [...admission.noted, ...turn.batch].sort((a, b) => a.id - b.id);
  return { held: claim, admission: { turn: null, noted }, usage };
}

/** Takes the room for what lasts long before a turn begins. */
async function hold(
  services: RoomServices,
  run: RoomRun,
  seen: { room: string; fence: number },
): Promise<Claim | null> {
  if (run.claim) return run.claim;
  const claimed = await services.store.claim(seen, leaseOf(services));
  run.claim = claimed?.claim ?? null;
  return run.claim;
}

async function leave({ store }: RoomServices, claim: Claim): Promise<RunEnd> {
  await store.release(claim);
  return AGAIN;
}

/** A fault of our own: tried three times, then parked. */
async function afterFault(
  { store, log }: RoomServices,
  { turn, claim }: Turn,
  error: unknown,
): Promise<RunEnd> {
  log.error(
    { err: error, room: claim.room, turn: turn.id },
    'a turn failed by a fault of our own; it is tried again',
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

/** Of what waited, something is for another turn. */
function waitsBehind({ waiting, more }: RoomState, { batch, noted }: Turn): boolean {
  return more || waiting.length > batch.length + noted;
}
