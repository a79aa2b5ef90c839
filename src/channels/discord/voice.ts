/**
 * How a message of ours was said: by the bot, or through a webhook, and under which name. Remembered for what was sent
 * in this life; of anything else Discord is asked.
 */
import type { Recipient, SendOptions } from '../../core/channel.js';
import { bounded } from '../kit/bounded.js';
import type { Api } from './api.js';
import { authorOf, readsAs } from './face.js';
import type { Identity } from './identity.js';
import { roomOf } from './outbound.js';
import { read } from './payload.js';
import type { Webhook, Webhooks } from './webhooks.js';

/** How many are remembered; older ones go. */
const MOST_NOTED = 1_000;

/** `named`: the text begins with the name, since the author's is another. `lost`: its webhook is there no more. */
export type Voice =
  | { kind: 'bot' }
  | { kind: 'webhook'; webhook: Webhook; named: boolean }
  | { kind: 'lost'; reason: string };

export interface Voices {
  note(messageId: string, voice: Voice): void;
  /** Rejects when Discord cannot be asked, or does not know the message. */
  of(to: Recipient, messageId: string, options: SendOptions): Promise<Voice>;
}

export function createVoices(parts: { api: Api; identity: Identity; webhooks: Webhooks }): Voices {
  const { api, identity, webhooks } = parts;
  const known = bounded<string, Voice>(MOST_NOTED);

  async function ask(
    to: Recipient,
    messageId: string,
    username: string,
    signal: AbortSignal,
  ): Promise<Voice> {
    const me = await identity.ask(signal);
    const path = `/channels/${roomOf(to)}/messages/${messageId}`;
    const told = read.sent(await api.call({ method: 'GET', path }, { signal }));
    if (told?.webhook_id === undefined || told.author.id === me.id) return { kind: 'bot' };
    const webhook = await webhooks.find(to.address, signal);
    return webhook?.id === told.webhook_id
      ? { kind: 'webhook', webhook, named: !readsAs(told.author.username ?? '', username) }
      : { kind: 'lost', reason: 'the webhook that the message was sent through is not there any more' };
  }

  return {
    note: (messageId, voice) => known.set(messageId, voice),
    async of(to, messageId, options) {
      const noted = known.get(messageId);
      if (noted !== undefined) return noted;
      const author = authorOf(to, options);
      if (author === null) return { kind: 'bot' };
      const voice = await ask(to, messageId, author.username, options.signal);
      known.set(messageId, voice);
      return voice;
    },
  };
}
