/**
 * Receiving by asking: one batch of updates, stored together with its offset, and only then the next question, which
 * tells Telegram that we have it. What is not stored is given again.
 */
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { State } from '../kit/state.js';
import { logFields } from './bots.js';
import { type Failure, isWebhookInTheWay } from './failure.js';
import type { Intake } from './intake.js';
import { keepReceiving } from './supervise.js';
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
  intake: Intake;
  /** The offset that was stored last for a bot, by its id; null before the first. */
  cursor(bot: string): Promise<string | null>;
  state: State;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

export function poll({ intake, cursor, state, clock, log, signal }: Polling): Promise<void> {
  const { bot } = intake;
  const { api } = bot;
  const fields = logFields(bot.personaId);
  let offset: number | null = null;
  /** Until a question has had to wait for its answer, Telegram gives us what it kept while we were away. */
  let catchingUp = true;
  let webhookRemoved: Promise<unknown> | null = null;

  async function round(failures: number): Promise<void> {
    const identity = intake.identity(signal);
    // A webhook that was left over would get what we ask for. If this fails, getUpdates says whether one is in the way.
    webhookRemoved ??= removeWebhook().catch((error) =>
      log.debug({ ...fields, reason: api.failure(error).reason }, 'no webhook removed'),
    );
    const [me] = await Promise.all([identity, webhookRemoved]);
    offset ??= Number((await cursor(String(me.id))) ?? 0);
    // After a failure the first question is answered at once: so it is known that all is well again.
    const patience = failures === 0 ? PATIENCE_SECONDS : 0;
    if (failures === 0) state.up();
    else catchingUp = true;
    const askedAt = clock.now();
    const updates = await ask(offset, patience);
    catchingUp = catchingUp && updates.length > 0 && clock.now() - askedAt < AT_ONCE_MS;
    if (updates.length > 0) {
      const next = offsetAfter(updates, offset);
      await store(updates, next);
      offset = next;
    }
    state.up();
    const isQuick = updates.length === 0 && patience > 0 && clock.now() - askedAt < QUICK_MS;
    if (isQuick) await clock.sleep(QUICK_MS, signal);
  }

  async function ask(from: number, patience: number): Promise<unknown[]> {
    const question = { timeout: patience, allowed_updates: ALLOWED_UPDATES };
    const updates: unknown = await api.call(
      (raw, ended) => raw.getUpdates(from > 0 ? { ...question, offset: from } : question, ended),
      { signal, ms: WATCHDOG_MS },
    );
    if (!Array.isArray(updates)) {
      throw new Error('Telegram answers getUpdates with something else than updates');
    }
    return updates;
  }

  async function store(updates: unknown[], next: number): Promise<void> {
    const events = intake.read(updates);
    if (events === null) throw new Error('it is not known yet which bot received it');
    try {
      await intake.accept({ events, cursor: String(next), piledUp: catchingUp });
    } catch (error) {
      throw new Error(`what came from Telegram could not be stored: ${describe(error)}`);
    }
  }

  /** What waits for the webhook is kept. */
  function removeWebhook(): Promise<unknown> {
    return api.call((raw, ended) => raw.deleteWebhook({ drop_pending_updates: false }, ended), { signal });
  }

  async function repair(failure: Failure): Promise<boolean> {
    if (!isWebhookInTheWay(failure)) return false;
    try {
      await removeWebhook();
      log.info(fields, 'removed the webhook that was set for this bot; asking for updates instead');
      return true;
    } catch (error) {
      const { reason } = api.failure(error);
      log.warn({ ...fields, reason }, 'the webhook that is set for this bot could not be removed');
      return false;
    }
  }

  return keepReceiving({ bot, round, repair, state, clock, log, signal });
}

function offsetAfter(updates: unknown[], offset: number): number {
  const ids = updates.map((update) => (update as { update_id?: unknown } | null)?.update_id);
  const next = Math.max(...ids.filter((id) => typeof id === 'number')) + 1;
  if (!Number.isSafeInteger(next)) {
    throw new Error('Telegram answers getUpdates with updates that have no ids');
  }
  return Math.max(next, offset);
}
