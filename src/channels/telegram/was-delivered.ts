/**
 * Whether a message arrived although its send was cut off, or its process ended. Telegram has no dedupe key.
 * But when a bot asks to leave a message's buttons as they are, nothing changes, and the answer tells whether
 * the message is its own, somebody else's, or nobody's. Message numbers only grow, so the search goes upwards
 * from the newest number known before the send: a bot's direct chats and basic groups share one sequence,
 * each supergroup has its own (docs/decisions/0026).
 */
import { LRUCache } from 'lru-cache';
import type { Channel, Delivered, Part, Recipient, SendOptions } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Address } from '../../core/message.js';
import { withSpeakerName } from '../kit/outgoing.js';
import { type Bot, type Bots, isShared, messageIdOf, type OurBot, readMessageId } from './bots.js';
import {
  type CallFailure,
  isForeign,
  isLockedOut,
  isMethodUnknown,
  isNobodys,
  isNotModified,
  isNotThere,
  sendResult,
} from './failure.js';
import { chatId, keyboardOf, MOST_CAPTION } from './outbound.js';

const MOST_ROWS = 10_000;
const MOST_SEARCHES = 1_000;
/** A sent message this far below the newest belongs to a restarted sequence, of another bot. */
const ANOTHER_ROW = 1_000;
/** Limits of one search: questions, and numbers covered (most are known to be other messages). */
const MOST_QUESTIONS = 60;
const MOST_NUMBERS = 2_000;
/** How far beyond the newest number to look: other uncertain sends, and messages hidden from bots. */
const BEYOND_NEWEST = 20;
/** While more updates than this are pending, the search waits: they tell what most numbers are. */
const MOST_PENDING = 20;
const PENDING_RETRY_MS = 1_000;
/** Then it stops waiting: another program may receive our updates. */
const PENDING_MS = 60_000;
/** A throttling Telegram may delay a send by up to 8 s, even after the caller has given up. */
const DELAYED_MS = 10_000;

const UNKNOWN: Delivered = { kind: 'unknown' };

/** Known state when a send begins; stored with it as JSON. */
interface Watermark {
  /** When it began, ms. */
  at: number;
  chat: Address;
  /** Newest number known to each bot, by the bot's id. */
  newest: [bot: number, number: number][];
}

interface Search {
  mark: Watermark;
  clock: Clock;
  /** Bots that may have sent it and are still to be asked, likeliest first. */
  bots: Bot[];
  /** Whether a number is known for every bot of ours. */
  areAllKnown: boolean;
  /** For the first of these: the next and the last number; null until the pending updates are counted. */
  number: number;
  last: number | null;
  /** Numbers without a message. */
  nobodys: Set<number>;
  questions: number;
  since: number;
  /** Since when too many updates have been pending. */
  pendingSince: number | null;
  /** Some numbers could not be asked about. */
  isOpen: boolean;
}

type Answer = 'ours' | 'foreign' | 'nobodys' | 'bot is not there' | 'impossible' | { failure: CallFailure };

export type DeliveryCheck = ReturnType<typeof createDeliveryCheck>;

/** `recorded`: messages in the store. */
export function createDeliveryCheck(
  bots: Bots,
  clock: Clock,
  recorded: readonly { address: Address; platformMessageId: string }[],
) {
  const numbers = createNumbers(bots);
  const searches = new LRUCache<string, Search>({ max: MOST_SEARCHES });
  for (const { address, platformMessageId } of recorded) numbers.recorded(address, platformMessageId);

  const wasDelivered: NonNullable<Channel['wasDelivered']> = async (to, part, options, asked) => {
    const mark: Watermark = JSON.parse(asked.watermark);
    // A group that became a supergroup has new numbers. A long text with a file is two messages; its length
    // depends on the bot, since any but the speaker's own adds the name.
    const isTwo = part.file !== undefined && withSpeakerName(part, options).text.length > MOST_CAPTION;
    if (mark.chat !== to.address || isTwo) return UNKNOWN;
    const key = `${options.key} ${asked.watermark}`;
    const search = searches.get(key) ?? begin(bots, clock, mark, to, options);
    searches.set(key, search);
    const found = await go(search, numbers, to, part, options.signal, asked.beforeAsking);
    if (found.kind !== 'later' || found === TOO_EARLY) searches.delete(key);
    if (found !== TOO_EARLY) return found;
    return { ...TOO_EARLY, retryAfterMs: Math.max(0, mark.at + DELAYED_MS - clock.now()) };
  };

  return {
    wasDelivered,
    heard: numbers.heard,
    sent: numbers.sent,
    watermark({ address: chat }: Recipient): string | null {
      const newest = bots.all.flatMap((bot): Watermark['newest'] => {
        const number = numbers.newest(bot.our(), chat);
        return number === undefined ? [] : [[bot.our().id, number]];
      });
      return newest.length === 0
        ? null
        : JSON.stringify({ at: clock.now(), chat, newest } satisfies Watermark);
    },
  };
}

