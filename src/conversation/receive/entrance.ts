/**
 * Within step 1 of the route: identifies chat and sender and decides whether they may enter. For those who may not,
 * only what an operator needs to admit them is stored.
 */
import type { Announcement } from '../../core/access.js';
import type { ChatRecord } from '../../core/chat-record.js';
import type { Post } from '../../core/delivery.js';
import { type ChatId, channelOf, platformId } from '../../core/ids.js';
import type { InboundChat, InboundMessage, InboundSender } from '../../core/message.js';
import { decideEntry, type Entry, isKnown } from '../access.js';
import { NAME_CHARS, pairing } from '../commands/pairing.js';
import { withButtons, withNumbers } from '../deliver/choices.js';
import { identifyChat, identifyPerson, linkChat } from '../identity.js';
import { chatsOfOwners } from '../owner-chats.js';
import { oneLine, code as quoted } from '../quoting.js';
import type { Services } from '../services.js';
import type { Strangers } from './strangers.js';

export interface Visitor {
  entry: Entry;
  chatId: ChatId;
  senderId: ChatId;
  /** Nobody has said of them that they may talk, only of the group. */
  isStranger: boolean;
}

const HOUR_MS = 3_600_000;
/** A sender is answered once an hour, and so many senders of a channel: at once, and within an hour. */
const CODES = { answerEveryMs: HOUR_MS, most: 3, mostPerHour: 10 };
/** So many groups of a channel wait to be let in, each so long after it mentioned us last. */
const GROUPS = { keepMs: 7 * 24 * HOUR_MS, most: 50 };

export async function askAtTheDoor(
  services: Services,
  channel: string,
  who: { chat: InboundChat; sender: InboundSender },
): Promise<Visitor> {
  const chat = await identifyChat(services, channel, who.chat);
  const sender = await identifyPerson(services, channel, who.sender);
  const ids = { chatId: chat.id, senderId: sender.id };
  const { entry, isStranger } = await entryOf(services, channel, who, ids);
  if (entry === 'enter') {
    if (chat.further !== null) await linkChat(services, chat.id, chat.further);
    // A person has no folder of their own before they have a chat.
    if (sender.further !== null && sender.id !== chat.id) {
      await services.store.addAlias(sender.further, sender.id);
    }
  }
  return { entry, ...ids, isStranger };
}

async function entryOf(
  { store, rulesFor }: Services,
  channel: string,
  { chat, sender }: { chat: InboundChat; sender: InboundSender },
  { chatId, senderId }: { chatId: ChatId; senderId: ChatId },
): Promise<{ entry: Entry; isStranger: boolean }> {
  if (sender.self && isWithThemselves({ chat, sender })) return { entry: 'enter', isStranger: false };
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
  const rules = rulesFor(channel);
  const entry = decideEntry(rules, { kind: chat.kind, chatIds, senderId: asWho }, standing);
  return { entry, isStranger: chat.kind === 'group' && !sender.self && !isKnown(rules, senderId, standing) };
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
  strangers: Strangers,
  channel: string,
  message: InboundMessage,
  { chatId, senderId, now }: { chatId: ChatId; senderId: ChatId; now: number },
): Promise<ChatId[]> {
  const ask = { channel, senderId, now, ...CODES };
  // Asked before anything is prepared: of a flood, hardly anybody is answered.
  const may = await services.store.mayAskToPair(ask);
  if (may === 'full') strangers.gotNoCode(channel, senderId);
  if (may !== 'ask') return [];
  const code = services.newPairingCode();
  const text =
    `I do not know you yet. Please give this code to whoever runs me: ${code}\n\n` +
    'It is good for one hour. What you wrote until then is not kept, so please write again afterwards.';
  const name = oneLine(message.sender.name, NAME_CHARS) || senderId;
  const { address, kind } = message.chat;
  const where = { id: chatId, channel, address, kind };
  const answer = postTo(services, where, message.threadId, text, now);
  if (answer === null) return [];
  const expiresAt = now + HOUR_MS;
  const waits = { name, channel: services.labelOf(channel), code, now, until: expiresAt };
  const chats = await chatsOfOwners(services);
  const announcements = chats.flatMap((chat) => announcementTo(services, chat, waits) ?? []);
  const request = { ...ask, name, code, expiresAt, answer, announcements };
  const outcome = await services.store.requestPairing(request);
  // Another process may have given the last code meanwhile.
  if (outcome === 'full') strangers.gotNoCode(channel, senderId);
  if (outcome !== 'asked') return [];
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
  const who = `${quoted(waits.name)} (${waits.channel})`;
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
  { store }: Services,
  strangers: Strangers,
  message: InboundMessage,
  chatId: ChatId,
  now: number,
): Promise<void> {
  const isCalled = message.mentionsBot || message.replyTo?.ours || message.text.startsWith('/');
  if (!isCalled) return;
  const { within } = message.chat;
  const channel = channelOf(chatId);
  const title = oneLine(message.chat.title, NAME_CHARS) || chatId;
  const whole = within === undefined ? {} : { within: platformId(channel, within) };
  if (await store.noteGroup({ chatId, ...whole, title, now, ...GROUPS })) {
    strangers.groupWaits(channel, { chat: chatId, title });
  }
}
