import type { Channel, FindOptions, FoundSent, Part, Recipient } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Address } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';
import { withSpeakerName } from '../kit/outgoing.js';
import { type Bot, type Bots, isShared, messageIdOf, type OurBot, readMessageId } from './bots.js';
import {
  type Failure,
  isForeign,
  isLockedOut,
  isMethodUnknown,
  isNobodys,
  isNotModified,
  isNotThere,
  sendResult,
} from './failure.js';
import { chatId, keyboardOf, MOST_CAPTION } from './outbound.js';

/** A message of ours, and when its send began. */
export interface Sent {
  number: number;
  begunAt: number;
}

/** What is known when a send begins; stored with it, as JSON. */
export interface SendMark {
  /** When it began, ms. */
  at: number;
  chat: Address;
  /** The newest number known, by the bot's id. */
  newest: [bot: number, number: number][];
}

export type Newest = ReturnType<typeof createNewest>;

export function createNewest(bots: Pick<Bots, 'all' | 'withId'>) {
  const ofBots = new Map<number, number>();
  const ofGroups = bounded<Address, number>(MOST_GROUPS);
  const lastSent = { ofBots: new Map<number, Sent>(), ofGroups: bounded<Address, Sent>(MOST_GROUPS) };

  function number({ id }: Pick<OurBot, 'id'>, chat: Address): number | undefined {
    return isShared(chat) ? ofGroups.get(chat) : ofBots.get(id);
  }

  function set({ id }: Pick<OurBot, 'id'>, chat: Address, newest: number): void {
    if (isShared(chat)) ofGroups.set(chat, newest);
    else ofBots.set(id, newest);
  }

  function learn(bot: Pick<OurBot, 'id'>, chat: Address, told: number): void {
    set(bot, chat, Math.max(told, number(bot, chat) ?? 0));
  }

  return {
    /** The newest number in the row that a bot's messages in a chat are counted in. */
    number,

    /** Our newest message in that row. */
    lastSent: ({ id }: Pick<OurBot, 'id'>, chat: Address): Sent | undefined =>
      isShared(chat) ? lastSent.ofGroups.get(chat) : lastSent.ofBots.get(id),

    /** Of a send that begins now; null when nothing is known. */
    mark(chat: Address, now: number): string | null {
      const newest = bots.all.flatMap((bot): SendMark['newest'] => {
        const known = number(bot.our(), chat);
        return known === undefined ? [] : [[bot.our().id, known]];
      });
      return newest.length === 0 ? null : JSON.stringify({ at: now, chat, newest } satisfies SendMark);
    },

    /** From the store. */
    recorded(address: Address, platformMessageId: string): void {
      const id = readMessageId(platformMessageId);
      const bot = id && bots.withId(id.bot);
      if (id && bot) learn(bot.our(), address, id.number);
    },

    /** From a bot's updates, whoever may have written them. */
    heard(bot: OurBot, updates: readonly unknown[]): void {
      for (const update of updates) {
        for (const { chat, number } of numbersIn(update)) learn(bot, String(chat), number);
      }
    },

    /** From a message that was sent. */
    sent(address: Address, platformMessageId: string, begunAt: number): void {
      const id = readMessageId(platformMessageId);
      const bot = id && bots.withId(id.bot)?.our();
      if (!id || !bot) return;
      if (id.number < (number(bot, address) ?? 0) - ANOTHER_ROW) set(bot, address, id.number);
      else learn(bot, address, id.number);
      const sent = { number: id.number, begunAt };
      if (isShared(address)) lastSent.ofGroups.set(address, sent);
      else lastSent.ofBots.set(bot.id, sent);
    },
  };
}

/** In an update of any kind: what it brings, and what that is about (the message of a button that was pressed). */
function numbersIn(update: unknown): { chat: number; number: number }[] {
  const brought = fieldsOf(update);
  return [...brought, ...brought.map((each) => Object(each).message)].flatMap((each) => {
    const { message_id: number, chat } = Object(each);
    const id: unknown = Object(chat).id;
    return typeof number === 'number' && typeof id === 'number' ? [{ chat: id, number }] : [];
  });
}

function fieldsOf(value: unknown): unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value) : [];
}

const MOST_GROUPS = 10_000;

/** A number this far below the newest is of another bot than before: only then a row begins anew. */
const ANOTHER_ROW = 1_000;

// Whether a message has arrived whose send was cut off, or whose process ended meanwhile. Telegram has no key by which it
// would know a message again, but it tells a bot which numbers are messages of its own: whoever asks it to leave the
// buttons of a message as they are changes nothing, and is answered in one of three ways. Numbers only grow, so only those
// after the newest one known before the send are asked about. Why it is so: docs/decisions/0026.

