/**
 * Step 1 of the route: people and groups without access. Stores, logs and reports only what owners need to admit them.
 * Anybody may write to a bot, so in a flood the log names the first few and then counts, one line per minute.
 */
import { LRUCache } from 'lru-cache';
import type { Announcement } from '../../core/access.js';
import type { Post } from '../../core/channel.js';
import { type ChatId, channelOf, platformId } from '../../core/ids.js';
import type { InboundMessage } from '../../core/message.js';
import { type AccessCheck, ownerChats } from '../access.js';
import { NAME_CHARS, pairing } from '../commands/owners.js';
import { withButtons, withNumbers } from '../deliver/offers.js';
import { oneLine, code as quoted } from '../quoting.js';
import type { BaseServices, ChatPlace, Services } from '../services.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** A sender is answered once an hour; per channel, `most` codes may be pending and `mostPerHour` are given per hour. */
const CODES = { answerEveryMs: HOUR_MS, most: 3, mostPerHour: 10 };
/** Groups awaiting approval per channel, each kept for this long after its last mention. */
const GROUPS = { keepMs: 7 * 24 * HOUR_MS, most: 50 };
/** Maximum number of ids remembered per kind, and named per log line. */
const MOST_KNOWN = 1_000;
const MOST_NAMED = 10;
/** Number of people or groups that are named before they are only counted. */
const AT_ONCE = 10;

const WHY = { pair: 'unknown sender', unlisted: 'unlisted group', 'stay-out': 'closed' } as const;

/** Logs ids that were only counted. */
type Sum = (ids: ChatId[], count: string) => void;

export type RejectionLog = ReturnType<typeof createRejectionLog>;

export function createRejectionLog({ clock, log }: BaseServices) {
  const keptOutBefore = new LRUCache<ChatId, true>({ max: MOST_KNOWN });
  /** By kind and channel. Each ends after a minute in which nothing was counted. */
  const tallies = new Map<string, { spare: number; counted: Set<ChatId>; end(): void }>();
  let stopped = false;

  /** Whether it gets a line of its own. Otherwise it is counted, and `sum` logs the count within a minute. */
  function mayName(key: string, id: ChatId, atOnce: number, sum: Sum): boolean {
    const tally = tallies.get(key) ?? begin(key, atOnce, sum);
    if (tally.spare > 0) {
      tally.spare -= 1;
      return true;
    }
    if (tally.counted.size < MOST_KNOWN) tally.counted.add(id);
    return false;
  }

  function begin(key: string, spare: number, sum: Sum) {
    const counted = new Set<ChatId>();
    const flush = () => {
      const count = counted.size < MOST_KNOWN ? String(counted.size) : `${MOST_KNOWN} or more`;
      if (counted.size > 0) sum([...counted].slice(0, MOST_NAMED), count);
      counted.clear();
    };
    const minuteIsOver = () => {
      if (counted.size === 0) tallies.delete(key);
      else cancel = clock.after(MINUTE_MS, minuteIsOver);
      flush();
    };
    let cancel = stopped ? () => {} : clock.after(MINUTE_MS, minuteIsOver);
    const end = () => {
      cancel();
      flush();
    };
    const tally = { spare, counted, end };
    tallies.set(key, tally);
    return tally;
  }

  return {
    /** An unknown sender got no code because the channel's limit is reached. Nothing about them is kept. */
    noCode(channel: string, sender: ChatId): void {
      const say = (senders: string) =>
        log.warn(
          { channel, senders },
          `unknown senders turned away without a code: ${senders}; a channel gives only so many, at once and an hour (coterie pair list)`,
        );
      if (mayName(`no code ${channel}`, sender, 1, (_, count) => say(count))) say('1');
    },
    /** Somebody may not talk here and is told nothing. Named once per sender. */
    keptOut(channel: string, chat: ChatId, sender: ChatId, name: string): void {
      if (keptOutBefore.has(sender)) return;
      keptOutBefore.set(sender, true);
      const sum: Sum = (senders, count) =>
        log.info({ channel, senders }, `discarded messages of ${count} unapproved senders`);
      if (!mayName(`kept out ${channel}`, sender, AT_ONCE, sum)) return;
      const fields = { chat, sender, name: oneLine(name, NAME_CHARS) };
      log.info(fields, 'discarded a message of an unapproved sender');
    },
    /** A group that is not listed waits for approval. */
    groupWaits(channel: string, chat: ChatId, title: string): void {
      const sum: Sum = (chats, count) =>
        log.warn(
          { channel, chats },
          `mentioned in ${count} other groups that are not listed; coterie pair list shows them`,
        );
      if (!mayName(`group ${channel}`, chat, AT_ONCE, sum)) return;
      const fields = { chat, title: oneLine(title, NAME_CHARS) };
      log.warn(fields, `mentioned in a group that is not listed; to allow it: coterie pair approve ${chat}`);
    },
    /** Logs the pending counts and stops counting. */
    stop(): void {
      stopped = true;
      for (const tally of tallies.values()) tally.end();
    },
  };
}

