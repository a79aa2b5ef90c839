/**
 * A persona's own name and picture: its messages go through our webhook of the channel. Each channel has one,
 * found by its owner, and so the same after a restart, else created. Without a webhook, the bot speaks.
 */
import * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import type { Mark, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import { cutAt } from '../../core/cut.js';
import type { InboundMessage } from '../../core/message.js';
import { discordText } from '../markdown/discord.js';
import type { ApiCall, Base } from './api.js';
import { type Directory, type Identity, nameOf } from './directory.js';
import { CODE, type DiscordFailure, failureOf, isRefusal, MOST_NOTED, sendResult } from './failure.js';
import { type Author, authorOf, type Content, isShort, NEUTRAL_NAME, readsAs, roomOf } from './outbound.js';
import { byAge, type Fields, fieldsOf, idOf, isSnowflake, listOf, textOf } from './payload.js';

/** Pause before a channel is asked again for what it refused. */
const BARRED_MS = 300_000;
/** Maximum delay of a reply for the persona's own name. */
const PATIENCE_MS = 10_000;

export interface OwnWebhook {
  id: string;
  /** Permits sending through the webhook. */
  token: string;
}

interface ChannelWebhook {
  webhook?: OwnWebhook;
  /** Until then there can be none, unless roles or channels change. */
  barred?: { until: number; lifts: number };
  isTold?: boolean;
}

export type Webhooks = ReturnType<typeof createWebhooks>;

/** Our incoming webhooks, the oldest first. */
function ownAmong(
  listed: Fields<Discord.APIWebhook>[],
  me: { id: string; applicationId: string },
): OwnWebhook[] {
  return listed
    .filter(({ type, user, application_id: by }) => {
      const isOwn = fieldsOf<Discord.APIUser>(user).id === me.id || by === me.applicationId;
      return type === Discord.WebhookType.Incoming && isOwn;
    })
    .flatMap((told) => webhookOf(told) ?? [])
    .sort(byAge);
}

export function createWebhooks({ api, clock, log }: Base, identity: Identity) {
  const channels = new LRUCache<string, ChannelWebhook>({ max: MOST_NOTED });
  /** Those that we have used; dead if Discord does not know them any more. */
  const ours = new LRUCache<string, 'alive' | 'dead'>({ max: MOST_NOTED });
  /** Two concurrent requests must not create two. */
  const making = new Map<string, Promise<OwnWebhook | null>>();

  const isDead = ({ id }: OwnWebhook): boolean => ours.get(id) === 'dead';

  function note(channel: string, webhook: OwnWebhook): OwnWebhook {
    channels.set(channel, { webhook });
    ours.set(webhook.id, 'alive');
    return webhook;
  }

  async function find(channel: string, signal: AbortSignal): Promise<OwnWebhook | null> {
    const { webhook } = channels.get(channel) ?? {};
    if (webhook !== undefined && !isDead(webhook)) return webhook;
    const me = await identity.ask(signal);
    const listed = listOf<Discord.APIWebhook>(await api.get(`/channels/${channel}/webhooks`, signal));
    const [found] = ownAmong(listed, me).filter((each) => !isDead(each));
    return found === undefined ? null : note(channel, found);
  }

  async function make(channel: string, signal: AbortSignal): Promise<OwnWebhook | null> {
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

  /** No webhook can be used here, for some minutes. */
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
    /** The same, created if missing; null if there can be none now. */
    async take(channel: string, signal: AbortSignal): Promise<OwnWebhook | null> {
      const { webhook, barred } = channels.get(channel) ?? {};
      if (barred !== undefined && barred.until > clock.now() && barred.lifts === api.forbidden.lifts())
        return null;
      if (webhook !== undefined && !isDead(webhook)) return webhook;
      const running = making.get(channel) ?? make(channel, signal).finally(() => making.delete(channel));
      making.set(channel, running);
      return running;
    },
    /** No longer used in this channel; it may have been moved to another one. */
    forget(channel: string, { id }: OwnWebhook): void {
      const known = channels.get(channel);
      if (known?.webhook?.id === id) delete known.webhook;
    },
    /** Discord does not know it: further use would look like an attack. */
    bury: ({ id }: OwnWebhook) => void ours.set(id, 'dead'),
    isDead,
    isOurs: (id: string): boolean => ours.has(id),
  };
}

function webhookOf(told: unknown): OwnWebhook | null {
  const webhook = fieldsOf<Discord.APIWebhook & { token: string }>(told);
  const id = idOf(webhook.id);
  const token = textOf(webhook.token);
  return id === undefined || token === undefined ? null : { id, token };
}

const DEAD = new Set<number | null>([CODE.unknownWebhook, CODE.tokenExpired]);
/** Codes after which other messages will be refused, too. */
const CLOSED = new Set<number | null>([CODE.missingAccess, CODE.missingPermissions, CODE.tooManyWebhooks]);

/** The sender of a message of ours. `named`: its text begins with the name. `lost`: its webhook is gone. */
export type SaidBy =
  | { kind: 'bot' }
  | { kind: 'webhook'; webhook: OwnWebhook; thread: Record<string, string>; named: boolean }
  | { kind: 'lost'; reason: string };

const LOST: SaidBy = { kind: 'lost', reason: 'the webhook of the message is gone' };

/** A persona's message, if the author's name shows the persona (`plain`) and if not (`named`). */
interface WebhookMessage {
  room: string;
  author: Author;
  plain: Content;
  named: Content;
  files: NonNullable<ApiCall['files']>;
}

export class WebhookSpeaker {
  /** Names and pictures that Discord refused. */
  private readonly refused = new LRUCache<string, true>({ max: MOST_NOTED });
  /** By the ids of messages. */
  private readonly said = new LRUCache<string, SaidBy>({ max: MOST_NOTED });

  constructor(
    private readonly base: Base,
    private readonly identity: Identity,
    private readonly webhooks: Webhooks,
    private readonly directory: Directory,
  ) {}

  /** The channel of the webhook, and the thread in it. A private thread is a chat, without webhooks. */
  private async seatOf({ address, threadId }: Recipient, signal: AbortSignal) {
    if (threadId !== null) return { channel: address, thread: { thread_id: threadId } };
    const known =
      this.directory.channel(address) ??
      this.directory.noteChannel(await this.base.api.get(`/channels/${address}`, signal));
    const parent = known?.parentId ?? null;
    if (parent === null) return { channel: address, thread: {} };
    return { channel: parent, thread: { thread_id: address } };
  }

  private async speak(
    to: Recipient,
    speech: WebhookMessage,
    signal: AbortSignal,
  ): Promise<SendResult | null> {
    const { channel, thread } = await this.seatOf(to, signal);
    for (let tries = 0; tries < 2; tries += 1) {
      const webhook = await this.webhooks.take(channel, signal);
      if (webhook === null) return null;
      const result = await this.sendThrough(webhook, channel, thread, speech, signal);
      if (result !== 'gone') return result;
      this.webhooks.forget(channel, webhook);
      if (tries > 0 && this.webhooks.isDead(webhook)) {
        this.webhooks.bar(channel, 'Discord does not know a webhook that was just made');
      }
    }
    return null;
  }

  private async sendThrough(
    webhook: OwnWebhook,
    channel: string,
    thread: Record<string, string>,
    { author, plain, named, files, room }: WebhookMessage,
    signal: AbortSignal,
  ): Promise<SendResult | 'gone' | null> {
    for (;;) {
      const isNamed = this.refused.has(author.username);
      const { avatar_url } = author;
      const isPictured = avatar_url !== undefined && !this.refused.has(avatar_url);
      const body = {
        ...(isNamed ? named : plain),
        username: isNamed ? NEUTRAL_NAME : author.username,
        ...(isPictured ? { avatar_url } : {}),
      };
      try {
        const path = `/webhooks/${webhook.id}/${webhook.token}`;
        const query = { wait: 'true', ...thread };
        const call: ApiCall = { method: 'POST', path, query, body, files, anonymous: true };
        const answer = fieldsOf<Discord.APIMessage>(await this.base.api.call(call, signal));
        const id = idOf(answer.id);
        if (id === undefined) {
          return { kind: 'unreachable', reason: 'Discord answers without a message', taken: 'no' };
        }
        if ((idOf(answer.channel_id) ?? room) !== room) {
          await this.takeBack(webhook, id);
          return 'gone';
        }
        this.said.set(id, { kind: 'webhook', webhook, thread, named: isNamed });
        return { kind: 'sent', platformMessageId: id };
      } catch (error) {
        const failure = failureOf(error);
        const told = { channel: 'discord', reason: failure.reason };
        this.noteFailure(webhook, failure);
        // Also if the thread is no longer in the webhook's channel.
        if (this.webhooks.isDead(webhook) || failure.code === CODE.unknownChannel) return 'gone';
        if (concerns(failure, 'username') && !isNamed) {
          this.refused.set(author.username, true);
          this.base.log.info(
            { ...told, name: author.username },
            'Discord this.refused the name of a persona',
          );
        } else if (concerns(failure, 'avatar_url') && isPictured) {
          this.refused.set(avatar_url, true);
          this.base.log.info(
            { ...told, avatar: avatar_url },
            'Discord this.refused the picture of a persona',
          );
        } else if (!isRefusal(failure) || failure.status === 413) {
          return sendResult(failure);
        } else {
          if (CLOSED.has(failure.code)) this.webhooks.bar(channel, failure.reason);
          else this.base.log.debug(told, 'webhook this.refused a message; the bot sends it');
          return null;
        }
      }
    }
  }

  /** Handles the failure of a call through a webhook. */
  noteFailure(webhook: OwnWebhook, { code }: DiscordFailure): void {
    if (DEAD.has(code)) this.webhooks.bury(webhook);
  }

  /** Somebody moved the webhook to another channel: deletes the misdirected message. */
  private async takeBack({ id, token }: OwnWebhook, messageId: string): Promise<void> {
    try {
      const path = `/webhooks/${id}/${token}/messages/${messageId}`;
      await this.base.api.call({ method: 'DELETE', path, anonymous: true });
    } catch (error) {
      const { reason } = failureOf(error);
      this.base.log.warn(
        { channel: 'discord', reason },
        'webhook was moved; its message stays in the other channel',
      );
    }
  }

  private async ask(to: Recipient, id: string, username: string, signal: AbortSignal): Promise<SaidBy> {
    const me = await this.identity.ask(signal);
    const told = fieldsOf<Discord.APIMessage>(
      await this.base.api.get(`/channels/${roomOf(to)}/messages/${id}`, signal),
    );
    const author = fieldsOf<Discord.APIUser>(told.author);
    if (idOf(told.webhook_id) === undefined || author.id === me.id) return { kind: 'bot' };
    const { channel, thread } = await this.seatOf(to, signal);
    const webhook = await this.webhooks.find(channel, signal);
    if (webhook?.id !== told.webhook_id || webhook === null) return LOST;
    return { kind: 'webhook', webhook, thread, named: !readsAs(textOf(author.username) ?? '', username) };
  }

  /** null if the bot is to send it. Never rejects. */
  async say(to: Recipient, speech: WebhookMessage, signal: AbortSignal): Promise<SendResult | null> {
    return this.speak(to, speech, signal).catch((error) => sendResult(failureOf(error)));
  }
  noteBot(messageId: string): void {
    this.said.set(messageId, { kind: 'bot' });
  }
  /** The sender of a message of ours. Rejects when Discord cannot be asked, or does not know the message. */
  async saidBy(to: Recipient, messageId: string, options: SendOptions): Promise<SaidBy> {
    const noted = this.said.get(messageId);
    if (noted?.kind === 'webhook' && this.webhooks.isDead(noted.webhook)) return LOST;
    if (noted !== undefined) return noted;
    const author = authorOf(to, options);
    if (author === null) return { kind: 'bot' };
    const by = await this.ask(to, messageId, author.username, options.signal);
    this.said.set(messageId, by);
    return by;
  }
}

/** Discord names the wrong field before the error. */
function concerns({ code, reason }: DiscordFailure, field: string): boolean {
  return code === CODE.invalidForm && reason.includes(`${field}[`);
}

const LONGEST_BEGINNING = 60;
const PLACE = 'https://discord.com/channels';

interface Answerable {
  /** null for a program, which cannot be mentioned. */
  by: string | null;
  name: string;
  beginning: string;
}

export interface Quote {
  /** The whole line, with its end. */
  line: string;
  users: string[];
}

export type Quotes = ReturnType<typeof createQuotes>;

/** A webhook cannot reply: its message begins with a quote of the answered one instead, with a link to it. */
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

  /** null if Discord does not tell. */
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
    /** null if nothing is answered, or it is unknown. */
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

/** Text allowed in a link's label, on one line. */
function beginningOf(text: string): string {
  const line = text
    // A spoiler stays hidden.
    .replace(/\|\|.+?\|\|/gs, '▒▒▒')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replaceAll('](', '] (')
    .trim();
  const cut = cutAt(line, LONGEST_BEGINNING);
  return cut.length < line.length ? `${cut.trimEnd()}…` : cut;
}

/** The same below a quote; without it if both do not fit. */
export function quoted(content: Content, quote: Quote | null): Content {
  const text = quote === null ? '' : quote.line + (content.content ?? '');
  if (quote === null || !isShort(text)) return content;
  return { ...content, content: text, allowed_mentions: { ...content.allowed_mentions, users: quote.users } };
}
