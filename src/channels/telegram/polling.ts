/**
 * Taking in by asking: one batch of updates, stored with its offset in one go, and only then the next question,
 * which tells Telegram that we have it. What is not stored is given again.
 */
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import type { InboundBatch, InboundEvent } from '../../core/message.js';
import type { State } from '../state.js';
import type { BotApi } from './api.js';
import { type Failure, isWebhookInTheWay } from './failure.js';
import type { OurBot } from './ours.js';
import { supervise, whose } from './supervise.js';
import { ALLOWED_UPDATES } from './update.js';

/** How long Telegram keeps a question that it has no answer to. */
const PATIENCE_SECONDS = 30;
/** A question open for longer than this is lost: the connection is dead and nobody said so. */
const WATCHDOG_MS = 45_000;
/** An empty answer should take its time. A server that does not wait is not asked as fast as it answers. */
const QUICK_MS = 50;
/** An answer within this time was there before the question. */
const AT_ONCE_MS = 500;

export interface Polling {
  api: BotApi;
  /** Whose bot it is; null for the main one. */
  personaId: PersonaId | null;
  identity(signal: AbortSignal): Promise<OurBot>;
  /** Updates in our words; null before it is known who hears. */
  read(updates: unknown[]): InboundEvent[] | null;
  /** Stores a batch; rejects when it could not. */
  accept(batch: Pick<InboundBatch, 'events' | 'cursor' | 'piledUp'>): Promise<void>;
  /** Of a bot, by its id. */
  initialCursor(bot: string): Promise<string | null>;
  state: State;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

export async function poll(parts: Polling): Promise<void> {
  const { api, personaId, state, clock, log, signal } = parts;
  const whoseBot = { channel: 'telegram', ...whose(personaId) };
  let offset: number | null = null;
  /** Until a question has had to wait for its answer, Telegram gives us what it kept while we were away. */
  let catchingUp = true;

  /** A webhook that was left over would get what we ask for; what waits for it is kept. */
  let webhookRemoved: Promise<void> | null = null;
  function removeWebhook(): Promise<void> {
    webhookRemoved ??= api
      .call((raw, ended) => raw.deleteWebhook({ drop_pending_updates: false }, ended), { signal })
      .then(
        () => {},
        // getUpdates will say whether it is in the way; then it is removed, or said why not.
        (error) => log.debug({ ...whoseBot, reason: api.failure(error).reason }, 'no webhook removed'),
      );
    return webhookRemoved;
  }

  async function round(failures: number): Promise<void> {
    const [me] = await Promise.all([parts.identity(signal), removeWebhook()]);
    offset ??= Number((await parts.initialCursor(String(me.id))) ?? 0);
    // After a failure the first question is answered at once: so it is known that all is well again.
    const patience = failures === 0 ? PATIENCE_SECONDS : 0;
    if (failures === 0) state.up();
    const askedAt = clock.now();
    if (failures > 0) catchingUp = true;
    const updates = await ask(offset, patience);
    catchingUp = catchingUp && updates.length > 0 && clock.now() - askedAt < AT_ONCE_MS;
    if (updates.length === 0) {
      state.up();
      if (patience > 0 && clock.now() - askedAt < QUICK_MS) await clock.sleep(QUICK_MS, signal);
      return;
    }
    const next = offsetAfter(updates, offset);
    const events = parts.read(updates);
    if (events === null) throw new Error('it is not known who hears');
    await store({ events, cursor: String(next), piledUp: catchingUp });
    offset = next;
    state.up();
  }

  async function store(batch: Parameters<Polling['accept']>[0]): Promise<void> {
    try {
      await parts.accept(batch);
    } catch (error) {
      throw new Error(`what came from Telegram could not be stored: ${describe(error)}`);
    }
  }

  async function ask(from: number, patience: number): Promise<unknown[]> {
    const updates: unknown = await api.call(
      (raw, ended) =>
        raw.getUpdates(
          { ...(from > 0 ? { offset: from } : {}), timeout: patience, allowed_updates: ALLOWED_UPDATES },
          ended,
        ),
      { signal, ms: WATCHDOG_MS },
    );
    if (!Array.isArray(updates))
      throw new Error('Telegram answers getUpdates with something else than updates');
    return updates;
  }

  /** A webhook that was left over is in the way; what waits for it is kept. */
  async function mend(failure: Failure): Promise<boolean> {
    if (!isWebhookInTheWay(failure)) return false;
    try {
      await api.call((raw, ended) => raw.deleteWebhook({ drop_pending_updates: false }, ended), { signal });
      log.info(whoseBot, 'removed the webhook that was set for this bot; asking for updates instead');
      return true;
    } catch (error) {
      log.warn(
        { ...whoseBot, reason: api.failure(error).reason },
        'the webhook that is set for this bot could not be removed',
      );
      return false;
    }
  }

  return supervise({ round, mend, api, personaId, state, clock, log, signal });
}

function offsetAfter(updates: unknown[], offset: number): number {
  const ids = updates.map((update) => (update as { update_id?: unknown } | null)?.update_id);
  const next = Math.max(...ids.filter((id) => typeof id === 'number')) + 1;
  if (!Number.isSafeInteger(next))
    throw new Error('Telegram answers getUpdates with updates that have no ids');
  return Math.max(next, offset);
}
