/**
 * What somebody may do in a chat: asked for their commands (step 1), and for the tool calls that their words lead to (step 5).
 * Then nothing is asked of the store or of the platform before a tool needs to know.
 */
import type { Permission } from '../core/access.js';
import type { ChatRecord } from '../core/chat-record.js';
import { once } from '../core/concurrency.js';
import { addressOf, type ChatId } from '../core/ids.js';
import { jobOfEvent } from '../core/jobs.js';
import type { Asker } from '../core/tool.js';
import type { GroupRound, StoredMessage } from '../core/transcript.js';
import { isOwner } from './access.js';
import type { BaseServices } from './services.js';

/** A person who gives a command or says something, and where. */
export interface Actor {
  chat: Pick<ChatRecord, 'id' | 'kind' | 'address'>;
  channel: string;
  sender: { id: ChatId; administrator: boolean };
}

export interface Rights {
  isOwner: boolean;
  /** Whether they may change things in the chat; asks the platform if necessary, which may not answer. */
  mayChange(): Promise<Permission>;
}

/** If the platform does not say by then who is an administrator, it is not known. */
const ASKING_MS = 5_000;

export async function rightsOf(services: BaseServices, actor: Actor): Promise<Rights> {
  const { chat, sender, channel } = actor;
  const approval = await services.store.approvalOf({ chatId: chat.id, senderId: sender.id });
  const owner = isOwner(services.rulesFor(channel), sender.id, approval);
  return { isOwner: owner, mayChange: async () => (owner ? 'yes' : administers(services, actor)) };
}

async function administers(
  { channels, clock, log }: BaseServices,
  { chat, sender, channel: name }: Actor,
): Promise<Permission> {
  if (sender.administrator) return 'yes';
  const channel = channels.get(name);
  if (!channel?.isAdministrator) return 'no';
  const late = new AbortController();
  try {
    const unknown = clock.sleep(ASKING_MS, late.signal).then((): Permission => 'unknown');
    const isOne = await Promise.race([channel.isAdministrator(chat.address, addressOf(sender.id)), unknown]);
    return typeof isOne === 'boolean' ? (isOne ? 'yes' : 'no') : isOne;
  } catch (error) {
    log.warn({ err: error, chat: chat.id }, 'the platform did not say who administers a group');
    return 'unknown';
  } finally {
    late.abort();
  }
}

/** Words, as far as their author matters. */
type Words = Pick<StoredMessage, 'author' | 'forwardedFrom' | 'platformMessageId'>;

/** Words of more people than this are nobody's order. */
const MOST_PEOPLE = 20;

/** Whose words a turn answers. Words of personas in a group round count as words of those who began it. */
export function askerOfTurn(
  services: BaseServices,
  chat: ChatRecord,
  batch: readonly StoredMessage[],
  round: GroupRound | null,
): Asker {
  const said = round?.said ?? [];
  // After a long wait there may be another round.
  const isOfRound = batch.every(({ id }) => said.some((each) => each.id === id));
  const earlier = said.filter(({ id, by }) => by === null && !batch.some((each) => each.id === id));
  if (!isOfRound || earlier.length === 0) return askerOf(services, chat, async () => batch);
  return askerOf(services, chat, async () => [
    ...batch,
    ...(await services.store.messages(earlier.map(({ id }) => id))),
  ]);
}

export function askerOf(
  services: BaseServices,
  chat: ChatRecord,
  words: () => Promise<readonly Words[]>,
): Asker {
  const people = once(async () => peopleIn(services, await words()));
  const rights = once(async () => {
    const senders = await people();
    if (senders.length > MOST_PEOPLE) return [];
    return Promise.all(senders.map((sender) => rightsOf(services, { chat, channel: chat.channel, sender })));
  });
  return {
    senders: async () => (await people()).map(({ id }) => id),
    isOwner: async () => {
      const all = await rights();
      return all.length > 0 && all.every(({ isOwner }) => isOwner);
    },
    mayChange: once(async () => (chat.kind === 'direct' ? 'yes' : weakest(await rights()))),
  };
}

/**
 * All people who said something. Nobody where something came from inside the gateway, or where all of it is only forwarded.
 * What a person scheduled counts as theirs, with the rights that they have then.
 */
async function peopleIn(
  { store }: BaseServices,
  said: readonly Words[],
): Promise<{ id: ChatId; administrator: boolean }[]> {
  const people = new Map<ChatId, { id: ChatId; administrator: boolean }>();
  let hasOwnWords = false;
  for (const { author, forwardedFrom, platformMessageId } of said) {
    if (author.kind === 'gateway') {
      const jobId = jobOfEvent(platformMessageId);
      const job = jobId === null ? null : await store.job(jobId);
      // A persona's own idea, and one that words from outside may have led to, is nobody's.
      if (job === null || job.followUp || job.tainted || job.senderId === '') return [];
      const { senderId: id } = job;
      people.set(id, people.get(id) ?? { id, administrator: false });
      hasOwnWords = true;
    }
    if (author.kind !== 'person') continue;
    const { id, administrator } = author;
    people.set(id, { id, administrator: administrator || people.get(id)?.administrator === true });
    hasOwnWords ||= forwardedFrom === undefined;
  }
  return hasOwnWords ? [...people.values()] : [];
}

/** Asks one after the other, up to the first who may not, to ask the platform as little as possible. */
async function weakest(all: Rights[]): Promise<Permission> {
  for (const { mayChange } of all) {
    const permission = await mayChange();
    if (permission !== 'yes') return permission;
  }
  return all.length === 0 ? 'no' : 'yes';
}