/** Returns why the message is not stored. */
export async function reject(
  services: Services,
  rejections: RejectionLog,
  channel: string,
  message: InboundMessage,
  entry: keyof typeof WHY,
  { chatId, senderId }: AccessCheck,
): Promise<(typeof WHY)[keyof typeof WHY]> {
  if (entry === 'pair') await offerPairing(services, rejections, channel, message, chatId, senderId);
  else if (entry === 'unlisted') await noteGroup(services, rejections, message, chatId);
  else rejections.keptOut(channel, chatId, senderId, message.sender.name);
  return WHY[entry];
}

/** Gives an unknown sender a pairing code for the operator, and asks the owners whether to let them in. */
async function offerPairing(
  services: Services,
  rejections: RejectionLog,
  channel: string,
  message: InboundMessage,
  chatId: ChatId,
  senderId: ChatId,
): Promise<void> {
  const { store, clock, labelOf, newPairingCode, deliver, log } = services;
  const now = clock.now();
  const ask = { channel, senderId, now, ...CODES };
  // Checked before anything is prepared: in a flood, hardly anybody is answered.
  const may = await store.mayAskToPair(ask);
  if (may === 'full') rejections.noCode(channel, senderId);
  if (may !== 'ask') return;
  const code = newPairingCode();
  const expiresAt = now + HOUR_MS;
  const name = oneLine(message.sender.name, NAME_CHARS) || senderId;
  const { address, kind } = message.chat;
  const place = { chat: { id: chatId, channel, address, kind }, threadId: message.threadId };
  const text =
    `I do not know you yet. Please give this code to whoever runs me: ${code}\n\n` +
    'It is good for one hour. What you wrote until then is not kept, so please write again afterwards.';
  const answer = postTo(services, place, text);
  if (answer === null) return;
  const words = `${quoted(name)} (${labelOf(channel)}) wants to talk. Their code is ${code}.`;
  const announcements = (await ownerChats(services)).flatMap(
    (chat) => announcementTo(services, { chat, threadId: null }, words, code, expiresAt) ?? [],
  );
  const outcome = await store.requestPairing({ ...ask, name, code, expiresAt, answer, announcements });
  // Another process may have given the last code meanwhile.
  if (outcome === 'full') rejections.noCode(channel, senderId);
  if (outcome !== 'asked') return;
  const fields = { sender: senderId, name };
  log.warn(fields, `an unknown sender wants to talk; to let them in: coterie pair approve ${code}`);
  for (const posted of [answer, ...announcements.map(({ post }) => post)]) deliver.wake(posted.chatId);
}

/** Asks in an owner's chat whether to let somebody in. The code distinguishes people of the same name. */
function announcementTo(
  services: Services,
  place: ChatPlace,
  words: string,
  code: string,
  until: number,
): Announcement | null {
  const channel = services.channels.get(place.chat.channel);
  if (channel === undefined) return null;
  const options = [
    { label: 'Let in', command: { name: pairing.name, argument: `approve ${code}` } },
    { label: 'Refuse', command: { name: pairing.name, argument: `refuse ${code}` } },
  ];
  const offer = { key: services.newId(), room: place.chat.id, senderId: null, options, until };
  const post = postTo(services, place, withNumbers(channel, words, offer));
  if (post === null) return null;
  const [delivery = post.delivery] = withButtons(channel, [post.delivery], offer);
  return { post: { ...post, delivery }, offer };
}

/** null if the chat's channel is not running. */
function postTo(
  { channels, newId, clock }: Services,
  { chat, threadId }: ChatPlace,
  text: string,
): Post | null {
  const { id: chatId, channel, address, kind } = chat;
  const [body] = channels.get(channel)?.compose(text) ?? [];
  if (!body) return null;
  const origin = `pairing:${newId()}`;
  const delivery = { origin, personaId: null, speaker: 'coterie', part: 0, body, replyTo: null };
  return { chatId, channel, address, threadId, kind, now: clock.now(), delivery };
}

/** If the bot was called in the group, the operator is told once. */
async function noteGroup(
  { store, clock }: Services,
  rejections: RejectionLog,
  { chat, mentionsBot, replyTo, text }: InboundMessage,
  chatId: ChatId,
): Promise<void> {
  if (!mentionsBot && !replyTo?.ours && !text.startsWith('/')) return;
  const channel = channelOf(chatId);
  const title = oneLine(chat.title, NAME_CHARS) || chatId;
  const whole = chat.within === undefined ? {} : { within: platformId(channel, chat.within) };
  const isNew = await store.noteGroup({ chatId, ...whole, title, now: clock.now(), ...GROUPS });
  if (isNew) rejections.groupWaits(channel, chatId, title);
}
