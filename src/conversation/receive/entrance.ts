/**
 * Within step 1 of the route: identifies chat and sender and decides whether they may enter. For those who may not,
 * only what an operator needs to admit them is stored.
 */
import type { Announcement } from '../../core/access.js';
import type { ChatRecord } from '../../core/chat-record.js';
import type { Post } from '../../core/delivery.js';
import { type ChatId, channelOf, platformId } from '../../core/ids.js';
import type { InboundChat, InboundMessage, InboundSender } from '../../core/message.js';
import { decideEntry, type Entry } from '../access.js';
import { NAME_CHARS, pairing } from '../commands/pairing.js';
import { oneLine, code as quoted } from '../commands/quoting.js';
import { withButtons, withNumbers } from '../deliver/choices.js';
import { identifyChat, identifyPerson, linkChat } from '../identity.js';
import { chatsOfOwners } from '../owner-chats.js';
import type { Services } from '../services.js';

export interface Visitor {
  entry: Entry;
  chatId: ChatId;
  senderId: ChatId;
}

const HOUR_MS = 3_600_000;
const CODES_PER_CHANNEL = 3;

export async function askAtTheDoor(
  services: Services,
  channel: string,
  who: { chat: InboundChat; sender: InboundSender },
): Promise<Visitor> {
  const chat = await identifyChat(services, channel, who.chat);
  const sender = await identifyPerson(services, channel, who.sender);
  const entry = await entryOf(services, channel, who, { chatId: chat.id, senderId: sender.id });
  if (entry === 'enter') {
    if (chat.further !== null) await linkChat(services, chat.id, chat.further);
    // A person has no folder of their own before they have a chat.
    if (sender.further !== null && sender.id !== chat.id) {
      await services.store.addAlias(sender.further, sender.id);
    }
  }
  return { entry, chatId: chat.id, senderId: sender.id };
}

async function entryOf(
  { store, rulesFor }: Services,
  channel: string,
  { chat, sender }: { chat: InboundChat; sender: InboundSender },
  { chatId, senderId }: { chatId: ChatId; senderId: ChatId },
): Promise<Entry> {
  if (sender.self && isWithThemselves({ chat, sender })) return 'enter';
  // What the account's owner writes in a direct chat is admitted if the other person is.
  const asWho = sender.self && chat.kind === 'direct' ? chatId : senderId;
  const standing = await store.standing({ chatId, senderId: asWho });
  const chatIds = [chatId, platformId(channel, chat.address)];
  if (chat.otherAddress !== undefined) chatIds.push(platformId(channel, chat.otherAddress));
  if (chat.within !== undefined) {
    const whole = platformId(channel, chat.within);
    chatIds.push(whole);
    standing.chat ||= (await store.standing({ chatId: whole, senderId: asWho })).chat;
  }
  return decideEntry(rulesFor(channel), { kind: chat.kind, chatIds, senderId: asWho }, standing);
}

/** The account's owner, in the chat with themselves. */
export function isWithThemselves({ chat, sender }: { chat: InboundChat; sender: InboundSender }): boolean {
  const theirs = [sender.address, sender.otherAddress];
  return (
    chat.kind === 'direct' && [chat.address, chat.otherAddress].some((one) => one && theirs.includes(one))
  );
}

/** Whether the chat exists already or may enter. */
export async function isKnownChat(services: Services, channel: string, chatId: ChatId): Promise<boolean> {
  if (await services.store.chat(chatId)) return true;
  const standing = await services.store.standing({ chatId, senderId: chatId });
  const group = { kind: 'group' as const, chatIds: [chatId], senderId: chatId };
  return decideEntry(services.rulesFor(channel), group, standing) === 'enter';
}

/**
 * Gives an unknown sender a pairing code for the operator, and asks the owners whether to let them in. Returns the chats
 * to which something was posted.
 */
export async function offerPairing(
  services: Services,
  channel: string,
  message: InboundMessage,
  { chatId, senderId, now }: { chatId: ChatId; senderId: ChatId; now: number },
): Promise<ChatId[]> {
  const code = services.newPairingCode();
  const text =
    `I do not know you yet. Please give this code to whoever runs me: ${code}\n\n` +
    'It is good for one hour. What you wrote until then is not kept, so please write again afterwards.';
  const { name } = message.sender;
  const { address, kind } = message.chat;
  const where = { id: chatId, channel, address, kind };
  const answer = postTo(services, where, message.threadId, text, now);
  if (answer === null) return [];
  const expiresAt = now + HOUR_MS;
  const waits = { name, channel: services.labelOf(channel), code, now, until: expiresAt };
  const chats = await chatsOfOwners(services);
  const announcements = chats.flatMap((chat) => announcementTo(services, chat, waits) ?? []);
  const outcome = await services.store.requestPairing({
    channel,
    senderId,
    name,
    code,
    now,
    expiresAt,
    answerEveryMs: HOUR_MS,
    most: CODES_PER_CHANNEL,
    answer,
    announcements,
  });
  if (outcome === 'quiet') return [];
  services.log.warn(
    { sender: senderId, name },
    `somebody unknown wants to talk; to let them in: coterie pair approve ${code}`,
  );
  return [chatId, ...announcements.map(({ post }) => post.chatId)];
}

/** Asks in an owner's chat whether to let somebody in. Their code tells them from anybody else of that name. */
function announcementTo(
  services: Services,
  chat: ChatRecord,
  waits: { name: string; channel: string; code: string; now: number; until: number },
): Announcement | null {
  const { code, now, until } = waits;
  const channel = services.channels.get(chat.channel);
  if (channel === undefined) return null;
  const options = [
    { label: 'Let in', command: { name: pairing.name, argument: `approve ${code}` } },
    { label: 'Refuse', command: { name: pairing.name, argument: `refuse ${code}` } },
  ];
  const offer = { key: services.newId(), room: chat.id, senderId: null, options, until };
  const who = `${quoted(oneLine(waits.name, NAME_CHARS))} (${waits.channel})`;
  const text = withNumbers(channel, `${who} wants to talk. Their code is ${code}.`, offer);
  const post = postTo(services, chat, null, text, now);
  if (post === null) return null;
  const [delivery = post.delivery] = withButtons(channel, [post.delivery], offer);
  return { post: { ...post, delivery }, offer };
}

/** One message of the gateway's own about somebody who waits; null where there is nobody to send it. */
function postTo(
  { channels, newId }: Services,
  { id: chatId, channel, address, kind }: Pick<ChatRecord, 'id' | 'channel' | 'address' | 'kind'>,
  threadId: string | null,
  text: string,
  now: number,
): Post | null {
  const [body] = channels.get(channel)?.compose(text) ?? [];
  if (!body) return null;
  const said = { personaId: null, speaker: 'coterie', part: 0, body, replyTo: null };
  const delivery = { origin: `pairing:${newId()}`, ...said };
  return { chatId, channel, address, threadId, kind, now, delivery };
}

/** The bot was mentioned in an unlisted group: tells the operator once. */
export async function noteGroup(
  { store, log }: Services,
  message: InboundMessage,
  chatId: ChatId,
  now: number,
): Promise<void> {
  const isCalled = message.mentionsBot || message.replyTo?.ours || message.text.startsWith('/');
  if (!isCalled) return;
  const { title, within } = message.chat;
  const whole = within === undefined ? {} : { within: platformId(channelOf(chatId), within) };
  if (await store.noteGroup({ chatId, ...whole, title, now })) {
    log.warn(
      { chat: chatId, title },
      `mentioned in a group that is not listed; to allow it: coterie pair approve ${chatId}`,
    );
  }
}