/** The newest numbers received, and our own newest messages, by sequence. */
function createNumbers(bots: Bots) {
  const newest = new LRUCache<string, number>({ max: MOST_ROWS });
  const lastSent = new LRUCache<string, { number: number; begunAt: number }>({ max: MOST_ROWS });
  const rowOf = (bot: { id: number }, chat: Address) => (isShared(chat) ? chat : `bot ${bot.id}`);
  const learn = (row: string, number: number) => void newest.set(row, Math.max(number, newest.get(row) ?? 0));

  function locate(chat: Address, platformMessageId: string): { row: string; number: number } | null {
    const id = readMessageId(platformMessageId);
    const bot = id && bots.withId(id.bot)?.our();
    return id && bot ? { row: rowOf(bot, chat), number: id.number } : null;
  }

  return {
    newest: (bot: OurBot, chat: Address) => newest.get(rowOf(bot, chat)),
    lastSent: (bot: OurBot, chat: Address) => lastSent.get(rowOf(bot, chat)),

    recorded(chat: Address, platformMessageId: string): void {
      const known = locate(chat, platformMessageId);
      if (known !== null) learn(known.row, known.number);
    },

    /** Learns from a bot's updates, whoever wrote them. */
    heard(bot: OurBot, updates: readonly unknown[]): void {
      for (const update of updates) {
        for (const { chat, number } of numbersIn(update)) learn(rowOf(bot, String(chat)), number);
      }
    },

    sent(chat: Address, platformMessageId: string, begunAt: number): void {
      const known = locate(chat, platformMessageId);
      if (known === null) return;
      const { row, number } = known;
      if (number < (newest.get(row) ?? 0) - ANOTHER_ROW) newest.set(row, number);
      else learn(row, number);
      lastSent.set(row, { number, begunAt });
    },
  };
}

function begin(
  bots: Bots,
  clock: Clock,
  mark: Watermark,
  to: Recipient,
  { speaker, appearance }: SendOptions,
): Search {
  const senders = bots.senders(to, speaker ?? appearance?.personaId);
  const known = senders.filter((bot) => numberBefore(bot, mark) !== undefined);
  return {
    mark,
    clock,
    bots: known,
    areAllKnown: mark.newest.length === bots.all.length,
    number: 0,
    last: null,
    nobodys: new Set(),
    questions: 0,
    since: clock.now(),
    pendingSince: null,
    // A bot without any known number cannot be asked, which matters if it is the likeliest sender.
    isOpen: known[0] !== senders[0],
  };
}

/** Asks bot after bot about number after number. */
async function go(
  search: Search,
  numbers: ReturnType<typeof createNumbers>,
  to: Recipient,
  part: Part,
  signal: AbortSignal,
  beforeAsking: () => Promise<ReadonlySet<string> | null>,
): Promise<Delivered> {
  const { mark, nobodys } = search;
  for (let [bot] = search.bots; bot !== undefined; [bot] = search.bots) {
    const known = await beforeAsking();
    if (known === null) return { kind: 'later', reason: 'the gateway stops' };
    const our = bot.our();
    if (search.last === null) {
      const failed = await setRange(search, bot, numbers.newest(our, mark.chat) ?? 0, signal);
      if (failed !== null) return failed;
      continue;
    }
    const last = lastNumber(search, bot, numbers.lastSent(our, mark.chat));
    const isOther = (number: number) => known.has(messageIdOf(our, number)) || nobodys.has(number);
    while (search.number <= last.number && isOther(search.number)) search.number++;
    let isDone = search.number > last.number;
    if (isDone) {
      search.isOpen ||= !last.isSure;
    } else {
      if (search.questions >= MOST_QUESTIONS) return UNKNOWN;
      const answer = await ask(bot, to, search.number, part, signal);
      if (typeof answer === 'object') return later(answer.failure);
      search.questions++;
      if (answer === 'ours') return { kind: 'found', platformMessageId: messageIdOf(our, search.number) };
      if (answer === 'impossible') return UNKNOWN;
      isDone = answer === 'bot is not there';
      if (isDone) search.isOpen ||= !search.areAllKnown;
      // In a supergroup all bots have the same numbers.
      if (answer === 'nobodys' && isShared(to.address)) nobodys.add(search.number);
      search.number++;
    }
    if (isDone) {
      search.bots = search.bots.slice(1);
      search.last = null;
    }
  }
  if (search.isOpen) return UNKNOWN;
  return search.since >= mark.at + DELAYED_MS ? { kind: 'absent' } : TOO_EARLY;
}

