/** What a run of a room may use beyond the services of every step, and the turn that it works on (steps 3 to 6). */
import type { Channel } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import { type ChatId, type RoomId, roomParts } from '../../core/ids.js';
import { jobOfEvent } from '../../core/jobs.js';
import { eventIdOf } from '../../core/journal.js';
import type { Persona } from '../../core/persona.js';
import type { Claim, RoomState, StoredTurn } from '../../core/store.js';
import type { Authorisation } from '../../core/tool.js';
import type { GroupRound, StoredMessage } from '../../core/transcript.js';
import { hearVoices, mayAddress, readFiles } from '../context/files.js';
import type { WindowCache } from '../context/window.js';
import { recipientIn } from '../deliver/reply.js';
import { askerOfTurn } from '../rights.js';
import { leaseOf, type Payer, type Services } from '../services.js';
import type { RoomRun } from './scheduler.js';

export interface RoomServices extends Services {
  windowCache: WindowCache;
}

/** A turn that was begun or resumed. */
export interface Turn {
  chat: ChatRecord;
  room: RoomId;
  channel: Channel;
  /** The room's revision when the turn began; decides whether a cached window is still valid. */
  revision: number;
  claim: Claim;
  /** The chat's personas, as read when the turn was begun or resumed. */
  personas: Persona[];
  turn: StoredTurn;
  /** The messages it answers, oldest first. */
  batch: StoredMessage[];
  /** Who set the schedules that it answers, if nobody has said anything: what it uses is laid to them. null: nobody. */
  scheduledBy: ChatId | null;
  /** How many waiting messages it took or noted; an exchange also answers earlier ones. */
  settled: number;
  /** The exchange between personas that continues after this turn; null for none. */
  exchange: GroupRound | null;
}

// Beside steps 3 to 6 of the route: what the messages that a turn answers say about it.

const HOUR_MS = 3_600_000;

/** The sender of the last message by a person; empty when the batch has only events from the gateway. */
export function senderOf(batch: StoredMessage[]): ChatId {
  const last = batch.findLast(({ author }) => author.kind === 'person')?.author;
  return last?.kind === 'person' ? last.id : '';
}

/** The event in the journal that led to a turn: of the newest message that no persona wrote. */
export function causeOf(batch: StoredMessage[]): string | null {
  const newest = batch.findLast(({ author }) => author.kind !== 'persona');
  return newest === undefined ? null : eventIdOf(newest.id);
}

/**
 * For whom the model is asked: what personas say to each other is laid to the person whose words they answer, and what a
 * schedule has them do to whoever set it.
 */
export function payerOf({ room, turn, batch, exchange, scheduledBy }: Turn): Payer {
  const personId = senderOf(batch) || (exchange?.personId ?? scheduledBy);
  return { room, personaId: turn.personaId, personId };
}

/** Who set the newest schedule among these messages; also one that words from outside may have led to: it costs the same. */
export async function schedulerOf(
  { store }: RoomServices,
  batch: readonly StoredMessage[],
): Promise<ChatId | null> {
  for (const { author, platformMessageId } of batch.toReversed()) {
    const id = author.kind === 'gateway' ? jobOfEvent(platformMessageId) : null;
    const job = id === null ? null : await store.job(id);
    if (job !== null && job.senderId !== '') return job.senderId;
  }
  return null;
}

/** For whom it is asked who answers these messages. */
export function payerIn({ room, chat }: RoomState, messages: StoredMessage[]): Payer {
  return { room, personaId: chat.activePersona, personId: senderOf(messages) || null, undecided: true };
}

/** null when the oldest of them has not waited longer than that. */
export function hoursLate(batch: StoredMessage[], startedAt: number, maxAgeMs: number): number | null {
  const waited = startedAt - Math.min(...batch.map((message) => message.receivedAt));
  return waited > maxAgeMs ? Math.floor(waited / HOUR_MS) : null;
}

