/**
 * Sends one message through our webhook of a channel, under a persona's own name and with its picture. What Discord does
 * not take of these goes without; where it takes nothing through a webhook, the bot is to speak. And it knows how each of
 * our messages was said: only in that way it can be changed.
 */
import type { Recipient, SendOptions, SendResult } from '../../core/channel.js';
import { bounded } from '../kit/bounded.js';
import { type Base, type Call, MOST_NOTED } from './api.js';
import { type Author, authorOf, NEUTRAL_NAME, readsAs } from './author.js';
import type { Directory } from './directory.js';
import { CODE, type Failure, failureOf, isRefusal, sendResult } from './failure.js';
import type { Identity } from './identity.js';
import { type Content, type Outgoing, roomOf } from './outbound.js';
import { read } from './payload.js';
import type { Webhook, Webhooks } from './webhooks.js';

const TOO_LARGE = 413;
/** With these the webhook is gone for good. */
const DEAD = new Set<number | null>([CODE.unknownWebhook, CODE.tokenExpired]);
/** With these no other message will be taken either. */
const CLOSED = new Set<number | null>([CODE.missingAccess, CODE.missingPermissions, CODE.tooManyWebhooks]);

/** `named`: the text begins with the name, since the author's is another. `lost`: its webhook is there no more. */
export type SaidBy =
  | { kind: 'bot' }
  | { kind: 'webhook'; webhook: Webhook; thread: Thread; named: boolean }
  | { kind: 'lost'; reason: string };

const LOST: SaidBy = {
  kind: 'lost',
  reason: 'the webhook that the message was sent through is not there any more',
};

/** What a webhook, which is of a whole channel, is told of the thread. */
type Thread = Record<string, string>;

/** Where something is said: the channel whose webhook it goes through, and the thread in it. */
interface Seat {
  channel: string;
  thread: Thread;
}

interface Utterance {
  author: Author;
  /** Where the author's name says whose it is, and where it does not. */
  plain: Content;
  named: Content;
  message: Outgoing;
}

export type Speaker = ReturnType<typeof createSpeaker>;

