/**
 * Sends one message through our webhook of a channel, under a persona's own name and with its picture. What Discord does
 * not take of these goes without; where it takes nothing through a webhook, the bot is to speak.
 */
import type { Recipient, SendResult } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import { bounded } from '../kit/bounded.js';
import type { Api } from './api.js';
import { type Author, NEUTRAL_NAME } from './face.js';
import { CODE, type Failure, failureOf, isRefusal, sendResult } from './failure.js';
import { type Content, type Outgoing, threadOf } from './outbound.js';
import { read } from './payload.js';
import type { Voices } from './voice.js';
import type { Webhook, Webhooks } from './webhooks.js';

/** How many refused names and pictures are remembered; older ones go. */
const MOST_NOTED = 1_000;
const TOO_LARGE = 413;
/** With these the webhook is gone, or is of another channel now. */
const GONE = new Set<number | null>([CODE.unknownWebhook, CODE.tokenExpired, CODE.unknownChannel]);
/** With these no other message will be taken either. */
const CLOSED = new Set<number | null>([CODE.missingAccess, CODE.missingPermissions, CODE.tooManyWebhooks]);

export interface Utterance {
  author: Author;
  /** Where the author's name says whose it is, and where it does not. */
  plain: Content;
  named: Content;
  message: Outgoing;
}

export interface Speaker {
  /** null where the bot is to say it. */
  speak(to: Recipient, utterance: Utterance, signal: AbortSignal): Promise<SendResult | null>;
}

export function createSpeaker(parts: {
  api: Api;
  webhooks: Webhooks;
  voices: Voices;
  token: string;
  log: Log;
}): Speaker {
  const { api, webhooks, voices, token, log } = parts;
  const refused = bounded<string, true>(MOST_NOTED);

  async function speak(to: Recipient, utterance: Utterance, signal: AbortSignal): Promise<SendResult | null> {
    for (let renewed = false; ; renewed = true) {
      const webhook = await webhooks.take(to.address, signal);
      if (webhook === null) return null;
      const result = await sayThrough(webhook, to, utterance, signal);
      if (result !== 'gone') return result;
      webhooks.forget(to.address, webhook);
      if (renewed) {
        webhooks.bar(to.address, 'Discord does not know a webhook that was only just made');
        return null;
      }
    }
  }

  async function sayThrough(
    webhook: Webhook,
    to: Recipient,
    { author, plain, named, message }: Utterance,
    signal: AbortSignal,
  ): Promise<SendResult | 'gone' | null> {
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
        const query = { wait: 'true', ...threadOf(to) };
        const call = { method: 'POST' as const, path, query, body, files: message.files, anonymous: true };
        const answer = read.answer(await api.call(call, { signal }));
        if (answer === undefined) {
          return { kind: 'unreachable', reason: 'Discord answers without a message', taken: 'no' };
        }
        if (answer.channel_id !== undefined && answer.channel_id !== message.room) {
          await takeBack(webhook, answer.id);
          return 'gone';
        }
        voices.note(answer.id, { kind: 'webhook', webhook, named: isNamed });
        return { kind: 'sent', platformMessageId: answer.id };
      } catch (error) {
        const failure = failureOf(error, token, webhook.token);
        const told = { channel: 'discord', reason: failure.reason };
        if (GONE.has(failure.code)) return 'gone';
        if (concerns(failure, 'username') && !isNamed) {
          refused.set(author.username, true);
          log.info({ ...told, name: author.username }, 'Discord does not take the name of a persona');
        } else if (concerns(failure, 'avatar_url') && isPictured) {
          refused.set(avatar_url, true);
          log.info({ ...told, avatar: avatar_url }, 'Discord does not take the picture of a persona');
        } else if (!isRefusal(failure) || failure.status === TOO_LARGE) {
          return sendResult(failure);
        } else {
          if (CLOSED.has(failure.code)) webhooks.bar(to.address, failure.reason);
          else log.debug(told, 'what a webhook may not say is said by the bot');
          return null;
        }
      }
    }
  }

  /** Somebody has moved the webhook to another channel, where this is for nobody. */
  async function takeBack(webhook: Webhook, messageId: string): Promise<void> {
    try {
      const path = `/webhooks/${webhook.id}/${webhook.token}/messages/${messageId}`;
      await api.call({ method: 'DELETE', path, anonymous: true });
    } catch (error) {
      const { reason } = failureOf(error, token, webhook.token);
      log.warn({ channel: 'discord', reason }, 'a message went to the channel that a webhook was moved to');
    }
  }

  return {
    async speak(to, utterance, signal) {
      try {
        return await speak(to, utterance, signal);
      } catch (error) {
        return sendResult(failureOf(error, token));
      }
    },
  };
}

/** Which field of a form is wrong stands before what is wrong with it. */
function concerns({ code, reason }: Failure, field: string): boolean {
  return code === CODE.invalidForm && reason.includes(`${field}[`);
}