/** How many questions one search has, and of how many numbers it goes through: most are known to be other messages. */
const MOST_QUESTIONS = 60;
const MOST_NUMBERS = 2_000;
/**
 * And none further beyond the newest one known: what we were not told of are other uncertain sends, one in a chat at most,
 * and in basic groups what bots do not get. What Telegram has still to tell us comes on top.
 */
const BEYOND_NEWEST = 20;
/**
 * While it has more to tell, it is waited for: those messages stand below the one in question, so there would be a
 * question for each of them, or there would be more of them than there are questions.
 */
const MOST_UNTOLD = 20;
const UNTOLD_RETRY_MS = 1_000;
/** Not for ever: somebody else may be given what is ours. */
const UNTOLD_MS = 60_000;
/** Where it is flooded, Telegram keeps a send for up to 8 s before it does it, also when nobody waits any longer. */
const KEPT_MS = 10_000;

/** With how far the search has come. */
interface Mark extends SendMark {
  /** Since when Telegram has more to tell than is asked about. */
  untoldSince?: number;
  /** While it is looked for: when that began. */
  since?: number;
  /** Who is to be asked about which number next, and about which last: null until Telegram has told enough. */
  asking?: [bot: number, number: number, last: number | null][];
  /** How many questions were asked. */
  asked?: number;
  /** What was asked leaves it open. */
  open?: true;
}

type Answer =
  | 'ours'
  /** Somebody else's message. */
  | 'foreign'
  /** No message of this chat has the number. */
  | 'nobodys'
  /** This bot cannot be asked about this chat. */
  | 'elsewhere'
  /** No bot can be. */
  | 'impossible'
  | { failure: Failure };

type Unreachable = Extract<FoundSent, { kind: 'unreachable' }>;

export function createFinding({
  bots,
  newest,
  clock,
}: {
  bots: Bots;
  newest: Newest;
  clock: Clock;
}): Required<Pick<Channel, 'findSent'>> {
  const startedAt = clock.now();

  /** Who may have sent it, and from which number on. */
  function begun(mark: Mark, to: Recipient, { speaker, appearance }: FindOptions) {
    const known = new Map(mark.newest);
    const senders = bots.senders(to, speaker ?? appearance?.personaId).map((bot) => bot.our().id);
    const asking = senders.flatMap((id): [number, number, null][] => {
      const number = known.get(id);
      return number === undefined ? [] : [[id, number + 1, null]];
    });
    // One of whose messages nothing is known cannot be asked. That leaves it open, unless another goes before it.
    return { asking, open: asking[0]?.[0] !== senders[0] };
  }

  /** The newest number of a bot's that was known before the send. */
  function knownBefore(bot: Bot, { newest: known }: Mark): number {
    return new Map(known).get(bot.our().id) ?? 0;
  }

  /**
   * The last number that it can have: numbers only grow, so it has none above that of a message of ours whose send began
   * when this one was over.
   */
  function lastFor(bot: Bot, mark: Mark, last: number): { number: number; isSure: boolean } {
    const later = newest.lastSent(bot.our(), mark.chat);
    if (later !== undefined && later.begunAt >= mark.at + KEPT_MS && later.number <= last) {
      return { number: later.number - 1, isSure: true };
    }
    return { number: last, isSure: last < knownBefore(bot, mark) + MOST_NUMBERS };
  }

  /** The last number to ask a bot about, as soon as Telegram has told nearly all that was said, or does not in time. */
  async function lastToAsk(
    bot: Bot,
    mark: Mark,
    signal: AbortSignal,
  ): Promise<{ last: number; isEnough: boolean } | Unreachable> {
    const untold = await untoldTo(bot, signal);
    if (typeof untold !== 'number') return later(untold.failure, mark);
    const now = clock.now();
    // A process before this one may have had no time to hear it.
    const untoldSince = Math.max(mark.untoldSince ?? now, startedAt);
    const isEnough = untold <= MOST_UNTOLD;
    if (!isEnough && now < untoldSince + UNTOLD_MS) {
      return {
        kind: 'unreachable',
        ...{ reason: 'Telegram has still to tell what was said meanwhile', retryAfterMs: UNTOLD_RETRY_MS },
        mark: JSON.stringify({ ...mark, untoldSince } satisfies Mark),
      };
    }
    const before = knownBefore(bot, mark);
    const known = Math.max(before, newest.number(bot.our(), mark.chat) ?? 0);
    const beyond = known + BEYOND_NEWEST + Math.min(untold, MOST_UNTOLD);
    return { last: Math.min(beyond, before + MOST_NUMBERS), isEnough };
  }

  return {
    async findSent(to, part, options) {
      const mark: Mark = JSON.parse(options.mark);
      // A group that became a supergroup has left its numbers behind; a long text and a file are two messages.
      // The longest text that it can have gone out with: another bot than the speaker's puts the name before it.
      const isTwo = part.file !== undefined && withSpeakerName(part, options).text.length > MOST_CAPTION;
      if (mark.chat !== to.address || isTwo) return { kind: 'untold' };
      const { since = clock.now() } = mark;
      let { asking = [], open = false } = mark.asking === undefined ? begun(mark, to, options) : mark;
      let { asked = 0 } = mark;
      const asFar = (): Mark => ({ ...mark, asking, asked, ...(open && { open }) });
      const more = (): FoundSent => ({ kind: 'more', mark: JSON.stringify({ ...asFar(), since }) });

      for (let [first, ...others] = asking; first !== undefined; [first, ...others] = asking) {
        const [id, number, most] = first;
        const bot = bots.all.find((each) => each.our().id === id);
        if (bot !== undefined && most === null) {
          const told = await lastToAsk(bot, asFar(), options.signal);
          if ('kind' in told) return told;
          open ||= !told.isEnough;
          asking = [[id, number, told.last], ...others];
          return more();
        }
        const last = bot && most !== null ? lastFor(bot, mark, most) : undefined;
        if (bot === undefined || last === undefined || number > last.number) {
          open ||= last?.isSure !== true;
          asking = others;
          continue;
        }
        const platformMessageId = messageIdOf(bot.our(), number);
        const goOn: Mark['asking'] = [...others, [id, number + 1, most]];
        if (options.recorded.has(platformMessageId)) {
          asking = goOn;
          continue;
        }
        if (asked >= MOST_QUESTIONS) return { kind: 'untold' };
        const answer = await ask(bot, to, number, part, options.signal);
        if (typeof answer === 'object') return later(answer.failure, asFar());
        asked++;
        if (answer === 'ours') return { kind: 'found', platformMessageId };
        if (answer === 'impossible') return { kind: 'untold' };
        open ||= answer === 'elsewhere' && mark.newest.length < bots.all.length;
        asking = answer === 'elsewhere' ? others : goOn;
        // Where all bots have the same numbers, the others need not be asked about this one.
        if (answer === 'nobodys' && isShared(to.address)) {
          asking = asking.map(([other, at, end]) => [other, at === number ? at + 1 : at, end]);
        }
        if (asking.length > 0) return more();
      }

      if (open) return { kind: 'untold' };
      // Whoever was asked before that may have been asked too early.
      if (since >= mark.at + KEPT_MS) return { kind: 'absent' };
      // Then everything is asked once more.
      const { at, chat, newest: known } = mark;
      return {
        kind: 'unreachable',
        reason: 'Telegram may still be about to send it',
        retryAfterMs: Math.max(0, at + KEPT_MS - clock.now()),
        mark: JSON.stringify({ at, chat, newest: known } satisfies Mark),
      };
    },
  };
}

