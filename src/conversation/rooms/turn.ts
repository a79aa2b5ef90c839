/** The turn that a run of a room works on (steps 3 to 6 of the route), and facts about the messages it answers. */
import type { Channel } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import type { Mutex } from '../../core/concurrency.js';
import { type ChatId, type RoomId, roomParts } from '../../core/ids.js';
import { jobOfEvent } from '../../core/jobs.js';
import type { Persona } from '../../core/persona.js';
import type { Claim, RoomState, StoredTurn } from '../../core/store.js';
import type { GroupRound, StoredMessage } from '../../core/transcript.js';
import { type FilesRead, hearVoices, mayAddress, readFiles } from '../context/files.js';
import type { WindowCache } from '../context/window.js';
import { recipientIn } from '../deliver/reply.js';
import { leaseOf, type Payer, type Services } from '../services.js';
import type { RoomRun } from './scheduler.js';

export interface RoomServices extends Services {
  windowCache: WindowCache;
  /** Turns that may have ended the process run one after the other. */
  suspects: Mutex;
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
  /** The person charged if the batch has only schedules: whoever set them. null: nobody. */
  scheduledBy: ChatId | null;
  /** Number of waiting messages it took or marked as heard; a group round also answers earlier ones. */
  settled: number;
  /** The group round that continues after this turn; null for none. */
  exchange: GroupRound | null;
}

/** The sender of the last message by a person; empty if the batch has only events from the gateway. */
export function senderOf(batch: readonly StoredMessage[]): ChatId {
  const last = batch.findLast(({ author }) => author.kind === 'person')?.author;
  return last?.kind === 'person' ? last.id : '';
}

/** The person whose words are answered, also between personas; for scheduled work, the person who set the schedule. */
export function payerOf({ room, turn, batch, exchange, scheduledBy }: Turn): Payer {
  const personId = senderOf(batch) || (exchange?.personId ?? scheduledBy);
  return { room, personaId: turn.personaId, personId };
}

/** The person who set the newest schedule among these messages, even if untrusted text may have led to it. */
export async function schedulerOf(
  { store }: Services,
  batch: readonly StoredMessage[],
): Promise<ChatId | null> {
  for (const { author, platformMessageId } of batch.toReversed()) {
    const id = author.kind === 'gateway' ? jobOfEvent(platformMessageId) : null;
    const job = id === null ? null : await store.job(id);
    if (job !== null && job.senderId !== '') return job.senderId;
  }
  return null;
}

/** The payer before it is known which persona answers. */
export function payerIn({ room, chat }: RoomState, messages: StoredMessage[]): Payer {
  return { room, personaId: chat.activePersona, personId: senderOf(messages) || null, undecided: true };
}

/** Claims the room before slow work, so that no other process does it too. null if the room has changed or is taken. */
export async function claimRoom(
  services: Services,
  run: RoomRun,
  seen: { room: string; fence: number },
): Promise<Claim | null> {
  run.claim ??= (await services.store.claim(seen, leaseOf(services)))?.claim ?? null;
  return run.claim;
}

/** Adds the contents of the batch's files. null if the turn was aborted or the claim was lost. */
export async function withFiles(
  services: Services,
  turn: Turn,
  signal: AbortSignal,
): Promise<StoredMessage[] | null> {
  const { chat, room, channel, claim, batch } = turn;
  const read = await readFiles(services, { claim, channel, signal, chatId: chat.id, messages: batch });
  if (read === null) return null;
  await tellFileNotices(services, chat, room, read.notices);
  return read.messages;
}

/** Tells senders about files that were not accepted, independently of the model. */
export async function tellFileNotices(
  { deliver }: Services,
  chat: ChatRecord,
  room: RoomId,
  notices: FilesRead['notices'],
): Promise<void> {
  const to = { chat, threadId: roomParts(room).threadId };
  for (const { message, text } of notices) {
    await deliver.say(to, `notice:${message.id}`, text, message.platformMessageId);
  }
}

/**
 * Transcribes voice notes before the addressees are decided, because a note may name them. Returns the room's new state, and
 * notices about notes that could not be transcribed; null if aborted.
 */
export async function withSpokenWords(
  services: Services,
  run: RoomRun,
  seen: RoomState,
  channel: Channel,
): Promise<{ seen: RoomState; notices: FilesRead['notices'] } | null> {
  const { chat, waiting } = seen;
  const nothing = { seen, notices: [] };
  if (!waiting.some((message) => mayAddress(services.media, message))) return nothing;
  // Over the limit, nobody would be answered.
  if (await services.dailyLimits.reached(payerIn(seen, waiting))) return nothing;
  const claim = await claimRoom(services, run, seen);
  if (claim === null) return null;
  // In a direct chat, typing shows that the bot listens; in a group it is not yet known whether anybody will answer.
  const isDirect = chat.kind === 'direct';
  const to = recipientIn(chat, run.room);
  const stopTyping = isDirect ? services.deliver.typing(channel, chat.id, to, chat.activePersona) : () => {};
  const request = { claim, channel, signal: run.signal, messages: waiting, chatId: chat.id };
  const read = await hearVoices(services, request).finally(stopTyping);
  return read && { seen: { ...seen, fence: claim.fence, waiting: read.messages }, notices: read.notices };
}
