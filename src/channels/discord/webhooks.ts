/**
 * Our webhooks: one in every channel where a persona speaks under its own name. Found by whose it is, so that it is the
 * same one after a restart, else made. Where there cannot be one for us, that is remembered for some minutes.
 */
import type { Clock } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import { bounded } from '../kit/bounded.js';
import type { Api } from './api.js';
import { NEUTRAL_NAME } from './face.js';
import { failureOf, isRefusal } from './failure.js';
import type { Identity } from './identity.js';
import { read } from './payload.js';
import { byAge } from './snowflake.js';

/** How many channels are remembered; older ones go. */
const MOST_NOTED = 1_000;
/** For so long a channel is not asked again for what it refused. */
const BARRED_MS = 300_000;
/** A reply does not wait for longer than this to be shown under the persona's own name. */
const PATIENCE_MS = 10_000;
/** The kind that takes messages with a token. */
const INCOMING = 1;

export interface Webhook {
  id: string;
  /** Whoever has it speaks through the webhook. */
  token: string;
}

export interface Webhooks {
  /** Ours in this channel, made if need be; null where there can be none now. Rejects when Discord cannot be asked. */
  take(channel: string, signal: AbortSignal): Promise<Webhook | null>;
  /** The same, but none is made. */
  find(channel: string, signal: AbortSignal): Promise<Webhook | null>;
  /** It is not there any more. */
  forget(channel: string, webhook: Webhook): void;
  /** Nothing can be said through one here, for some minutes. */
  bar(channel: string, reason: string, ms?: number): void;
  /** Whether it is one that we have spoken through. */
  isOurs(id: string): boolean;
}

export function createWebhooks(parts: {
  api: Api;
  identity: Identity;
  clock: Clock;
  token: string;
  log: Log;
}): Webhooks {
  const { api, identity, clock, token, log } = parts;
  const known = bounded<string, Webhook>(MOST_NOTED);
  const ours = bounded<string, true>(MOST_NOTED);
  const barredUntil = bounded<string, number>(MOST_NOTED);
  /** Two who ask at once must not make two. */
  const making = new Map<string, Promise<Webhook | null>>();

  function note(channel: string, { id, token: secret }: { id: string; token: string }): Webhook {
    const webhook = { id, token: secret };
    known.set(channel, webhook);
    ours.set(id, true);
    return webhook;
  }

  async function find(channel: string, signal: AbortSignal): Promise<Webhook | null> {
    const there = known.get(channel);
    if (there !== undefined) return there;
    const me = await identity.ask(signal);
    const told = await api.call({ method: 'GET', path: `/channels/${channel}/webhooks` }, { signal });
    const found = (Array.isArray(told) ? told : [])
      .flatMap((each) => read.webhook(each) ?? [])
      .filter(({ type, user, application_id: by }) => {
        return type === INCOMING && (user?.id === me.id || by === me.applicationId);
      })
      .sort(byAge)
      .flatMap(({ id, token: secret }) => (secret === undefined ? [] : [{ id, token: secret }]))[0];
    return found === undefined ? null : note(channel, found);
  }

  async function make(channel: string, signal: AbortSignal): Promise<Webhook | null> {
    try {
      const there = await find(channel, signal);
      if (there !== null) return there;
      const call = { method: 'POST', path: `/channels/${channel}/webhooks`, body: { name: NEUTRAL_NAME } };
      const made = read.webhook(await api.call({ ...call, method: 'POST' }, { signal }));
      if (made?.token === undefined) throw new Error('Discord made a webhook and does not say which');
      return note(channel, { id: made.id, token: made.token });
    } catch (error) {
      const failure = failureOf(error, token);
      const { reason, retryAfterMs } = failure;
      if (isRefusal(failure)) bar(channel, reason);
      else if (retryAfterMs !== null && retryAfterMs > PATIENCE_MS) bar(channel, reason, retryAfterMs);
      else throw error;
      return null;
    }
  }

  function bar(channel: string, reason: string, ms = BARRED_MS): void {
    barredUntil.set(channel, clock.now() + Math.min(ms, BARRED_MS));
    log.warn(
      { channel: 'discord', room: channel, reason },
      'personas cannot speak under their own names here; the bot speaks, with the name before the text (may it manage webhooks?)',
    );
  }

  return {
    find,
    bar,
    async take(channel, signal) {
      if ((barredUntil.get(channel) ?? 0) > clock.now()) return null;
      const there = known.get(channel);
      if (there !== undefined) return there;
      const underWay = making.get(channel) ?? make(channel, signal).finally(() => making.delete(channel));
      making.set(channel, underWay);
      return underWay;
    },
    forget(channel, { id }) {
      if (known.get(channel)?.id === id) known.delete(channel);
    },
    isOurs: (id) => ours.get(id) === true,
  };
}
