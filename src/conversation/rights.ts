/** A person's rights in a chat, for commands and the tool calls that their words lead to; whose words these are; where owners are. */
import type { Permission } from '../core/access.js';
import type { Asker } from '../core/authorisation.js';
import type { ChatRecord, PlatformChat } from '../core/chat-record.js';
import { once } from '../core/concurrency.js';
import { addressOf, type ChatId, platformId } from '../core/ids.js';
import { type JobAccess, jobOfEvent } from '../core/jobs.js';
import type { GroupRound, StoredMessage } from '../core/transcript.js';
import { decideAccess, isOwner } from './access.js';
import type { BaseServices } from './services.js';

/** A person who gives a command or says something, and where. */
export interface Actor {
  chat: PlatformChat;
  channel: string;
  sender: { id: ChatId; administrator: boolean };
}

export interface Rights {
  isOwner: boolean;
  /** Whether they may change things in the chat; may ask the platform, which may not answer. */
  mayChange(): Promise<Permission>;
}

/** Time-out for the platform's answer about administrators; after it, the answer is unknown. */
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

/** Whether the group exists or would be admitted. */
export async function isKnownChat(services: BaseServices, channel: string, chatId: ChatId): Promise<boolean> {
  if (await services.store.chat(chatId)) return true;
  return admits(services, channel, { kind: 'group', chatIds: [chatId], senderId: chatId }, chatId);
}

type AccessServices = Pick<BaseServices, 'store' | 'rulesFor'>;

/** Whether the creator of a job still has access where it was created, judged by ids alone. */
export function createJobAccess(services: AccessServices): JobAccess {
  return {
    async admits({ chatId, senderId }) {
      const chat = await services.store.chat(chatId);
      if (chat === null) return false;
      const chatIds = [chatId, platformId(chat.channel, chat.address)];
      const asked = { kind: chat.kind, chatIds, senderId: senderId || chatId };
      return admits(services, chat.channel, asked, chatId);
    },
  };
}

async function admits(
  { store, rulesFor }: AccessServices,
  channel: string,
  asked: Parameters<typeof decideAccess>[1],
  chatId: ChatId,
): Promise<boolean> {
  const approval = await store.approvalOf({ chatId, senderId: asked.senderId });
  return decideAccess(rulesFor(channel), asked, approval) === 'enter';
}

/** Where owners are notified: the control chats, or their own chats if there are none. */
export async function ownerChats({ store, channels, rulesFor }: BaseServices): Promise<ChatRecord[]> {
  const rules = [...channels.keys()].map(rulesFor);
  const isHere = (chat: ChatRecord) => channels.has(chat.channel);
  const control = new Set(rules.flatMap(({ controlChats }) => controlChats));
  const found = await Promise.all([...control].map((id) => store.chat(id)));
  const there = found.flatMap((chat) => chat ?? []).filter(isHere);
  if (there.length > 0) return there;
  return (await store.ownerChats([...new Set(rules.flatMap(({ owners }) => owners))])).filter(isHere);
}

type Words = Pick<StoredMessage, 'author' | 'forwardedFrom' | 'platformMessageId'>;

/** Beyond this many people, the words count as nobody's. */
const MOST_PEOPLE = 20;

/** The people whose words a turn answers. In a group round, personas' words count as those of the people who began it. */
export function askerOfTurn(
  services: BaseServices,
  chat: ChatRecord,
  batch: readonly StoredMessage[],
  round: GroupRound | null,
): Asker {
  const said = round?.said ?? [];
  // After a long wait, the room may be in another round.
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

/** Empty if any of it came from inside the gateway, or all is forwarded. A job counts as its creator's words, with their current rights. */
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
      // A job is nobody's if it is a persona's own idea or may come from untrusted text.
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

/** Checks one after the other and stops at the first refusal, to ask the platform as little as possible. */
async function weakest(all: Rights[]): Promise<Permission> {
  for (const { mayChange } of all) {
    const permission = await mayChange();
    if (permission !== 'yes') return permission;
  }
  return all.length === 0 ? 'no' : 'yes';
}
