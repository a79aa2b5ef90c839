/**
 * Our bots: the main one, and one for every persona with a token. Together they are one account. A
 * supergroup's message has the same number for every bot. Elsewhere each bot has its own numbers: there, a
 * message's id is the id of the persona's bot, a colon and the number.
 */
import { LRUCache } from 'lru-cache';
import type { Recipient } from '../../core/channel.js';
import { type Clock, onAbort, withDeadline } from '../../core/clock.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import type { Address } from '../../core/message.js';
import type { Outward } from '../../core/network.js';
import { createLookupCache, isAdministrator } from '../kit/lookup-cache.js';
import { type BotApi, createBotApi } from './api.js';
import { isNotThere } from './failure.js';
import type { TelegramOptions } from './options.js';
import { chatId } from './outbound.js';

/** Ids of supergroups and channels are below this. */
const SHARED_BELOW = -1_000_000_000_000;
/** How long a message waits for the personas' bots to log in. */
const LOGIN_MS = 3_000;
const ABSENT_MS = 300_000;
const MOST_CHATS = 10_000;
/** Size of the cache of administrators, in groups. */
const MOST_GROUPS = 1_000;

export interface OurBot {
  id: number;
  /** Empty until logged in. */
  username: string;
  /** The persona it belongs to. Absent: the main bot. */
  personaId?: PersonaId;
}

/** The bot that got an update, and all of our bots, which the update may mention. */
export interface Receiver {
  bot: OurBot;
  ours: readonly OurBot[];
}

export interface Bot {
  /** The persona it belongs to; null for the main bot. */
  readonly personaId: PersonaId | null;
  readonly api: BotApi;
  our(): OurBot;
  /** Display name; empty until logged in. */
  name(): string;
  /** Logs in once; rejects on failure. */
  identity(signal: AbortSignal): Promise<OurBot>;
}

export type Bots = ReturnType<typeof createBots>;

export function createBots(options: TelegramOptions, host: { clock: Clock; log: Log; outward: Outward }) {
  const { clock } = host;
  const main = createBot(options, null, options.token, host);
  const personas = Object.entries(options.personaTokens).map(([personaId, token]) =>
    createBot(options, personaId, token, host),
  );
  const all = [main, ...personas];
  const absentUntil = new LRUCache<Address, Map<Bot, number>>({ max: MOST_CHATS });
  const lastToHear = new LRUCache<Address, Bot>({ max: MOST_CHATS });
  const administrators = createLookupCache(administratorsOf, { most: MOST_GROUPS, clock });
  let loggedIn: Promise<void> | null = null;

  async function logInAll(signal: AbortSignal): Promise<void> {
    const tried = Promise.allSettled(personas.map((bot) => bot.identity(signal)));
    await withDeadline(clock, LOGIN_MS, signal, async (over) => {
      await Promise.race([tried, new Promise<void>((resolve) => onAbort(over, resolve))]);
    });
  }

  /** Asks Telegram through the first of our bots that is in the group. */
  async function administratorsOf(chat: Address): Promise<Set<Address>> {
    const group = { chat_id: chatId(chat) };
    for (const [index, { api }] of all.entries()) {
      try {
        const members = await api.call((raw, ended) => raw.getChatAdministrators(group, ended));
        return new Set(members.map((member) => String(member.user.id)));
      } catch (error) {
        if (index === all.length - 1 || !isNotThere(api.failure(error))) throw error;
      }
    }
    return new Set();
  }

  return {
    main,
    personas,
    all,
    /** Finds a bot by its id; null is the main one. */
    withId: (id: number | null) => (id === null ? main : personas.find((bot) => bot.our().id === id)),
    ours: () => all.map((bot) => bot.our()),

    /** Resolves when every persona's bot has tried to log in, or after a few seconds. */
    async loggedIn(signal: AbortSignal): Promise<void> {
      if (personas.length === 0) return;
      loggedIn ??= logInAll(signal);
      await loggedIn;
    },

    /** Notes that a bot is in a chat, and was the last addressed there. */
    heard(bot: Bot, chat: Address): void {
      absentUntil.get(chat)?.delete(bot);
      lastToHear.set(chat, bot);
    },

    /** Notes that a bot may not write there: for some minutes, others are tried first. */
    absent(bot: Bot, chat: Address): void {
      const bots = absentUntil.get(chat) ?? new Map<Bot, number>();
      bots.set(bot, clock.now() + ABSENT_MS);
      absentUntil.set(chat, bots);
    },

    /**
     * Never empty, best first: the speaker's own bot, the one last addressed in a direct chat, the main bot.
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

    /** A sender posting as the group is its anonymous administrator. Rejects if Telegram cannot be asked. */
    isAdministrator: async (chat: Address, sender: Address): Promise<boolean> =>
      sender === chat || isAdministrator(administrators, chat, (known) => known.has(sender)),

    close(): void {
      for (const bot of all) bot.api.close();
    },
  };
}

function createBot(
  { apiRoot, mode }: TelegramOptions,
  personaId: PersonaId | null,
  token: string,
  host: { clock: Clock; log: Log; outward: Outward },
): Bot {
  const setting = `channels.telegram.${personaId === null ? 'token' : `persona_tokens.${personaId}`}`;
  const api = createBotApi({ apiRoot, token, setting }, host);
  const whose = personaId === null ? {} : { personaId };
  // A token begins with the bot's id.
  let our: OurBot = { id: Number(token.split(':', 1)[0]), username: '', ...whose };
  let name = '';
  let loggedIn: Promise<OurBot> | null = null;

  async function logIn(signal: AbortSignal): Promise<OurBot> {
    const { id, username, first_name } = await api.call((raw, ended) => raw.getMe(ended), { signal });
    name = first_name;
    our = { id, username: username ?? '', ...whose };
    const fields = { bot: `@${username}`, mode: personaId === null ? mode : 'polling' };
    host.log.info({ ...logFields(personaId), ...fields }, 'logged in');
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

/** Log fields that tell several bots apart. */
export function logFields(personaId: PersonaId | null): { channel: string; persona?: PersonaId } {
  return personaId === null ? { channel: 'telegram' } : { channel: 'telegram', persona: personaId };
}

/** The message's number, and the bot that has it if not shared (null: main). null for a button press. */
export function readMessageId(id: string): { bot: number | null; number: number } | null {
  const [, bot, number] = /^(?:(\d{1,15}):)?(-?\d{1,15})$/.exec(id) ?? [];
  if (number === undefined) return null;
  return { bot: bot === undefined ? null : Number(bot), number: Number(number) };
}

/** Id of a message that one of our bots knows by that number. */
export function messageIdOf({ id, personaId }: OurBot, number: number | string): string {
  return personaId === undefined ? String(number) : `${id}:${number}`;
}

/** Id of a button press, in the namespace of message ids. */
export function pressIdOf(bot: OurBot, { id }: { id: string }): string {
  return messageIdOf(bot, `press-${id}`);
}

/** Whether all bots have the same message numbers in a chat. */
export function isShared(chat: Address | number): boolean {
  const id = Number(chat);
  // A public group or channel may be addressed by its name.
  return Number.isNaN(id) || id < SHARED_BELOW;
}

export function idOf(number: number, chat: { id: number }, bot: OurBot): string {
  return isShared(chat.id) ? String(number) : messageIdOf(bot, number);
}

/** null if the bot does not know the message. */
export function numberFor({ id, personaId }: OurBot, chat: Address, messageId: string): number | null {
  const read = readMessageId(messageId);
  if (read === null) return null;
  const own = personaId === undefined ? null : id;
  return read.bot === own || isShared(chat) ? read.number : null;
}
