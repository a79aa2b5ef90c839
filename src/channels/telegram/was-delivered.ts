/**
 * Whether a message arrived although its send was cut off, or its process ended. When a bot asks to leave a message's
 * buttons as they are, nothing changes, and the answer tells whether the message is its own, somebody else's, or
 * nobody's. The search goes upwards from the newest number known before the send (docs/decisions/0026).
 */
import { LRUCache } from 'lru-cache';
import type { Channel, Delivered, Part, Recipient } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { withSpeakerName } from '../kit/outgoing.js';
import { type Bot, type Bots, isShared, messageIdOf, type Watermark } from './bots.js';
import {
  type CallFailure,
  isForeign,
  isLockedOut,
  isMethodUnknown,
  isNobodys,
  isNotModified,
  sendResult,
} from './failure.js';
import { chatId, keyboardOf, MOST_CAPTION } from './outbound.js';
import { isAbsent } from './send.js';

const MOST_SEARCHES = 1_000;
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
/** Not found, but Telegram may still send the message: the whole search is repeated. */
const TOO_EARLY = { kind: 'later', reason: 'Telegram may still be about to send it' } as const;

class Search {
  /** Bots that may have sent it and are still to be asked, likeliest first. */
  bots: Bot[];
  /** For the first of these: the next and the last number; null until the pending updates are counted. */
  number = 0;
  last: number | null = null;
  /** Numbers without a message. */
  readonly nobodys = new Set<number>();
  questions = 0;
  /** Since when too many updates have been pending. */
  pendingSince: number | null = null;
  /** Some numbers could not be asked about. */
  isOpen: boolean;

  constructor(
    readonly mark: Watermark,
    readonly since: number,
    senders: Bot[],
  ) {
    this.bots = senders.filter((bot) => numberBefore(bot, mark) !== undefined);
    // A bot without any known number cannot be asked, which matters if it is the likeliest sender.
    this.isOpen = this.bots[0] !== senders[0];
  }
}