/** Sets which numbers to ask a bot about. With many updates pending they would be too many: it waits. */
async function setRange(
  search: Search,
  bot: Bot,
  newest: number,
  signal: AbortSignal,
): Promise<Delivered | null> {
  const pending = await pendingUpdates(bot, signal);
  if (typeof pending !== 'number') return later(pending.failure);
  const now = search.clock.now();
  search.pendingSince ??= now;
  const isEnough = pending <= MOST_PENDING;
  if (!isEnough && now < search.pendingSince + PENDING_MS) {
    const reason = 'Telegram still has many updates for the bot';
    return { kind: 'later', reason, retryAfterMs: PENDING_RETRY_MS };
  }
  const before = numberBefore(bot, search.mark) ?? 0;
  const beyond = Math.max(before, newest) + BEYOND_NEWEST + Math.min(pending, MOST_PENDING);
  search.number = before + 1;
  search.last = Math.min(beyond, before + MOST_NUMBERS);
  search.isOpen ||= !isEnough;
  return null;
}

/** Last number that the message can have: below any message of ours sent after this send had ended. */
function lastNumber(
  { mark, last }: Search,
  bot: Bot,
  later: { number: number; begunAt: number } | undefined,
): { number: number; isSure: boolean } {
  const most = last ?? 0;
  if (later !== undefined && later.begunAt >= mark.at + DELAYED_MS && later.number <= most) {
    return { number: later.number - 1, isSure: true };
  }
  return { number: most, isSure: most < (numberBefore(bot, mark) ?? 0) + MOST_NUMBERS };
}

/** Not found, but Telegram may still send the message: the whole search is repeated. */
const TOO_EARLY = { kind: 'later', reason: 'Telegram may still be about to send it' } as const;

function later({ reason, retryAfterMs }: CallFailure): Delivered {
  return retryAfterMs === null ? { kind: 'later', reason } : { kind: 'later', reason, retryAfterMs };
}

function numberBefore(bot: Bot, { newest }: Watermark): number | undefined {
  return newest.find(([id]) => id === bot.our().id)?.[1];
}

/** The messages in an update of any kind: its own, and the one it is about (whose button was pressed). */
function numbersIn(update: unknown): { chat: number; number: number }[] {
  const brought = typeof update === 'object' && update !== null ? Object.values(update) : [];
  return [...brought, ...brought.map((each) => Object(each).message)].flatMap((each) => {
    const { message_id: number, chat } = Object(each);
    const id: unknown = Object(chat).id;
    return typeof number === 'number' && typeof id === 'number' ? [{ chat: id, number }] : [];
  });
}

/** Number of updates pending for a bot, also with a webhook. */
async function pendingUpdates(bot: Bot, signal: AbortSignal): Promise<number | { failure: CallFailure }> {
  try {
    const info = await bot.api.call((raw, ended) => raw.getWebhookInfo(ended), { signal });
    return Number.isInteger(info.pending_update_count) ? info.pending_update_count : 0;
  } catch (error) {
    const failure = bot.api.failure(error);
    // A server without this method has no queue; whether this bot may ask shows at the first question.
    if (isMethodUnknown(failure) || isLockedOut(failure)) return 0;
    return sendResult(failure).kind === 'unreachable' ? { failure } : 0;
  }
}

/** Asks a bot whether a message is its own, by setting the buttons that the message in question has. */
async function ask(
  bot: Bot,
  to: Recipient,
  number: number,
  part: Part,
  signal: AbortSignal,
): Promise<Answer> {
  const buttons = part.choices === undefined ? {} : { reply_markup: keyboardOf(part.choices) };
  const request = { chat_id: chatId(to.address), message_id: number, ...buttons };
  try {
    const limits = { signal, chat: to.address };
    await bot.api.call((raw, ended) => raw.editMessageReplyMarkup(request, ended), limits);
    // It had other buttons, so it is another message of ours; but buttons may come back changed.
    return part.choices === undefined ? 'foreign' : 'ours';
  } catch (error) {
    const failure = bot.api.failure(error);
    if (isNotModified(failure)) return 'ours';
    if (isNobodys(failure)) return 'nobodys';
    if (isForeign(failure)) return 'foreign';
    if (failure.migratedTo !== null || isMethodUnknown(failure)) return 'impossible';
    if (isNotThere(failure) || (bot.personaId !== null && isLockedOut(failure))) return 'bot is not there';
    // Any other refusal says nothing about the message's author.
    return sendResult(failure).kind === 'unreachable' ? { failure } : 'impossible';
  }
}
