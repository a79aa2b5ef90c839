/**
 * Our webhooks: one in every channel where a persona speaks under its own name. Found by whose it is, so that it is the
 * same one after a restart, else made. Where there cannot be one for us, that is remembered for some minutes.
 */
import { bounded } from '../kit/bounded.js';
import { type Base, MOST_NOTED } from './api.js';
import { NEUTRAL_NAME } from './author.js';
import { failureOf, isRefusal } from './failure.js';
import type { Identity } from './identity.js';
import { read } from './payload.js';
import { byAge } from './snowflake.js';

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

export type Webhooks = ReturnType<typeof createWebhooks>;

export function createWebhooks({ api, clock, log }: Base, identity: Identity) {
  const known = bounded<string, Webhook>(MOST_NOTED);
  const ours = bounded<string, true>(MOST_NOTED);
  /** Where there cannot be one, until when, and after how many changes of roles and channels. */
  const barred = bounded<string, { until: number; lifts: number }>(MOST_NOTED);
  /** Where the operator was told of that. */
  const told = bounded<string, true>(MOST_NOTED);
  /** Those that Discord does not know any more. */
  const dead = bounded<string, true>(MOST_NOTED);
  /** Two who ask at once must not make two. */
  const making = new Map<string, Promise<Webhook | null>>();

  function note(channel: string, webhook: Webhook): Webhook {
    told.delete(channel);
    known.set(channel, webhook);
    ours.set(webhook.id, true);
    return webhook;
  }

  function inUse(channel: string): Webhook | undefined {
    const there = known.get(channel);
    return there === undefined || dead.get(there.id) ? undefined : there;
  }

  async function find(channel: string, signal: AbortSignal): Promise<Webhook | null> {
    const there = inUse(channel);
    if (there !== undefined) return there;
    const me = await identity.ask(signal);
    const listed = await api.get(`/channels/${channel}/webhooks`, signal);
    const [found] = (Array.isArray(listed) ? listed : [])
      .flatMap((each) => read.webhook(each) ?? [])
      .filter(({ id, type, user, application_id: by }) => {
        const isOwn = user?.id === me.id || by === me.applicationId;
        return type === INCOMING && isOwn && dead.get(id) === undefined;
      })
      .sort(byAge)
      .flatMap(({ id, token: secret }) => (secret === undefined ? [] : [{ id, token: secret }]));
    return found === undefined ? null : note(channel, found);
  }

  async function make(channel: string, signal: AbortSignal): Promise<Webhook | null> {
    try {
      const there = await find(channel, signal);
      if (there !== null) return there;
      const path = `/channels/${channel}/webhooks`;
      const made = read.webhook(
        await api.call({ method: 'POST', path, body: { name: NEUTRAL_NAME } }, signal),
      );
      if (made?.token === undefined) throw new Error('Discord made a webhook and does not say which');
      return note(channel, { id: made.id, token: made.token });
    } catch (error) {
      const failure = failureOf(error);
      const { reason, retryAfterMs } = failure;
      if (isRefusal(failure)) bar(channel, reason);
      else if (retryAfterMs !== null && retryAfterMs > PATIENCE_MS) bar(channel, reason, retryAfterMs);
      else throw error;
      return null;
    }
  }

  /** Nothing can be said through one here, for some minutes. */
  function bar(channel: string, reason: string, ms = BARRED_MS): void {
    const until = clock.now() + Math.min(ms, BARRED_MS);
    barred.set(channel, { until, lifts: api.forbidden.lifts() });
    const words =
      'personas cannot speak under their own names here; the bot speaks for them (may it manage webhooks?)';
    if (told.get(channel)) log.debug({ channel: 'discord', room: channel, reason }, words);
    else log.warn({ channel: 'discord', room: channel, reason }, words);
    told.set(channel, true);
  }

  function isBarred(channel: string): boolean {
    const bar = barred.get(channel);
    return bar !== undefined && bar.until > clock.now() && bar.lifts === api.forbidden.lifts();
  }

  return {
    /** Ours in this channel, if there is one. Rejects when Discord cannot be asked. */
    find,
    bar,
    /** The same, made if need be; null where there can be none now. */
    async take(channel: string, signal: AbortSignal): Promise<Webhook | null> {
      if (isBarred(channel)) return null;
      const there = inUse(channel);
      if (there !== undefined) return there;
      const underWay = making.get(channel) ?? make(channel, signal).finally(() => making.delete(channel));
      making.set(channel, underWay);
      return underWay;
    },
    /** It says nothing more in this channel; perhaps it was moved to another one. */
    forget(channel: string, { id }: Webhook): void {
      if (known.get(channel)?.id === id) known.delete(channel);
    },
    /** Discord does not know it any more: whoever goes on using it is taken for an attacker. */
    bury: ({ id }: Webhook) => dead.set(id, true),
    isDead: ({ id }: Webhook): boolean => dead.get(id) === true,
    /** Whether it is one that we have spoken through. */
    isOurs: (id: string): boolean => ours.get(id) === true,
  };
}
