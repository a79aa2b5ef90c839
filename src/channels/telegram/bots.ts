/**
 * Our bots: the main one, and one for every persona with a token. Together they are one account. All bots have
 * the same number for a supergroup's message. Elsewhere each bot counts on its own, through all its chats: there,
 * a message's id is the id of the persona's bot, a colon and the number.
 */
import { LRUCache } from 'lru-cache';
import type { Recipient } from '../../core/channel.js';
import { type Clock, orAfter } from '../../core/clock.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import type { Address } from '../../core/message.js';
import type { Outward } from '../../core/network.js';
import { type BotApi, createBotApi } from './api.js';
import type { TelegramOptions } from './options.js';

/** Ids of supergroups and channels are below this. */
const SHARED_BELOW = -1_000_000_000_000;
/** How long a message waits for the personas' bots to log in. */
const LOGIN_MS = 3_000;
const ABSENT_MS = 300_000;
const MOST_CHATS = 10_000;
/** A sent message this far below the newest belongs to a restarted sequence, of another bot. */
const ANOTHER_ROW = 1_000;

export interface OurBot {
  id: number;
  /** Empty until logged in. */
  username: string;
  /** The persona it belongs to; none for the main bot. */
  personaId?: PersonaId | null;
}

type Surroundings = { clock: Clock; log: Log; outward: Outward };

export class Bot implements OurBot {
  readonly api: BotApi;
  /** Log fields that tell several bots apart. */
  readonly fields: { channel: string; persona?: PersonaId };
  id: number;
  username = '';
  /** Display name; empty until logged in. */
  name = '';
  #loggedIn: Promise<void> | null = null;

  constructor(
    private readonly options: TelegramOptions,
    readonly personaId: PersonaId | null,
    token: string,
    private readonly host: Surroundings,
  ) {
    const setting = `channels.telegram.${personaId === null ? 'token' : `persona_tokens.${personaId}`}`;
    this.api = createBotApi(options.apiRoot, { token, setting }, host);
    // A token begins with the bot's id.
    this.id = Number(token.split(':', 1)[0]);
    this.fields = { channel: 'telegram', ...(personaId === null ? {} : { persona: personaId }) };
  }

  /** Once; if it fails, the next call tries again. */
  logIn(signal: AbortSignal): Promise<void> {
    this.#loggedIn ??= this.#logIn(signal).catch((error: unknown) => {
      this.#loggedIn = null;
      throw error;
    });
    return this.#loggedIn;
  }

  async #logIn(signal: AbortSignal): Promise<void> {
    const me = await this.api.call((raw, ended) => raw.getMe(ended), { signal });
    this.id = me.id;
    this.username = me.username ?? '';
    this.name = me.first_name;
    const mode = this.personaId === null ? this.options.mode : 'polling';
    this.host.log.info({ ...this.fields, bot: `@${me.username}`, mode }, 'logged in');
  }
}

/** State when a send begins, stored with it as JSON until its outcome is known. */
export interface Watermark {
  /** When it began, ms. */
  at: number;
  chat: Address;
  /** Newest number known to each bot, by the bot's id. */
  newest: [bot: number, number: number][];
}

export type Bots = ReturnType<typeof createBots>;