export function createDeliveryCheck(bots: Bots, clock: Clock): NonNullable<Channel['wasDelivered']> {
  const searches = new LRUCache<string, Search>({ max: MOST_SEARCHES });

  /** Sets which numbers to ask a bot about. With many updates pending they would be too many: it waits. */
  async function setRange(search: Search, bot: Bot, signal: AbortSignal): Promise<Delivered | null> {
    const pending = await pendingUpdates(bot, signal);
    if (typeof pending !== 'number') return later(pending);
    search.pendingSince ??= clock.now();
    if (pending > MOST_PENDING) {
      if (clock.now() < search.pendingSince + PENDING_MS) {
        const reason = 'Telegram still has many updates for the bot';
        return { kind: 'later', reason, retryAfterMs: PENDING_RETRY_MS };
      }
      search.isOpen = true;
    }
    const before = numberBefore(bot, search.mark) ?? 0;
    const newest = Math.max(before, bots.newest(bot, search.mark.chat) ?? 0);
    search.number = before + 1;
    search.last = Math.min(newest + BEYOND_NEWEST + Math.min(pending, MOST_PENDING), before + MOST_NUMBERS);
    return null;
  }

  /** Last number that the message can have: below any message of ours sent after this send had ended. */
  function lastNumber({ mark, last }: Search, bot: Bot): { number: number; isSure: boolean } {
    const most = last ?? 0;
    const later = bots.lastSent(bot, mark.chat);
    if (later !== undefined && later.begunAt >= mark.at + DELAYED_MS && later.number <= most) {
      return { number: later.number - 1, isSure: true };
    }
    return { number: most, isSure: most < (numberBefore(bot, mark) ?? 0) + MOST_NUMBERS };
  }

  /** Asks bot after bot about number after number. */
  async function go(
    search: Search,
    to: Recipient,
    part: Part,
    signal: AbortSignal,
    beforeAsking: () => Promise<ReadonlySet<string> | null>,
  ): Promise<Delivered> {
    const { nobodys } = search;
    for (let [bot] = search.bots; bot !== undefined; [bot] = search.bots) {
      const known = await beforeAsking();
      if (known === null) return { kind: 'later', reason: 'the gateway stops' };
      if (search.last === null) {
        const failed = await setRange(search, bot, signal);
        if (failed !== null) return failed;
        continue;
      }
      const last = lastNumber(search, bot);
      const id = () => messageIdOf(bot, search.number);
      while (search.number <= last.number && (known.has(id()) || nobodys.has(search.number))) search.number++;
      let isDone = search.number > last.number;
      if (isDone) {
        search.isOpen ||= !last.isSure;
      } else {
        if (search.questions >= MOST_QUESTIONS) return UNKNOWN;
        const answer = await ask(bot, to, search.number, part, signal);
        if (typeof answer === 'object') return later(answer);
        search.questions++;
        if (answer === 'ours') return { kind: 'found', platformMessageId: id() };
        if (answer === 'impossible') return UNKNOWN;
        isDone = answer === 'bot is not there';
        if (isDone) search.isOpen ||= search.mark.newest.length !== bots.all.length;
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
    return search.since >= search.mark.at + DELAYED_MS ? { kind: 'absent' } : TOO_EARLY;
  }

  return async (to, part, options, { watermark, beforeAsking }) => {
    const mark: Watermark = JSON.parse(watermark);
    // A group that became a supergroup has new numbers. A long text with a file is two messages; its length
    // depends on the bot, since any but the speaker's own adds the name.
    const isTwo = part.file !== undefined && withSpeakerName(part, options).text.length > MOST_CAPTION;
    if (mark.chat !== to.address || isTwo) return UNKNOWN;
    const key = `${options.key} ${watermark}`;
    const senders = bots.senders(to, options.speaker ?? options.appearance?.personaId);
    const search = searches.get(key) ?? new Search(mark, clock.now(), senders);
    searches.set(key, search);
    const found = await go(search, to, part, options.signal, beforeAsking);
    if (found.kind !== 'later' || found === TOO_EARLY) searches.delete(key);
    if (found !== TOO_EARLY) return found;
    return { ...TOO_EARLY, retryAfterMs: Math.max(0, mark.at + DELAYED_MS - clock.now()) };
  };
}

function later({ reason, retryAfterMs }: CallFailure): Delivered {
  return { kind: 'later', reason, retryAfterMs: retryAfterMs ?? undefined };
}

function numberBefore(bot: Bot, { newest }: Watermark): number | undefined {
  return newest.find(([id]) => id === bot.id)?.[1];
}

/** Number of updates pending for a bot, also with a webhook. */
async function pendingUpdates(bot: Bot, signal: AbortSignal): Promise<number | CallFailure> {
  const done = await bot.api.attempt((raw, ended) => raw.getWebhookInfo(ended), { signal });
  if ('answer' in done) {
    const { pending_update_count: pending } = done.answer;
    return Number.isInteger(pending) ? pending : 0;
  }
  const { failure } = done;
  // A server without this method has no queue; whether this bot may ask shows at the first question.
  if (isMethodUnknown(failure) || isLockedOut(failure)) return 0;
  return sendResult(failure).kind === 'unreachable' ? failure : 0;
}

type Answer = 'ours' | 'foreign' | 'nobodys' | 'bot is not there' | 'impossible' | CallFailure;

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
  const limits = { signal, chat: to.address };
  const done = await bot.api.attempt((raw, ended) => raw.editMessageReplyMarkup(request, ended), limits);
  // If it had other buttons, it is another message of ours; but buttons may come back changed.
  if ('answer' in done) return part.choices === undefined ? 'foreign' : 'ours';
  const { failure } = done;
  if (isNotModified(failure)) return 'ours';
  if (isNobodys(failure)) return 'nobodys';
  if (isForeign(failure)) return 'foreign';
  if (failure.migratedTo !== null || isMethodUnknown(failure)) return 'impossible';
  if (isAbsent(bot, failure)) return 'bot is not there';
  // Any other refusal says nothing about the message's author.
  return sendResult(failure).kind === 'unreachable' ? failure : 'impossible';
}
