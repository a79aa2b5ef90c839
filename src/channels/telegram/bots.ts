/**
 * Ids of messages as the rest of the gateway knows them, made of the numbers that Telegram gives them. In a supergroup a
 * message has the same number for every bot; elsewhere each bot has numbers of its own: there, an id is the id of a
 * persona's bot, a colon and the number. And the newest of these numbers, as far as we were told: a bot's messages are
 * counted in one row over all its direct chats and basic groups, those of a supergroup in a row of its own, and they
 * only grow. From these, a send that was cut off is looked for (`find-sent.ts`).
 */

import type { Recipient } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import type { Address } from '../../core/message.js';
import type { Outward } from '../../core/network.js';
import { onAbort, withDeadline } from '../kit/abort.js';
import { bounded } from '../kit/bounded.js';
import { createLookupCache, isAdministrator } from '../kit/lookup-cache.js';
import { type BotApi, createBotApi } from './api.js';
import { isNotThere } from './failure.js';
import type { TelegramOptions } from './options.js';
import { chatId } from './outbound.js';

/** The ids of supergroups and channels are below this. */
const SHARED_BELOW = -1_000_000_000_000;

/**
 * The message's number, and which persona's bot has it: null for the main bot, and where all have the same. null for an
 * id that is none of a message (a button that was pressed).
 */
export function readMessageId(id: string): { bot: number | null; number: number } | null {
  const [, bot, number] = /^(?:(\d{1,15}):)?(-?\d{1,15})$/.exec(id) ?? [];
  if (number === undefined) return null;
  return { bot: bot === undefined ? null : Number(bot), number: Number(number) };
}

/** The id of a message that one of our bots knows by that number. */
export function messageIdOf(
  { id, personaId }: Pick<OurBot, 'id' | 'personaId'>,
  number: number | string,
): string {
  return personaId === undefined ? String(number) : `${id}:${number}`;
}

/** The id of a press on a button, among those of messages. */
export function pressIdOf(bot: Pick<OurBot, 'id' | 'personaId'>, { id }: { id: string }): string {
  return messageIdOf(bot, `press-${id}`);
}

/** Whether all bots have the same numbers for the messages of a chat. */
export function isShared(chat: Address | number): boolean {
  const id = Number(chat);
  // A public group or channel may be addressed by its name.
  return Number.isNaN(id) || id < SHARED_BELOW;
}

/** The id of a message that a bot was told of by that number. */
export function idOf(number: number, chat: { id: number }, bot: OurBot): string {
  return isShared(chat.id) ? String(number) : messageIdOf(bot, number);
}

/** The message's number to one bot in a chat; null where that bot does not know it. */
export function numberFor(
  { id, personaId }: Pick<OurBot, 'id' | 'personaId'>,
  chat: Address,
  messageId: string,
): number | null {
  const read = readMessageId(messageId);
  if (read === null) return null;
  const own = personaId === undefined ? null : id;
  return read.bot === own || isShared(chat) ? read.number : null;
}

// Our bots: the main one, and one for every persona that has a token. Together they are one account.

/** One of our bots, as messages name it. */
export interface OurBot {
  id: number;
  /** Empty until it has logged in. */
  username: string;
  /** Whose it is; left out for the main bot. */
  personaId?: PersonaId;
}

/** Whose update it is: the bot that got it, and all of ours, of which it may speak. */
export interface Receiver {
  bot: OurBot;
  ours: readonly OurBot[];
}

export interface Bot {
  /** Whose it is; null for the main bot. */
  readonly personaId: PersonaId | null;
  readonly api: BotApi;
  our(): OurBot;
  /** The name that people see; empty until it has logged in. */
  name(): string;
  /** Logs in, once; rejects when it cannot. */
  identity(signal: AbortSignal): Promise<OurBot>;
}

/** A persona's bot that does not log in is not waited for any longer. */
const PATIENCE_MS = 3_000;
const ABSENT_MS = 300_000;
const MOST_CHATS = 10_000;

export type Bots = ReturnType<typeof createBots>;