export function createSpeaker(
  { api, log }: Base,
  identity: Identity,
  webhooks: Webhooks,
  directory: Pick<Directory, 'parentOf' | 'noteChannel'>,
) {
  /** Names and pictures. */
  const refused = bounded<string, true>(MOST_NOTED);
  /** By the ids of messages. */
  const said = bounded<string, SaidBy>(MOST_NOTED);

  /** A private thread is a chat of its own, and yet has no webhooks of its own. */
  async function seatOf({ address, threadId }: Recipient, signal: AbortSignal): Promise<Seat> {
    if (threadId !== null) return { channel: address, thread: { thread_id: threadId } };
    if (directory.parentOf(address) === undefined) {
      directory.noteChannel(await api.get(`/channels/${address}`, signal));
    }
    const parent = directory.parentOf(address) ?? null;
    return parent === null
      ? { channel: address, thread: {} }
      : { channel: parent, thread: { thread_id: address } };
  }

  async function speak(to: Recipient, utterance: Utterance, signal: AbortSignal): Promise<SendResult | null> {
    const seat = await seatOf(to, signal);
    for (let renewed = false; ; renewed = true) {
      const webhook = await webhooks.take(seat.channel, signal);
      if (webhook === null) return null;
      const result = await sendThrough(webhook, seat, utterance, signal);
      if (result !== 'gone') return result;
      webhooks.forget(seat.channel, webhook);
      if (renewed && !webhooks.isDead(webhook)) return null;
      if (renewed) {
        webhooks.bar(seat.channel, 'Discord does not know a webhook that was only just made');
        return null;
      }
    }
  }

  async function sendThrough(
    webhook: Webhook,
    { channel, thread }: Seat,
    { author, plain, named, message }: Utterance,
    signal: AbortSignal,
  ): Promise<SendResult | 'gone' | null> {
    const { files, room } = message;
    for (;;) {
      const isNamed = refused.get(author.username) === true;
      const { avatar_url } = author;
      const isPictured = avatar_url !== undefined && refused.get(avatar_url) !== true;
      const body = {
        ...(isNamed ? named : plain),
        username: isNamed ? NEUTRAL_NAME : author.username,
        ...(isPictured ? { avatar_url } : {}),
      };
      try {
        const path = `/webhooks/${webhook.id}/${webhook.token}`;
        const query = { wait: 'true', ...thread };
        const call: Call = { method: 'POST', path, query, body, files, anonymous: true };
        const answer = read.answer(await api.call(call, signal));
        if (answer === undefined) {
          return { kind: 'unreachable', reason: 'Discord answers without a message', taken: 'no' };
        }
        if (answer.channel_id !== undefined && answer.channel_id !== room) {
          await takeBack(webhook, answer.id);
          return 'gone';
        }
        said.set(answer.id, { kind: 'webhook', webhook, thread, named: isNamed });
        return { kind: 'sent', platformMessageId: answer.id };
      } catch (error) {
        const failure = failureOf(error);
        const told = { channel: 'discord', reason: failure.reason };
        noteFailure(webhook, failure);
        // Also where the thread is not in the webhook's channel any more.
        if (webhooks.isDead(webhook) || failure.code === CODE.unknownChannel) return 'gone';
        if (concerns(failure, 'username') && !isNamed) {
          refused.set(author.username, true);
          log.info({ ...told, name: author.username }, 'Discord does not take the name of a persona');
        } else if (concerns(failure, 'avatar_url') && isPictured) {
          refused.set(avatar_url, true);
          log.info({ ...told, avatar: avatar_url }, 'Discord does not take the picture of a persona');
        } else if (!isRefusal(failure) || failure.status === TOO_LARGE) {
          return sendResult(failure);
        } else {
          if (CLOSED.has(failure.code)) webhooks.bar(channel, failure.reason);
          else log.debug(told, 'what a webhook may not say is said by the bot');
          return null;
        }
      }
    }
  }

  function noteFailure(webhook: Webhook, { code }: Failure): void {
    if (DEAD.has(code)) webhooks.bury(webhook);
  }

  /** Somebody has moved the webhook to another channel, where this is for nobody. */
  async function takeBack(webhook: Webhook, messageId: string): Promise<void> {
    try {
      const path = `/webhooks/${webhook.id}/${webhook.token}/messages/${messageId}`;
      await api.call({ method: 'DELETE', path, anonymous: true });
    } catch (error) {
      const { reason } = failureOf(error);
      log.warn({ channel: 'discord', reason }, 'a message went to the channel that a webhook was moved to');
    }
  }

  async function ask(to: Recipient, id: string, username: string, signal: AbortSignal): Promise<SaidBy> {
    const me = await identity.ask(signal);
    const path = `/channels/${roomOf(to)}/messages/${id}`;
    const told = read.sent(await api.get(path, signal));
    if (told?.webhook_id === undefined || told.author.id === me.id) return { kind: 'bot' };
    const { channel, thread } = await seatOf(to, signal);
    const webhook = await webhooks.find(channel, signal);
    return webhook?.id === told.webhook_id
      ? { kind: 'webhook', webhook, thread, named: !readsAs(told.author.username ?? '', username) }
      : LOST;
  }

  return {
    /** null where the bot is to say it. */
    async speak(to: Recipient, utterance: Utterance, signal: AbortSignal): Promise<SendResult | null> {
      try {
        return await speak(to, utterance, signal);
      } catch (error) {
        return sendResult(failureOf(error));
      }
    },
    /** What a call through a webhook came to. */
    noteFailure,
    noteBot: (messageId: string) => said.set(messageId, { kind: 'bot' }),
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

/** Which field of a form is wrong comes before what is wrong with it. */
function concerns({ code, reason }: Failure, field: string): boolean {
  return code === CODE.invalidForm && reason.includes(`${field}[`);
}
