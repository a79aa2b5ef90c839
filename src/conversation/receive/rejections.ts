/**
 * Within step 1 of the route: what becomes of those who may not enter. Only what an operator needs to admit them is stored,
 * and said in the log or to owners.
 */
import type { Announcement } from '../../core/access.js';
import type { Post } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import type { Clock } from '../../core/clock.js';
import { type ChatId, channelOf, platformId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import type { InboundMessage } from '../../core/message.js';
import { type AccessDecision, ownerChats } from '../access.js';
import { NAME_CHARS, pairing } from '../commands/owners.js';
import { withButtons, withNumbers } from '../deliver/reply.js';
import { oneLine, code as quoted } from '../quoting.js';
import type { Services } from '../services.js';

const HOUR_MS = 3_600_000;
/** A sender is answered once an hour, and so many senders of a channel: at once, and within an hour. */
const CODES = { answerEveryMs: HOUR_MS, most: 3, mostPerHour: 10 };
/** So many groups of a channel wait to be let in, each so long after it mentioned us last. */
const GROUPS = { keepMs: 7 * 24 * HOUR_MS, most: 50 };

const WHY = { pair: 'unknown sender', unlisted: 'unlisted group', 'stay-out': 'closed' } as const;

/** Why a message is not stored, and the chats to which something was posted about it. */
interface Rejection {
  why: (typeof WHY)[keyof typeof WHY];
  posted: ChatId[];
}

interface Outside {
  entry: Exclude<AccessDecision, 'enter'>;
  chatId: ChatId;
  senderId: ChatId;
  now: number;
}

export async function reject(
  services: Services,
  strangers: UnknownSenders,
  channel: string,
  message: InboundMessage,
  { entry, chatId, senderId, now }: Outside,
): Promise<Rejection> {
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
  strangers: UnknownSenders,
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
  const chats = await ownerChats(services);
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
  strangers: UnknownSenders,
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

// Within step 1 of the route: what the log says of those who may not talk. Anybody may write to a bot, so what they cause
// is bounded: the first are named at once, and of a flood there is a line a minute that counts.

export interface UnknownSenders {
  /** Somebody unknown got no code, because the channel has given as many as it may. Nothing of them is kept. */
  gotNoCode(channel: string, sender: ChatId): void;
  /** Somebody may not talk here, and is told nothing: the operator may want to admit them. Once per sender. */
  keptOut(channel: string, about: { chat: ChatId; sender: ChatId; name: string }): void;
  /** A group that is not listed waits to be let in. */
  groupWaits(channel: string, about: { chat: ChatId; title: string }): void;
  /** Says what was counted since the last line, and counts no more. */
  stop(): void;
}

const MINUTE_MS = 60_000;
/** How many ids are remembered of a kind, and how many of them a line names. */
const MOST_KNOWN = 1_000;
const MOST_NAMED = 10;
/** How many are named at once. Those without a code are not named at all. */
const AT_ONCE = 10;

export function createUnknownSenders({ clock, log }: { clock: Clock; log: Log }): UnknownSenders {
  const keptOutBefore = new Set<ChatId>();
  const tallies = new Map<string, Tally>();
  let stopped = false;
  const afterAMinute: AfterAMinute = (act) => (stopped ? () => {} : clock.after(MINUTE_MS, act));

  function tally(name: string, atOnce: number, say: (ids: ChatId[], count: string) => void): Tally {
    const known = tallies.get(name) ?? createTally(afterAMinute, atOnce, say);
    tallies.set(name, known);
    return known;
  }

  return {
    gotNoCode(channel, sender) {
      const say = (count: string) =>
        log.warn(
          { channel, strangers: count },
          `strangers turned away without a code: ${count}; a channel gives only so many, at once and an hour (coterie pair list)`,
        );
      const counted = tally(`no code ${channel}`, 1, (_ids, count) => say(count));
      if (counted.add(sender) === 'now') say('1');
    },

    keptOut(channel, { chat, sender, name }) {
      if (keptOutBefore.has(sender)) return;
      remember(keptOutBefore, sender);
      const counted = tally(`kept out ${channel}`, AT_ONCE, (senders, count) =>
        log.info({ channel, senders }, `messages of ${count} others who may not talk here were discarded`),
      );
      if (counted.add(sender) !== 'now') return;
      log.info(
        { chat, sender, name: oneLine(name, NAME_CHARS) },
        'a message from somebody who may not talk here was discarded',
      );
    },

    groupWaits(channel, { chat, title }) {
      const counted = tally(`group ${channel}`, AT_ONCE, (chats, count) =>
        log.warn(
          { channel, chats },
          `mentioned in ${count} other groups that are not listed; coterie pair list shows them`,
        ),
      );
      if (counted.add(chat) !== 'now') return;
      log.warn(
        { chat, title: oneLine(title, NAME_CHARS) },
        `mentioned in a group that is not listed; to allow it: coterie pair approve ${chat}`,
      );
    },

    stop() {
      stopped = true;
      for (const each of tallies.values()) each.stop();
    },
  };
}

/** Returns what cancels it. */
type AfterAMinute = (act: () => void) => () => void;

interface Tally {
  /** 'now' if there is a line to spare for it; else it is counted, once. */
  add(id: ChatId): 'now' | 'counted';
  stop(): void;
}

/** So many lines are to spare at once, and one more a minute: either for the next one, or for the count of many. */
function createTally(
  afterAMinute: AfterAMinute,
  atOnce: number,
  say: (ids: ChatId[], count: string) => void,
): Tally {
  const counted = new Set<ChatId>();
  let lines = atOnce;
  let cancel: (() => void) | null = null;

  function sayCount(): void {
    if (counted.size === 0) return;
    const count = counted.size < MOST_KNOWN ? String(counted.size) : `${MOST_KNOWN} or more`;
    say([...counted].slice(0, MOST_NAMED), count);
    counted.clear();
  }

  function minuteIsOver(): void {
    if (counted.size === 0) lines += 1;
    sayCount();
    cancel = lines < atOnce ? afterAMinute(minuteIsOver) : null;
  }

  return {
    add(id) {
      cancel ??= afterAMinute(minuteIsOver);
      if (lines > 0) {
        lines -= 1;
        return 'now';
      }
      if (counted.size < MOST_KNOWN) counted.add(id);
      return 'counted';
    },
    stop() {
      cancel?.();
      sayCount();
    },
  };
}

/** The oldest leaves. */
function remember(known: Set<ChatId>, id: ChatId): void {
  const [oldest] = known;
  if (known.size >= MOST_KNOWN && oldest !== undefined) known.delete(oldest);
  known.add(id);
}