export function createBots(options: TelegramOptions, host: Surroundings) {
  const { clock } = host;
  const main = new Bot(options, null, options.token, host);
  const personas = Object.entries(options.personaTokens).map(
    ([personaId, token]) => new Bot(options, personaId, token, host),
  );
  const all = [main, ...personas];
  const absentUntil = new LRUCache<string, number>({ max: MOST_CHATS });
  const whereOf = (bot: Bot, chat: Address) => `${bot.id} ${chat}`;
  const lastToHear = new LRUCache<Address, Bot>({ max: MOST_CHATS });
  let loggedIn: Promise<void> | null = null;

  /** Finds a bot by its id; null is the main one. */
  const withId = (id: number | null) => (id === null ? main : personas.find((bot) => bot.id === id));

  return {
    main,
    personas,
    all,
    withId,
    ...createNumbers(all, withId, clock),

    /** Names under which people see our account. A persona's bot has the persona's name, which addresses it. */
    names: () => (main.name === '' ? [] : [main.name]),

    /** Resolves when every persona's bot has tried to log in, or after a few seconds. */
    async loggedIn(signal: AbortSignal): Promise<void> {
      if (personas.length === 0) return;
      loggedIn ??= orAfter(
        Promise.allSettled(personas.map((bot) => bot.logIn(signal))),
        LOGIN_MS,
        clock,
        signal,
      );
      await loggedIn;
    },

    /** Notes that a bot is in a chat, and was the last addressed there. */
    heard(bot: Bot, chat: Address): void {
      absentUntil.delete(whereOf(bot, chat));
      lastToHear.set(chat, bot);
    },

    /** Notes that a bot may not write there: for some minutes, others are tried first. */
    absent(bot: Bot, chat: Address): void {
      absentUntil.set(whereOf(bot, chat), clock.now() + ABSENT_MS);
    },

    /** Never empty, best first: the speaker's own bot, the one last addressed in a direct chat, the main bot. */
    senders({ address, kind }: Recipient, speaker: PersonaId | undefined): Bot[] {
      const own = personas.find((bot) => bot.personaId === speaker);
      const last = lastToHear.get(address);
      const first = speaker === undefined && kind === 'direct' ? last : own;
      const order = [first, main, last, ...personas].filter((bot) => bot !== undefined);
      const each = [...new Set(order)];
      const present = each.filter((bot) => (absentUntil.get(whereOf(bot, address)) ?? 0) <= clock.now());
      return present.length > 0 ? present : each;
    },

    close(): void {
      for (const bot of all) bot.api.close();
    },
  };
}

/** The newest message numbers, and our own newest messages, by sequence: numbers only grow. */
function createNumbers(all: readonly Bot[], withId: (id: number | null) => Bot | undefined, clock: Clock) {
  const newest = new LRUCache<string, number>({ max: MOST_CHATS });
  const lastSent = new LRUCache<string, { number: number; begunAt: number }>({ max: MOST_CHATS });
  const rowOf = ({ id }: OurBot, chat: Address) => (isShared(chat) ? chat : `bot ${id}`);
  const learn = (row: string, number: number) => void newest.set(row, Math.max(number, newest.get(row) ?? 0));

  function locate(chat: Address, platformMessageId: string): { row: string; number: number } | null {
    const id = readMessageId(platformMessageId);
    const bot = id && withId(id.bot);
    return id && bot ? { row: rowOf(bot, chat), number: id.number } : null;
  }

  return {
    newest: (bot: OurBot, chat: Address) => newest.get(rowOf(bot, chat)),
    lastSent: (bot: OurBot, chat: Address) => lastSent.get(rowOf(bot, chat)),

    /** Learns the numbers of messages in the store. */
    recall(recorded: readonly { address: Address; platformMessageId: string }[]): void {
      for (const { address, platformMessageId } of recorded) {
        const known = locate(address, platformMessageId);
        if (known !== null) learn(known.row, known.number);
      }
    },

    /** Learns the numbers of messages in a bot's updates, ours and others’. */
    learn(bot: Bot, updates: readonly unknown[]): void {
      for (const update of updates) {
        for (const { chat, number } of numbersIn(update)) learn(rowOf(bot, String(chat)), number);
      }
    },

    /** Notes a message of ours, and when its send began. */
    sent(chat: Address, platformMessageId: string, begunAt: number): void {
      const known = locate(chat, platformMessageId);
      if (known === null) return;
      const { row, number } = known;
      if (number < (newest.get(row) ?? 0) - ANOTHER_ROW) newest.set(row, number);
      else learn(row, number);
      lastSent.set(row, { number, begunAt });
    },

    watermark({ address: chat }: Recipient): string | null {
      const known = all.flatMap((bot): Watermark['newest'] => {
        const number = newest.get(rowOf(bot, chat));
        return number === undefined ? [] : [[bot.id, number]];
      });
      if (known.length === 0) return null;
      return JSON.stringify({ at: clock.now(), chat, newest: known } satisfies Watermark);
    },
  };
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

/** The message's number, and the bot that has it if not shared (null: main). null for a button press. */
export function readMessageId(id: string): { bot: number | null; number: number } | null {
  const [, bot, number] = /^(?:(\d{1,15}):)?(-?\d{1,15})$/.exec(id) ?? [];
  if (number === undefined) return null;
  return { bot: bot === undefined ? null : Number(bot), number: Number(number) };
}

/** Id of a message that one of our bots knows by that number. */
export function messageIdOf({ id, personaId }: OurBot, number: number | string): string {
  return personaId ? `${id}:${number}` : String(number);
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
  return read.bot === (personaId ? id : null) || isShared(chat) ? read.number : null;
}