function later(failure: Failure, mark: Mark): Unreachable {
  const { reason, retryAfterMs } = failure;
  const wait = retryAfterMs === null ? {} : { retryAfterMs };
  return { kind: 'unreachable', reason, mark: JSON.stringify(mark), ...wait };
}

/** How much Telegram has still to tell a bot; also where it waits for a webhook to be called. */
async function untoldTo(bot: Bot, signal: AbortSignal): Promise<number | { failure: Failure }> {
  try {
    const info = await bot.api.call((raw, ended) => raw.getWebhookInfo(ended), { signal });
    return Number.isInteger(info.pending_update_count) ? info.pending_update_count : 0;
  } catch (error) {
    const failure = bot.api.failure(error);
    // A server that does not know the question tells of nothing else either; whether this bot may ask is seen below.
    if (isMethodUnknown(failure) || isLockedOut(failure)) return 0;
    return sendResult(failure).kind === 'unreachable' ? { failure } : 0;
  }
}

/** Asks a bot whose message a number is, by giving it the buttons that the one in question has. */
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
    await bot.api.call((raw, ended) => raw.editMessageReplyMarkup(request, ended), {
      signal,
      chat: to.address,
    });
    // It had other buttons, so it is another message of ours; but where ours has some, they may come back differently.
    return part.choices === undefined ? 'foreign' : 'ours';
  } catch (error) {
    const failure = bot.api.failure(error);
    if (isNotModified(failure)) return 'ours';
    if (isNobodys(failure)) return 'nobodys';
    if (isForeign(failure)) return 'foreign';
    if (failure.migratedTo !== null || isMethodUnknown(failure)) return 'impossible';
    if (isNotThere(failure) || (bot.personaId !== null && isLockedOut(failure))) return 'elsewhere';
    // What Telegram refuses to change for any other reason cannot be told to be ours.
    return sendResult(failure).kind === 'unreachable' ? { failure } : 'impossible';
  }
}
