/**
 * Whether a message has arrived whose send was cut off, or whose process ended meanwhile. Telegram has no key by which it
 * would know a message again, but it tells a bot which numbers are messages of its own: whoever asks it to leave the
 * buttons of a message as they are changes nothing, and is answered in one of three ways. Numbers only grow, so only those
 * after the newest one known before the send are asked about. Why it is so: docs/decisions/0026.
 */
import type { Channel, FindOptions, FoundSent, Part, Recipient } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Address } from '../../core/message.js';
import { named } from '../kit/named.js';
import type { Bot, Bots } from './bots.js';
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
import { keyboardOf } from './keyboard.js';
import { isShared, messageIdOf } from './message-id.js';
import type { Newest } from './newest.js';
import { chatId, MAX_CAPTION } from './outbound.js';

/** How many questions one search has, and of how many numbers it goes through: most are known to be other messages. */
const MOST_QUESTIONS = 60;
const MOST_NUMBERS = 2_000;
/**
 * And none further beyond the newest one known: what we were not told of are other uncertain sends, one in a chat at most,
 * and in basic groups what bots do not get.
 */
const BEYOND_NEWEST = 20;
/** Where it is flooded, Telegram keeps a send for up to 8 s before it does it, also when nobody waits any longer. */
const KEPT_MS = 10_000;

/** What is stored with a send. */
interface Mark {
  /** When it began, ms. */
  at: number;
  chat: Address;
  /** The newest number known, by the bot's id. */
  newest: [bot: number, number: number][];
  /** While it is looked for: who is to be asked about which number next, and the last one to ask about. */
  next?: [bot: number, number: number, last: number][];
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

export function createFinding({
  bots,
  newest,
  clock,
}: {
  bots: Bots;
  newest: Newest;
  clock: Clock;
}): Required<Pick<Channel, 'mark' | 'findSent'>> {
  /** Who may have sent it, and the numbers that it may have. */
  function begun(mark: Mark, to: Recipient, { speaker, appearance }: FindOptions) {
    const known = new Map(mark.newest);
    const senders = bots.senders(to, speaker ?? appearance?.personaId).map((bot) => bot.our().id);
    const next = senders.flatMap((id): [number, number, number][] => {
      const number = known.get(id);
      return number === undefined ? [] : [[id, number + 1, number + MOST_NUMBERS]];
    });
    // One of whose messages nothing is known cannot be asked. That leaves it open, unless another goes before it.
    return { next, open: next[0]?.[0] !== senders[0] };
  }

  /**
   * The last number that it can have: numbers only grow, so it has none above that of a message of ours whose send began
   * when this one was over.
   */
  function lastFor(bot: Bot, { at, chat }: Mark, last: number): { number: number; isSure: boolean } {
    const later = newest.lastSent(bot.our(), chat);
    if (later !== undefined && later.begunAt >= at + KEPT_MS && later.number <= last) {
      return { number: later.number - 1, isSure: true };
    }
    const known = Math.max(last - MOST_NUMBERS, newest.number(bot.our(), chat) ?? 0);
    const beyond = known + BEYOND_NEWEST;
    return { number: Math.min(last, beyond), isSure: beyond <= last };
  }

  return {
    mark({ address }) {
      const known = bots.all.flatMap((bot): Mark['newest'] => {
        const number = newest.number(bot.our(), address);
        return number === undefined ? [] : [[bot.our().id, number]];
      });
      if (known.length === 0) return null;
      return JSON.stringify({ at: clock.now(), chat: address, newest: known } satisfies Mark);
    },

    async findSent(to, part, options) {
      const mark: Mark = JSON.parse(options.mark);
      // A group that became a supergroup has left its numbers behind; a long text and a file are two messages.
      // The longest text that it can have gone out with: another bot than the speaker's puts the name before it.
      const isTwo = part.file !== undefined && named(part, options).text.length > MAX_CAPTION;
      if (mark.chat !== to.address || isTwo) return { kind: 'untold' };
      let { next = [], open = false } = mark.next === undefined ? begun(mark, to, options) : mark;
      let { asked = 0 } = mark;

      for (let [first, ...others] = next; first !== undefined; [first, ...others] = next) {
        const [id, number, most] = first;
        const bot = bots.all.find((each) => each.our().id === id);
        const last = bot && lastFor(bot, mark, most);
        if (bot === undefined || last === undefined || number > last.number) {
          open ||= last?.isSure !== true;
          next = others;
          continue;
        }
        const platformMessageId = messageIdOf(bot.our(), number);
        const goOn: Mark['next'] = [...others, [id, number + 1, most]];
        if (options.recorded.has(platformMessageId)) {
          next = goOn;
          continue;
        }
        if (asked >= MOST_QUESTIONS) return { kind: 'untold' };
        const answer = await ask(bot, to, number, part, options.signal);
        if (typeof answer !== 'object') asked++;
        if (answer === 'ours') return { kind: 'found', platformMessageId };
        if (answer === 'impossible') return { kind: 'untold' };
        if (typeof answer === 'object')
          return later(answer.failure, { ...mark, next, asked, ...(open && { open }) });
        open ||= answer === 'elsewhere' && mark.newest.length < bots.all.length;
        next = answer === 'elsewhere' ? others : goOn;
        // Where all bots have the same numbers, the others need not be asked about this one.
        if (answer === 'nobodys' && isShared(to.address)) {
          next = next.map(([other, at, end]) => [other, at === number ? at + 1 : at, end]);
        }
        if (next.length > 0) {
          return {
            kind: 'more',
            mark: JSON.stringify({ ...mark, next, asked, ...(open && { open }) } satisfies Mark),
          };
        }
      }

      if (open) return { kind: 'untold' };
      const stillKept = mark.at + KEPT_MS - clock.now();
      if (stillKept <= 0) return { kind: 'absent' };
      // Then everything is asked once more.
      const { next: _next, asked: _asked, ...again } = mark;
      return {
        kind: 'unreachable',
        ...{ reason: 'Telegram may still be about to send it', retryAfterMs: stillKept },
        mark: JSON.stringify(again satisfies Mark),
      };
    },
  };
}

function later(failure: Failure, mark: Mark): FoundSent {
  const { reason, retryAfterMs } = failure;
  const wait = retryAfterMs === null ? {} : { retryAfterMs };
  return { kind: 'unreachable', reason, mark: JSON.stringify(mark), ...wait };
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
