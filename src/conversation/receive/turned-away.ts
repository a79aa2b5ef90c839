/**
 * Within step 1 of the route: what becomes of those who may not enter. Only what an operator needs to admit them is stored,
 * and said in the log or to owners.
 */
import type { Announcement } from '../../core/access.js';
import type { Post } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import { type ChatId, channelOf, platformId } from '../../core/ids.js';
import type { InboundMessage } from '../../core/message.js';
import type { Entry } from '../access.js';
import { NAME_CHARS, pairing } from '../commands/owners.js';
import { withButtons, withNumbers } from '../deliver/choices.js';
import { chatsOfOwners } from '../owner-chats.js';
import { oneLine, code as quoted } from '../quoting.js';
import type { Services } from '../services.js';
import type { Strangers } from './strangers.js';

const HOUR_MS = 3_600_000;
/** A sender is answered once an hour, and so many senders of a channel: at once, and within an hour. */
const CODES = { answerEveryMs: HOUR_MS, most: 3, mostPerHour: 10 };
/** So many groups of a channel wait to be let in, each so long after it mentioned us last. */
const GROUPS = { keepMs: 7 * 24 * HOUR_MS, most: 50 };

const WHY = { pair: 'unknown sender', unlisted: 'unlisted group', 'stay-out': 'closed' } as const;

/** Why a message is not stored, and the chats to which something was posted about it. */
export interface TurnedAway {
  why: (typeof WHY)[keyof typeof WHY];
  posted: ChatId[];
}

interface Outside {
  entry: Exclude<Entry, 'enter'>;
  chatId: ChatId;
  senderId: ChatId;
  now: number;
}

export async function turnAway(
  services: Services,
  strangers: Strangers,
  channel: string,
  message: InboundMessage,
  { entry, chatId, senderId, now }: Outside,
): Promise<TurnedAway> {
  const why = WHY[entry];
  if (entry === 'pair') {
    return {
      why,
      posted: await offerPairing(services, strangers, channel, message, { chatId, senderId, now }),
    };
  }
  if (entry === 'unlisted') await noteGroup(services, strangers, message, chatId, now);
  else strangers.keptOut(channel, { chat: chatId, sender: senderId, name: message.sender.name });
  return { why, posted: [] };
}

/**
 * Gives an unknown sender a pairing code for the operator, and asks the owners whether to let them in. Returns the chats
 * to which something was posted.
 */
async function offerPairing(
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
async function noteGroup(
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
