/**
 * A persona's own name and picture: its messages go through our webhook of the channel. Each channel has one,
 * found by its owner, and so the same after a restart, else created; and one for each persona whose picture has no
 * address (`faces.ts`). Without a webhook, the bot speaks.
 */
import * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import type { Mark, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import { locks } from '../../core/concurrency.js';
import { cutAt } from '../../core/cut.js';
import type { InboundMessage } from '../../core/message.js';
import { discordText } from '../markdown/discord.js';
import type { ApiCall, Base } from './api.js';
import { type Directory, type Identity, nameOf, parentOf } from './directory.js';
import type { Faces, ListedWebhook, OwnWebhook, WantedFace } from './faces.js';
import { CODE, type DiscordFailure, failureOf, isRefusal, MOST_NOTED, sendResult } from './failure.js';
import { type Author, authorOf, type Content, isShort, NEUTRAL_NAME, readsAs, roomOf } from './outbound.js';
import { byAge, isSnowflake } from './payload.js';

/** Pause before a channel is asked again for what it refused. */
const BARRED_MS = 300_000;
/** Maximum delay of a reply for the persona's own name. */
const PATIENCE_MS = 10_000;

interface ChannelWebhooks {
  /** All of ours; unknown before the first use. */
  ours?: ListedWebhook[] | undefined;
  /** Until then there can be none, unless roles or channels change. */
  barred?: { until: number; lifts: number };
}

const DEAD = new Set<number | null>([CODE.unknownWebhook, CODE.tokenExpired]);
/** Codes after which other messages will be refused, too. */
const CLOSED = new Set<number | null>([CODE.missingAccess, CODE.missingPermissions, CODE.tooManyWebhooks]);

/** The sender of a message of ours. `named`: its text begins with the name. `lost`: its webhook is gone. */
export type SaidBy =
  | { kind: 'bot' }
  | { kind: 'webhook'; webhook: OwnWebhook; thread: Record<string, string>; named: boolean }
  | { kind: 'lost' };

/** A persona's message, if the author's name shows the persona (`plain`) and if not (`named`). */
interface WebhookMessage {
  room: string;
  author: Author;
  face: WantedFace | null;
  plain: Content;
  named: Content;
  files: NonNullable<ApiCall['files']>;
}

export class Webhooks {
  private readonly channels = new LRUCache<string, ChannelWebhooks>({ max: MOST_NOTED });
  /** Those that we have used. Further use of a dead one, which Discord does not know, would look like an attack. */
  private readonly ours = new LRUCache<string, 'alive' | 'dead'>({ max: MOST_NOTED });
  /** Names and pictures that Discord refused. */
  private readonly refused = new LRUCache<string, true>({ max: MOST_NOTED });
  /** By the ids of messages. */
  private readonly said = new LRUCache<string, SaidBy>({ max: MOST_NOTED });
  /** Two concurrent requests must not create two. */
  private readonly alone = locks();

  constructor(
    private readonly base: Base,
    private readonly identity: Identity,
    private readonly directory: Directory,
    private readonly faces: Faces,
  ) {}

  readonly isOurs = (id: string): boolean => this.ours.has(id);

  /** null if the bot is to send it. Never rejects. */
  async say(to: Recipient, message: WebhookMessage, signal: AbortSignal): Promise<SendResult | null> {
    try {
      const { channel, thread } = await this.seatOf(to, signal);
      for (let tries = 0; tries < 2; tries += 1) {
        const webhook = await this.alone(channel, () => this.take(channel, message.face, signal));
        if (webhook === null) return null;
        const result = await this.sendThrough(webhook, channel, thread, message, signal);
        if (result !== 'gone') return result;
        const known = this.channels.get(channel);
        if (known?.ours?.some(({ id }) => id === webhook.id)) delete known.ours;
        if (tries > 0 && this.isDead(webhook)) {
          this.bar(channel, 'Discord does not know a webhook that was just made');
        }
      }
      return null;
    } catch (error) {
      return sendResult(failureOf(error));
    }
  }

  noteBot(messageId: string): void {
    this.said.set(messageId, { kind: 'bot' });
  }

  /** The sender of a message of ours. Rejects when Discord cannot be asked, or does not know the message. */
  async saidBy(to: Recipient, messageId: string, options: SendOptions): Promise<SaidBy> {
    const noted = this.said.get(messageId);
    if (noted?.kind === 'webhook' && this.isDead(noted.webhook)) return { kind: 'lost' };
    if (noted !== undefined) return noted;
    const author = authorOf(to, options);
    if (author === null) return { kind: 'bot' };
    const by = await this.ask(to, messageId, author.username, options.signal);
    this.said.set(messageId, by);
    return by;
  }

  /** Handles the failure of a call through a webhook. */
  noteFailure({ id }: OwnWebhook, { code }: DiscordFailure): void {
    if (DEAD.has(code)) this.ours.set(id, 'dead');
  }

  private isDead({ id }: { id: string }): boolean {
    return this.ours.get(id) === 'dead';
  }

  /** Ours in this channel, the oldest first. Rejects when Discord cannot be asked. */
  private async oursIn(channel: string, signal: AbortSignal): Promise<ListedWebhook[]> {
    const known = this.channels.get(channel)?.ours;
    if (known !== undefined && !known.some((each) => this.isDead(each))) return known;
    const me = await this.identity.ask(signal);
    const path = `/channels/${channel}/webhooks`;
    const listed = await this.base.api.get<Discord.APIWebhook[]>(path, signal);
    const ours = listed
      .filter(({ type }) => type === Discord.WebhookType.Incoming)
      .filter(({ user, application_id }) => user?.id === me.id || application_id === me.applicationId)
      .filter((each) => !this.isDead(each))
      .sort(byAge)
      .flatMap((each) => listedOf(each) ?? []);
    this.note(channel, ours);
    return ours;
  }

  /** The one of the persona or that of the others, created if missing; null if there can be none now. */
  private async take(
    channel: string,
    face: WantedFace | null,
    signal: AbortSignal,
  ): Promise<OwnWebhook | null> {
    const { barred } = this.channels.get(channel) ?? {};
    const { api, clock } = this.base;
    if (barred && barred.until > clock.now() && barred.lifts === api.forbidden.lifts()) return null;
    try {
      const ours = await this.oursIn(channel, signal);
      const own = face && (await this.faces.take(channel, face, ours, signal));
      this.note(channel, ours);
      if (own !== null) return own;
      const there = await this.shared(channel, ours);
      if (there !== null) return there;
      const path = `/channels/${channel}/webhooks`;
      const body = { name: NEUTRAL_NAME };
      const made = listedOf(await api.call<Discord.APIWebhook>({ method: 'POST', path, body }, signal));
      if (made === null) throw new Error('Discord made a webhook and does not say which');
      this.note(channel, [...ours, made]);
      return made;
    } catch (error) {
      // One may have been made.
      delete this.channels.get(channel)?.ours;
      const failure = failureOf(error);
      const { reason, retryAfterMs } = failure;
      const isLong = retryAfterMs !== null && retryAfterMs > PATIENCE_MS;
      if (!isRefusal(failure) && !isLong) throw error;
      this.bar(channel, reason, isLong ? retryAfterMs : BARRED_MS);
      return null;
    }
  }

  /** That of all who have none of their own: it has no picture, or its first name. */
  private async shared(channel: string, ours: readonly ListedWebhook[]): Promise<OwnWebhook | null> {
    const faces = await this.faces.idsIn(channel);
    const isShared = ({ id, name, hasPicture }: ListedWebhook) =>
      !faces.has(id) && (!hasPicture || name === NEUTRAL_NAME);
    return ours.find(isShared) ?? null;
  }

  /** No webhook can be used here, for some minutes. */
  private bar(channel: string, reason: string, ms = BARRED_MS): void {
    const { api, clock, log } = this.base;
    const barred = { until: clock.now() + Math.min(ms, BARRED_MS), lifts: api.forbidden.lifts() };
    const known = this.channels.get(channel);
    this.channels.set(channel, { ...known, barred });
    log[known?.barred ? 'debug' : 'warn'](
      { channel: 'discord', room: channel, reason },
      'webhook refused; the bot speaks for its personas (it needs Manage Webhooks)',
    );
  }

  private note(channel: string, ours: ListedWebhook[]): void {
    this.channels.set(channel, { ours });
    for (const { id } of ours) this.ours.set(id, 'alive');
  }

  /** The channel of the webhook, and the thread in it. */
  private async seatOf({ address, threadId }: Recipient, signal: AbortSignal) {
    if (threadId !== null) return { channel: address, thread: { thread_id: threadId } };
    const known = await this.directory.ask(this.base.api, address, signal);
    const parent = known && parentOf(known);
    return parent === null
      ? { channel: address, thread: {} }
      : { channel: parent, thread: { thread_id: address } };
  }

  private async sendThrough(
    webhook: OwnWebhook,
    channel: string,
    thread: Record<string, string>,
    { author, plain, named, files, room }: WebhookMessage,
    signal: AbortSignal,
  ): Promise<SendResult | 'gone' | null> {
    const { api, log } = this.base;
    const { username, avatar_url: picture = '' } = author;
    for (;;) {
      const isNamed = this.refused.has(username);
      const isPictured = picture !== '' && !this.refused.has(picture);
      const body = {
        ...(isNamed ? named : plain),
        username: isNamed ? NEUTRAL_NAME : username,
        avatar_url: isPictured ? picture : undefined,
      };
      try {
        const path = `/webhooks/${webhook.id}/${webhook.token}`;
        const query = { wait: 'true', ...thread };
        const call: ApiCall = { method: 'POST', path, query, body, files, anonymous: true };
        const { id, channel_id = room } = await api.call<Discord.APIMessage>(call, signal);
        if (!id) return { kind: 'unreachable', reason: 'Discord answers without a message', taken: 'no' };
        if (channel_id !== room) {
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
        if (this.isDead(webhook) || failure.code === CODE.unknownChannel) return 'gone';
        if (concerns(failure, 'username') && !isNamed) {
          this.refused.set(username, true);
          log.info({ ...told, name: username }, 'Discord refused the name of a persona');
        } else if (concerns(failure, 'avatar_url') && isPictured) {
          this.refused.set(picture, true);
          log.info({ ...told, avatar: picture }, 'Discord refused the picture of a persona');
        } else if (!isRefusal(failure) || failure.status === 413) {
          return sendResult(failure);
        } else {
          if (CLOSED.has(failure.code)) this.bar(channel, failure.reason);
          else log.debug(told, 'webhook refused a message; the bot sends it');
          return null;
        }
      }
    }
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
    const path = `/channels/${roomOf(to)}/messages/${id}`;
    const { author, webhook_id } = await this.base.api.get<Discord.APIMessage>(path, signal);
    if (!webhook_id || author.id === me.id) return { kind: 'bot' };
    const { channel, thread } = await this.seatOf(to, signal);
    const ours = await this.alone(channel, () => this.oursIn(channel, signal));
    const webhook = ours.find((each) => each.id === webhook_id);
    if (webhook === undefined) return { kind: 'lost' };
    return { kind: 'webhook', webhook, thread, named: !readsAs(author.username, username) };
  }
}

function listedOf({ id, token, name, avatar }: Discord.APIWebhook): ListedWebhook | null {
  return id && token ? { id, token, name: name ?? '', hasPicture: Boolean(avatar) } : null;
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

/** A webhook cannot reply: its message begins with a quote of the answered one instead, with a link to it. */
export function createQuotes({ api, log }: Base, directory: Directory) {
  const said = new LRUCache<string, Answerable>({ max: MOST_NOTED });

  async function ask(room: string, id: string, signal: AbortSignal): Promise<Answerable> {
    const path = `/channels/${room}/messages/${id}`;
    const { author, webhook_id, content } = await api.get<Discord.APIMessage>(path, signal);
    const isProgram = author.bot === true || webhook_id !== undefined;
    return { by: isProgram ? null : author.id, name: nameOf(author), beginning: beginningOf(content) };
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
      const channel = await orNull('the server', () => directory.ask(api, room, signal));
      const guildId = channel?.guild_id;
      return quoteOf(found, !guildId ? null : `${PLACE}/${guildId}/${room}/${id}`);
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
