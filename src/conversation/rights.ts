/** What somebody may do in a chat: asked for their commands (step 1), and for what their words lead to (step 5). */
import type { Permission } from '../core/access.js';
import type { ChatRecord } from '../core/chat-record.js';
import { once } from '../core/concurrency.js';
import { addressOf, type ChatId } from '../core/ids.js';
import { jobOfEvent } from '../core/jobs.js';
import type { Asker } from '../core/tool.js';
import type { GroupRound, StoredMessage } from '../core/transcript.js';
import { isOwner } from './access.js';
import type { BaseServices } from './services.js';

/** Whoever gives a command or says something, and where. */
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

export async function rightsOf(services: BaseServices, giver: Actor): Promise<Rights> {
  const { chat, sender, channel } = giver;
  const standing = await services.store.approvalOf({ chatId: chat.id, senderId: sender.id });
  const owner = isOwner(services.rulesFor(channel), sender.id, standing);
  return { isOwner: owner, mayChange: async () => (owner ? 'yes' : administers(services, giver)) };
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
    const asked = channel
      .isAdministrator(chat.address, addressOf(sender.id))
      .then((isOne): Permission => (isOne ? 'yes' : 'no'));
    return await Promise.race([asked, clock.sleep(ASKING_MS, late.signal).then((): Permission => 'unknown')]);
  } catch (error) {
    log.warn({ err: error, chat: chat.id }, 'the platform did not say who administers a group');
    return 'unknown';
  } finally {
    late.abort();
  }
}

// Whose words led to a turn or a flush, for the authorisation of its tool calls: nothing is asked of the store or of the
// platform before a tool needs to know, and then once.

type Said = Pick<StoredMessage, 'author' | 'forwardedFrom' | 'platformMessageId'>;
type Person = { id: ChatId; administrator: boolean };

/** Of more people than these nobody is asked: what so many said together is no one's order. */
const MOST_PEOPLE = 20;

/** Of what a turn answers. What personas said in an exchange counts as words of those who set it off. */
export function askerOfTurn(
  services: BaseServices,
  chat: ChatRecord,
  turn: { batch: readonly StoredMessage[]; exchange: GroupRound | null },
): Asker {
  const { batch, exchange } = turn;
  const said = exchange?.said ?? [];
  // A turn that waited long may find another exchange in its place.
  const isOfIt = batch.every(({ id }) => said.some((each) => each.id === id));
  const earlier = said.filter(({ id, by }) => by === null && !batch.some((each) => each.id === id));
  if (!isOfIt || earlier.length === 0) return askerOf(services, chat, async () => batch);
  return askerOf(services, chat, async () => [
    ...batch,
    ...(await services.store.messages(earlier.map(({ id }) => id))),
  ]);
}

export function askerOf(
  services: BaseServices,
  chat: ChatRecord,
  words: () => Promise<readonly Said[]>,
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
 * Everybody who said something; nobody where something came from inside the gateway, or where all of it is only forwarded:
 * such words are nobody's here. What a person asked to be told at a time is theirs, with the rights that they have then.
 */
async function peopleIn({ store }: BaseServices, said: readonly Said[]): Promise<Person[]> {
  const people = new Map<ChatId, Person>();
  let hasOwnWords = false;
  for (const { author, forwardedFrom, platformMessageId } of said) {
    if (author.kind === 'gateway') {
      const id = await whoScheduled(store, platformMessageId);
      if (id === null) return [];
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

/** null: nobody, or nobody alone. A persona's own idea, and one that words from outside may have led to, is nobody's. */
async function whoScheduled(
  store: BaseServices['store'],
  platformMessageId: string | null,
): Promise<ChatId | null> {
  const id = jobOfEvent(platformMessageId);
  const job = id === null ? null : await store.job(id);
  return job === null || job.followUp || job.tainted || job.senderId === '' ? null : job.senderId;
}

/** One after the other, up to the first who may not: a platform is asked no more than it must be. */
async function weakest(all: Rights[]): Promise<Permission> {
  for (const { mayChange } of all) {
    const permission = await mayChange();
    if (permission !== 'yes') return permission;
  }
  return all.length === 0 ? 'no' : 'yes';
}
