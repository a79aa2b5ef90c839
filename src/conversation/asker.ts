/** The people whose words a turn answers, and the rights that they give its calls. */
import type { Permission } from '../core/access.js';
import type { Asker } from '../core/authorisation.js';
import type { ChatRecord } from '../core/chat-record.js';
import { once } from '../core/concurrency.js';
import type { ChatId } from '../core/ids.js';
import { jobOfEvent } from '../core/jobs.js';
import type { GroupRound, StoredMessage } from '../core/transcript.js';
import { type Rights, rightsOf } from './rights.js';
import type { BaseServices } from './services.js';

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
      const id = jobOfEvent(platformMessageId);
      const [job] = id === null ? [] : await store.jobs({ id });
      // A job is nobody's if it is a persona's own idea or may come from untrusted text.
      if (job === undefined || job.followUp || job.tainted || job.senderId === '') return [];
      const { senderId } = job;
      people.set(senderId, people.get(senderId) ?? { id: senderId, administrator: false });
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