/** What the tool calls of a turn are allowed. */
export function authorisationOf(
  services: RoomServices,
  { chat, turn, batch, exchange }: Turn,
): Authorisation {
  return {
    chatId: chat.id,
    personaId: turn.personaId,
    senderId: senderOf(batch),
    channel: chat.channel,
    controlChats: services.rulesFor(chat.channel).controlChats,
    asker: askerOfTurn(services, chat, { batch, exchange }),
  };
}

// Step 3 of the route: a room is claimed when there is slow work before a turn, so that nobody else does the same.

/** null when another process was faster, or something else came in. */
export async function claimRoom(
  services: RoomServices,
  run: RoomRun,
  seen: { room: string; fence: number },
): Promise<Claim | null> {
  if (run.claim) return run.claim;
  const claimed = await services.store.claim(seen, leaseOf(services));
  run.claim = claimed?.claim ?? null;
  return run.claim;
}

// Steps 3 and 4 of the route: the files that came with what may be answered, with what a turn answers, and beside that.

/** Adds what the batch's files contain. null when the turn was aborted meanwhile or the claim was lost. */
export async function withFiles(
  services: RoomServices,
  work: Turn,
  signal: AbortSignal,
): Promise<Turn | null> {
  const { chat, room, channel, claim, batch } = work;
  const read = await readFiles(services, { claim, channel, signal, chatId: chat.id, messages: batch });
  if (read === null) return null;
  await tellFileNotices(services, { chat, room }, read.notices);
  return { ...work, batch: read.messages };
}

/**
 * Reads files of messages that were only overheard. Nobody is told of those that could not be had: they were not sent to
 * us. Returns the turn at the room's next revisions, because these messages read otherwise now; null as above.
 */
export async function withFilesOf(
  services: RoomServices,
  work: Turn,
  messages: StoredMessage[],
  signal: AbortSignal,
): Promise<Turn | null> {
  const { chat, channel, claim } = work;
  const read = await readFiles(services, { claim, channel, signal, chatId: chat.id, messages });
  return read && { ...work, revision: work.revision + messages.length };
}

/** Tells senders about files that were not taken, independently of the model. */
export async function tellFileNotices(
  { deliver }: RoomServices,
  { chat, room }: { chat: ChatRecord; room: RoomId },
  notices: { message: StoredMessage; text: string }[],
): Promise<void> {
  const to = { chat, threadId: roomParts(room).threadId };
  for (const { message, text } of notices) {
    await deliver.say(to, `notice:${message.id}`, text, message.platformMessageId);
  }
}

interface Heard {
  /** The room's state after voice notes were transcribed. */
  seen: RoomState;
  /** Notices about voice notes that could not be transcribed. */
  notices: { message: StoredMessage; text: string }[];
}

/** A voice note may name its addressee, so it is transcribed before that is decided. null when aborted. */
export async function withSpokenWords(
  services: RoomServices,
  run: RoomRun,
  seen: RoomState,
  channel: Channel,
): Promise<Heard | null> {
  const { chat, waiting } = seen;
  if (!waiting.some((message) => mayAddress(services.media, message))) return { seen, notices: [] };
  // Nobody would be answered.
  if (await services.dailyLimits.reached(payerIn(seen, waiting))) return { seen, notices: [] };
  const held = await claimRoom(services, run, seen);
  if (held === null) return null;
  // In a direct chat the typing indicator shows that the bot is listening; in a group it is not yet known whether
  // anybody will answer.
  const stopTyping =
    chat.kind === 'direct'
      ? services.deliver.typing(channel, chat.id, recipientIn(chat, run.room), chat.activePersona)
      : () => {};
  const ask = { claim: held, channel, signal: run.signal, messages: waiting, chatId: chat.id };
  const read = await hearVoices(services, ask).finally(stopTyping);
  if (read === null) return null;
  return { seen: { ...seen, fence: held.fence, waiting: read.messages }, notices: read.notices };
}
