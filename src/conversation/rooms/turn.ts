/** The turn that a run of a room works on (steps 3 to 6 of the route), and whose it is. */
import type { Channel } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import type { Mutex } from '../../core/concurrency.js';
import type { ChatId, RoomId } from '../../core/ids.js';
import { jobOfEvent } from '../../core/jobs.js';
import type { Persona } from '../../core/persona.js';
import type { Claim, StoredTurn } from '../../core/store.js';
import type { GroupRound, StoredMessage } from '../../core/transcript.js';
import type { LastRequests } from '../context/knowledge.js';
import type { Payer, Services } from '../services.js';

export interface RoomServices extends Services {
  lastRequests: LastRequests;
  /** Turns that may have ended the process run one after the other. */
  suspects: Mutex;
  /** Of this process, epoch ms. */
  startedAt: number;
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
    const [job] = id === null ? [] : await store.jobs({ id });
    if (job !== undefined && job.senderId !== '') return job.senderId;
  }
  return null;
}
