/**
 * A persona's own name and picture: its messages go through our webhook of the channel. There is one in each channel, found
 * by its owner, so that it is the same after a restart, else made. Where there can be none, the bot speaks.
 */
import * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import type { Mark, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import { cutAt } from '../../core/cut.js';
import type { InboundMessage } from '../../core/message.js';
import { discordText } from '../markdown/discord.js';
import type { Base, Call } from './api.js';
import { type Directory, type Identity, nameOf } from './directory.js';
import { CODE, type Failure, failureOf, isRefusal, MOST_NOTED, sendResult } from './failure.js';
import { type Author, authorOf, type Content, isShort, NEUTRAL_NAME, readsAs, roomOf } from './outbound.js';
import { byAge, fieldsOf, idOf, isSnowflake, listOf, textOf } from './payload.js';

/** For so long a channel is not asked again for what it refused. */
const BARRED_MS = 300_000;
/** A reply does not wait longer than this for the persona's own name. */
const PATIENCE_MS = 10_000;

export interface Webhook {
  id: string;
  /** Whoever has it speaks through the webhook. */
  token: string;
}

/** What is known of one channel. */
interface Known {
  webhook?: Webhook;
  /** Until then there can be none, unless roles or channels change. */
  barred?: { until: number; lifts: number };
  isTold?: boolean;
}

export type Webhooks = ReturnType<typeof createWebhooks>;

export function createWebhooks({ api, clock, log }: Base, identity: Identity) {
  const channels = new LRUCache<string, Known>({ max: MOST_NOTED });
  /** Those that we have spoken through; dead where Discord does not know them any more. */
  const ours = new LRUCache<string, 'alive' | 'dead'>({ max: MOST_NOTED });
  /** Two who ask at once must not make two. */
  const making = new Map<string, Promise<Webhook | null>>();

  const isDead = ({ id }: Webhook): boolean => ours.get(id) === 'dead';

  function note(channel: string, webhook: Webhook): Webhook {
    channels.set(channel, { webhook });
    ours.set(webhook.id, 'alive');
    return webhook;
  }

  async function find(channel: string, signal: AbortSignal): Promise<Webhook | null> {
    const { webhook } = channels.get(channel) ?? {};
    if (webhook !== undefined && !isDead(webhook)) return webhook;
    const me = await identity.ask(signal);
    const [found] = listOf<Discord.APIWebhook>(await api.get(`/channels/${channel}/webhooks`, signal))
      .filter(({ type, user, application_id: by }) => {
        const isOwn = fieldsOf<Discord.APIUser>(user).id === me.id || by === me.applicationId;
        return type === Discord.WebhookType.Incoming && isOwn;
      })
      .flatMap((told) => webhookOf(told) ?? [])
      .filter((each) => !isDead(each))
      .sort(byAge);
    return found === undefined ? null : note(channel, found);
  }

  async function make(channel: string, signal: AbortSignal): Promise<Webhook | null> {
    try {
      const there = await find(channel, signal);
      if (there !== null) return there;
      const path = `/channels/${channel}/webhooks`;
      const told = await api.call({ method: 'POST', path, body: { name: NEUTRAL_NAME } }, signal);
      const made = webhookOf(told);
      if (made === null) throw new Error('Discord made a webhook and does not say which');
      return note(channel, made);
    } catch (error) {
      const failure = failureOf(error);
      const { reason, retryAfterMs } = failure;
      const isLong = retryAfterMs !== null && retryAfterMs > PATIENCE_MS;
      if (!isRefusal(failure) && !isLong) throw error;
      bar(channel, reason, isLong ? retryAfterMs : BARRED_MS);
      return null;
    }
  }

  /** Nothing can be said through one here, for some minutes. */
  function bar(channel: string, reason: string, ms = BARRED_MS): void {
    const until = clock.now() + Math.min(ms, BARRED_MS);
    const known = channels.get(channel);
    channels.set(channel, { ...known, barred: { until, lifts: api.forbidden.lifts() }, isTold: true });
    const level = known?.isTold === true ? 'debug' : 'warn';
    log[level](
      { channel: 'discord', room: channel, reason },
      'webhook refused; the bot speaks for its personas (it needs Manage Webhooks)',
    );
  }

  return {
    /** Ours in this channel, if there is one. Rejects when Discord cannot be asked. */
    find,
    bar,
    /** The same, made if need be; null where there can be none now. */
    async take(channel: string, signal: AbortSignal): Promise<Webhook | null> {
      const { webhook, barred } = channels.get(channel) ?? {};
      if (barred !== undefined && barred.until > clock.now() && barred.lifts === api.forbidden.lifts())
        return null;
      if (webhook !== undefined && !isDead(webhook)) return webhook;
      const running = making.get(channel) ?? make(channel, signal).finally(() => making.delete(channel));
      making.set(channel, running);
      return running;
    },
    /** It says nothing more in this channel; perhaps it was moved to another one. */
    forget(channel: string, { id }: Webhook): void {
      const known = channels.get(channel);
      if (known?.webhook?.id === id) delete known.webhook;
    },
    /** Discord does not know it: whoever goes on using it is taken for an attacker. */
    bury: ({ id }: Webhook) => void ours.set(id, 'dead'),
    isDead,
    isOurs: (id: string): boolean => ours.has(id),
  };
}

function webhookOf(told: unknown): Webhook | null {
  const webhook = fieldsOf<Discord.APIWebhook & { token: string }>(told);
  const id = idOf(webhook.id);
  const token = textOf(webhook.token);
  return id === undefined || token === undefined ? null : { id, token };
}

/** With these the webhook is gone. */
const DEAD = new Set<number | null>([CODE.unknownWebhook, CODE.tokenExpired]);
/** With these no other message will be taken either. */
const CLOSED = new Set<number | null>([CODE.missingAccess, CODE.missingPermissions, CODE.tooManyWebhooks]);

/** Who said a message of ours. `named`: its text begins with the name. `lost`: its webhook is gone. */
export type SaidBy =
  | { kind: 'bot' }
  | { kind: 'webhook'; webhook: Webhook; thread: Record<string, string>; named: boolean }
  | { kind: 'lost'; reason: string };

const LOST: SaidBy = { kind: 'lost', reason: 'the webhook of the message is gone' };

/** A message of a persona, with the author's name saying whose it is (`plain`) and where it does not (`named`). */
interface Speech {
  room: string;
  author: Author;
  plain: Content;
  named: Content;
  files: NonNullable<Call['files']>;
}

export type Speaker = ReturnType<typeof createSpeaker>;

export function createSpeaker(
  { api, log }: Base,
  identity: Identity,
  webhooks: Webhooks,
  directory: Directory,
) {
  /** Names and pictures that Discord does not take. */
  const refused = new LRUCache<string, true>({ max: MOST_NOTED });
  /** By the ids of messages. */
  const said = new LRUCache<string, SaidBy>({ max: MOST_NOTED });

  /** The channel whose webhook is used, and the thread in it. A private thread is a chat, and has no webhooks. */
  async function seatOf({ address, threadId }: Recipient, signal: AbortSignal) {
    if (threadId !== null) return { channel: address, thread: { thread_id: threadId } };
    const known =
      directory.channel(address) ?? directory.noteChannel(await api.get(`/channels/${address}`, signal));
    const parent = known?.parentId ?? null;
    if (parent === null) return { channel: address, thread: {} };
    return { channel: parent, thread: { thread_id: address } };
  }

  async function speak(to: Recipient, speech: Speech, signal: AbortSignal): Promise<SendResult | null> {
    const { channel, thread } = await seatOf(to, signal);
    for (let tries = 0; tries < 2; tries += 1) {
      const webhook = await webhooks.take(channel, signal);
      if (webhook === null) return null;
      const result = await sendThrough(webhook, channel, thread, speech, signal);
      if (result !== 'gone') return result;
      webhooks.forget(channel, webhook);
      if (tries > 0 && webhooks.isDead(webhook)) {
        webhooks.bar(channel, 'Discord does not know a webhook that was just made');
      }
    }
    return null;
  }

  async function sendThrough(
    webhook: Webhook,
    channel: string,
    thread: Record<string, string>,
    { author, plain, named, files, room }: Speech,
    signal: AbortSignal,
  ): Promise<SendResult | 'gone' | null> {
    for (;;) {
      const isNamed = refused.has(author.username);
      const { avatar_url } = author;
      const isPictured = avatar_url !== undefined && !refused.has(avatar_url);
      const body = {
        ...(isNamed ? named : plain),
        username: isNamed ? NEUTRAL_NAME : author.username,
        ...(isPictured ? { avatar_url } : {}),
      };
      try {
        const path = `/webhooks/${webhook.id}/${webhook.token}`;
        const query = { wait: 'true', ...thread };
        const call: Call = { method: 'POST', path, query, body, files, anonymous: true };
        const answer = fieldsOf<Discord.APIMessage>(await api.call(call, signal));
        const id = idOf(answer.id);
        if (id === undefined) {
          return { kind: 'unreachable', reason: 'Discord answers without a message', taken: 'no' };
        }
        if ((idOf(answer.channel_id) ?? room) !== room) {
          await takeBack(webhook, id);
          return 'gone';
        }
        said.set(id, { kind: 'webhook', webhook, thread, named: isNamed });
        return { kind: 'sent', platformMessageId: id };
      } catch (error) {
        const failure = failureOf(error);
        const told = { channel: 'discord', reason: failure.reason };
        noteFailure(webhook, failure);
        // Also where the thread is not in the webhook's channel any more.
        if (webhooks.isDead(webhook) || failure.code === CODE.unknownChannel) return 'gone';
        if (concerns(failure, 'username') && !isNamed) {
          refused.set(author.username, true);
          log.info({ ...told, name: author.username }, 'Discord refused the name of a persona');
        } else if (concerns(failure, 'avatar_url') && isPictured) {
          refused.set(avatar_url, true);
          log.info({ ...told, avatar: avatar_url }, 'Discord refused the picture of a persona');
        } else if (!isRefusal(failure) || failure.status === 413) {
          return sendResult(failure);
        } else {
          if (CLOSED.has(failure.code)) webhooks.bar(channel, failure.reason);
          else log.debug(told, 'webhook refused a message; the bot sends it');
          return null;
        }
      }
    }
  }

  function noteFailure(webhook: Webhook, { code }: Failure): void {
    if (DEAD.has(code)) webhooks.bury(webhook);
  }

  /** Somebody has moved the webhook to another channel, where this is for nobody. */
  async function takeBack({ id, token }: Webhook, messageId: string): Promise<void> {
    try {
      const path = `/webhooks/${id}/${token}/messages/${messageId}`;
      await api.call({ method: 'DELETE', path, anonymous: true });
    } catch (error) {
      const { reason } = failureOf(error);
      log.warn({ channel: 'discord', reason }, 'webhook was moved; its message stays in the other channel');
    }
  }

  async function ask(to: Recipient, id: string, username: string, signal: AbortSignal): Promise<SaidBy> {
    const me = await identity.ask(signal);
    const told = fieldsOf<Discord.APIMessage>(
      await api.get(`/channels/${roomOf(to)}/messages/${id}`, signal),
    );
    const author = fieldsOf<Discord.APIUser>(told.author);
    if (idOf(told.webhook_id) === undefined || author.id === me.id) return { kind: 'bot' };
    const { channel, thread } = await seatOf(to, signal);
    const webhook = await webhooks.find(channel, signal);
    if (webhook?.id !== told.webhook_id || webhook === null) return LOST;
    return { kind: 'webhook', webhook, thread, named: !readsAs(textOf(author.username) ?? '', username) };
  }

  return {
    /** null where the bot is to say it. Never rejects. */
    speak: (to: Recipient, speech: Speech, signal: AbortSignal): Promise<SendResult | null> =>
      speak(to, speech, signal).catch((error) => sendResult(failureOf(error))),
    /** What a call through a webhook came to. */
    noteFailure,
    noteBot: (messageId: string) => void said.set(messageId, { kind: 'bot' }),
    /** Who said a message of ours. Rejects when Discord cannot be asked, or does not know the message. */
    async saidBy(to: Recipient, messageId: string, options: SendOptions): Promise<SaidBy> {
      const noted = said.get(messageId);
      if (noted?.kind === 'webhook' && webhooks.isDead(noted.webhook)) return LOST;
      if (noted !== undefined) return noted;
      const author = authorOf(to, options);
      if (author === null) return { kind: 'bot' };
      const by = await ask(to, messageId, author.username, options.signal);
      said.set(messageId, by);
      return by;
    },
  };
}

/** Discord names the field that is wrong before what is wrong with it. */
function concerns({ code, reason }: Failure, field: string): boolean {
  return code === CODE.invalidForm && reason.includes(`${field}[`);
}

const LONGEST_BEGINNING = 60;
const PLACE = 'https://discord.com/channels';

/** A message that may be answered. */
interface Answerable {
  /** null for a program, which cannot be called. */
  by: string | null;
  name: string;
  beginning: string;
}

export interface Quote {
  /** The whole line, with its end. */
  line: string;
  /** Whom it calls. */
  users: string[];
}

export type Quotes = ReturnType<typeof createQuotes>;

/** A webhook cannot reply: its message begins with a quote of what it answers instead, with a link to it. */
export function createQuotes({ api, log }: Base, directory: Directory) {
  const said = new LRUCache<string, Answerable>({ max: MOST_NOTED });

  async function ask(room: string, id: string, signal: AbortSignal): Promise<Answerable | null> {
    const told = fieldsOf<Discord.APIMessage>(await api.get(`/channels/${room}/messages/${id}`, signal));
    const author = fieldsOf<Discord.APIUser>(told.author);
    const authorId = idOf(author.id);
    if (authorId === undefined) return null;
    const isProgram = author.bot === true || idOf(told.webhook_id) !== undefined;
    const beginning = beginningOf(textOf(told.content) ?? '');
    return { by: isProgram ? null : authorId, name: nameOf(author), beginning };
  }

  /** null where Discord does not say. */
  async function orNull<T>(missing: string, find: () => Promise<T | null>): Promise<T | null> {
    return find().catch((error) => {
      log.debug(
        { channel: 'discord', reason: failureOf(error).reason },
        `${missing} is unknown; quoting without it`,
      );
      return null;
    });
  }

  return {
    note({ platformMessageId, sender, text }: InboundMessage): void {
      const by = sender.bot ? null : sender.address;
      said.set(platformMessageId, { by, name: sender.name, beginning: beginningOf(text) });
    },
    /** null where nothing is answered, or nothing is known of it. */
    async of(to: Recipient, id: string | null, signal: AbortSignal): Promise<Quote | null> {
      if (id === null || !isSnowflake(id)) return null;
      const room = roomOf(to);
      const found = said.get(id) ?? (await orNull('the answered message', () => ask(room, id, signal)));
      if (found === null) return null;
      said.set(id, found);
      const channel =
        directory.channel(room) ??
        (await orNull('the server', async () =>
          directory.noteChannel(await api.get(`/channels/${room}`, signal)),
        ));
      const guildId = channel?.guildId ?? null;
      return quoteOf(found, guildId === null ? null : `${PLACE}/${guildId}/${room}/${id}`);
    },
  };
}

function quoteOf({ by, name, beginning }: Answerable, url: string | null): Quote {
  const text = beginning || '↪';
  const marks: Mark[] = url === null ? [] : [{ kind: 'link', offset: 0, length: text.length, url }];
  const words = discordText({ text, marks });
  const bold: Mark[] = [{ kind: 'bold', offset: 0, length: name.length }];
  const who = by === null ? discordText({ text: name, marks: bold }) : `<@${by}>`;
  return { line: `> ${who} ${words}\n`, users: by === null ? [] : [by] };
}

/** What a link's label may hold, on one line. */
function beginningOf(text: string): string {
  const line = text
    // A spoiler stays one.
    .replace(/\|\|.+?\|\|/gs, '▒▒▒')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replaceAll('](', '] (')
    .trim();
  const cut = cutAt(line, LONGEST_BEGINNING);
  return cut.length < line.length ? `${cut.trimEnd()}…` : cut;
}

/** The same below a quote; without it where both do not fit. */
export function quoted(content: Content, quote: Quote | null): Content {
  const text = quote === null ? '' : quote.line + (content.content ?? '');
  if (quote === null || !isShort(text)) return content;
  return { ...content, content: text, allowed_mentions: { ...content.allowed_mentions, users: quote.users } };
}