export function createBots(options: TelegramOptions, parts: { clock: Clock; log: Log; outward: Outward }) {
  const { clock } = parts;
  const main = createBot(options, null, options.token, parts);
  const personas = Object.entries(options.personaTokens).map(([personaId, token]) =>
    createBot(options, personaId, token, parts),
  );
  const all = [main, ...personas];
  const absentUntil = bounded<Address, Map<Bot, number>>(MOST_CHATS);
  const lastToHear = bounded<Address, Bot>(MOST_CHATS);
  let loggedIn: Promise<void> | null = null;

  async function logInAll(signal: AbortSignal): Promise<void> {
    const tried = Promise.allSettled(personas.map((bot) => bot.identity(signal)));
    const aborted = (over: AbortSignal) => new Promise<void>((resolve) => onAbort(over, resolve));
    await withDeadline(clock, PATIENCE_MS, signal, (over) => Promise.race([tried, aborted(over)]));
  }

  return {
    main,
    /** In the order of the configuration. */
    personas,
    all,
    /** By its id; null is the main one. */
    withId: (id: number | null) => (id === null ? main : personas.find((bot) => bot.our().id === id)),
    ours: () => all.map((bot) => bot.our()),

    /**
     * Resolves when every persona's bot has tried to log in, or after a few seconds: until then it is not noticed when
     * a message names one.
     */
    async loggedIn(signal: AbortSignal): Promise<void> {
      if (personas.length === 0) return;
      loggedIn ??= logInAll(signal);
      await loggedIn;
    },

    /** A bot is in a chat, and was the last that somebody spoke to. */
    heard(bot: Bot, chat: Address): void {
      absentUntil.get(chat)?.delete(bot);
      lastToHear.set(chat, bot);
    },

    /** A bot was not allowed to say anything there: for some minutes, others are tried before it. */
    absent(bot: Bot, chat: Address): void {
      const bots = absentUntil.get(chat) ?? new Map<Bot, number>();
      bots.set(bot, clock.now() + ABSENT_MS);
      absentUntil.set(chat, bots);
    },

    /**
     * Who may send there, best first, never empty: the speaking persona's own bot; for the gateway's own words in a
     * direct chat the one that was spoken to; the main bot; and where that is not there either, whichever is.
     */
    senders({ address, kind }: Recipient, speaker: PersonaId | undefined): Bot[] {
      const own = personas.find((bot) => bot.personaId === speaker);
      const last = lastToHear.get(address);
      const first = speaker === undefined && kind === 'direct' ? last : own;
      const order = [first, main, last, ...personas].filter((bot) => bot !== undefined);
      const each = [...new Set(order)];
      const absences = absentUntil.get(address);
      const present = each.filter((bot) => (absences?.get(bot) ?? 0) <= clock.now());
      return present.length > 0 ? present : each;
    },

    close(): void {
      for (const bot of all) bot.api.close();
    },
  };
}

function createBot(
  { apiRoot, mode }: TelegramOptions,
  personaId: PersonaId | null,
  token: string,
  { clock, log, outward }: { clock: Clock; log: Log; outward: Outward },
): Bot {
  const setting = `channels.telegram.${personaId === null ? 'token' : `persona_tokens.${personaId}`}`;
  const api = createBotApi({ apiRoot, token, setting }, { clock, log, outward });
  const whose = personaId === null ? {} : { personaId };
  // A bot's id stands in its token.
  let our: OurBot = { id: Number(token.split(':', 1)[0]), username: '', ...whose };
  let name = '';
  let loggedIn: Promise<OurBot> | null = null;

  async function logIn(signal: AbortSignal): Promise<OurBot> {
    const { id, username, first_name } = await api.call((raw, ended) => raw.getMe(ended), { signal });
    name = first_name;
    our = { id, username: username ?? '', ...whose };
    const fields = { bot: `@${username}`, mode: personaId === null ? mode : 'polling' };
    log.info({ ...logFields(personaId), ...fields }, 'logged in');
    return our;
  }

  return {
    personaId,
    api,
    our: () => our,
    name: () => name,
    identity(signal) {
      loggedIn ??= logIn(signal).catch((error: unknown) => {
        loggedIn = null;
        throw error;
      });
      return loggedIn;
    },
  };
}

/** Which of several bots a line of the log is about. */
export function logFields(personaId: PersonaId | null): { channel: string; persona?: PersonaId } {
  return personaId === null ? { channel: 'telegram' } : { channel: 'telegram', persona: personaId };
}

// Who manages a group: asked of Telegram by the first of our bots that is in it, and remembered for a while.

/** Of how many groups it is remembered. */
const MOST_GROUPS = 1_000;

/** Whether somebody is one of them. Rejects when Telegram cannot be asked. */
export function createAdministrators(
  { all: bots }: Bots,
  clock: Clock,
): (chat: Address, sender: Address) => Promise<boolean> {
  async function ask(chat: Address): Promise<Set<Address>> {
    const group = { chat_id: chatId(chat) };
    for (const [index, { api }] of bots.entries()) {
      try {
        const members = await api.call((raw, ended) => raw.getChatAdministrators(group, ended));
        return new Set(members.map((member) => String(member.user.id)));
      } catch (error) {
        if (index === bots.length - 1 || !isNotThere(api.failure(error))) throw error;
      }
    }
    return new Set();
  }

  const asked = createLookupCache(ask, { most: MOST_GROUPS, clock });
  return async (chat, sender) =>
    // Who posts as the group itself is an anonymous administrator of it.
    sender === chat || isAdministrator(asked, chat, (administrators) => administrators.has(sender));
}
