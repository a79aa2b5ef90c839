/**
 * Step 1 of the route: updates are stored before Telegram hears of it. Polling stores a batch together with
 * its offset, and the next request confirms it. With a webhook (`channel.ts`) Telegram repeats an update until it
 * gets 200.
 */
import type { ChannelHost, ChannelState, Receive } from '../../core/channel.js';
import { orAfter } from '../../core/clock.js';
import { createMutex } from '../../core/concurrency.js';
import { describe } from '../../core/errors.js';
import type { InboundEvent } from '../../core/message.js';
import { mayTry, SUSPECT } from '../../core/retry.js';
import { backoffMs, type State, supervise } from '../kit/supervise.js';
import type { Bot, Bots } from './bots.js';
import type { createPresses } from './changes.js';
import { numberCopies } from './events.js';
import { isWebhookInTheWay } from './failure.js';
import { inbound } from './inbound.js';
import { ALLOWED_UPDATES } from './update.js';

/** How long Telegram keeps a request open without updates. */
const LONG_POLL_SECONDS = 30;
/** A request open for longer is lost: the connection is dead. */
const WATCHDOG_MS = 45_000;
/** An empty answer should take time. A server that does not wait is polled more slowly. */
const QUICK_MS = 50;
/** An answer within this time was ready before the request. */
const AT_ONCE_MS = 500;
/** Telegram ignores an offset further ahead of its next id than this. */
const MOST_AHEAD = 10;
/** How long an update that may end the process waits for turns to end. */
const SETTLE_MS = 30_000;

export interface BotIntake {
  host: Pick<ChannelHost<unknown>, 'state' | 'cursor' | 'clock' | 'log'>;
  bot: Bot;
  bots: Bots;
  receive: Receive;
  presses: ReturnType<typeof createPresses>;
  state: State;
  signal: AbortSignal;
}

/** An offset, and whether more updates wait behind it. */
interface Offset {
  cursor: string;
  piledUp: boolean;
}

export function createStoring({ host, bot, bots, receive, presses, signal }: BotIntake) {
  const numbered = numberCopies();
  const inTurn = createMutex();
  const attemptsMade = attemptsOf(bot, host.state);

  /** Resolves when the receiving bot and the names to recognise in messages are known. */
  async function logIn() {
    await Promise.all([bot.logIn(signal), bots.main.logIn(signal)]);
    await bots.loggedIn(signal);
  }

  const receiveBatch = (events: InboundEvent[], more?: Partial<Offset> & { passedOver?: string }) => {
    const account = String(bots.main.id);
    return receive({ channel: 'telegram', account, events, cursorFor: String(bot.id), ...more });
  };

  /** Resolves when the updates' contents are stored, together with the offset, if any. */
  async function store(updates: unknown[], offset?: Offset): Promise<void> {
    await logIn();
    bots.learn(bot, updates);
    const events = inbound(updates, bot, bots.all).map((event) =>
      event.kind === 'message' && event.dedupeKey !== undefined ? numbered(event, event.dedupeKey) : event,
    );
    for (const event of events) {
      if (event.kind === 'message' || event.kind === 'choice') bots.heard(bot, event.chat.address);
    }
    const isNothing = events.length === 0 && offset === undefined;
    const reception = isNothing ? {} : await receiveBatch(events, offset);
    for (const update of updates) {
      if (Object(update).callback_query !== undefined) presses.answer(bot, update, reception);
    }
  }

  /** Stores, but skips an update that ended the process on each of five attempts (docs/decisions/0042). */
  async function storeGuarded(
    place: string,
    update: string,
    updates: unknown[],
    offset?: Offset,
  ): Promise<void> {
    await logIn();
    await inTurn(async () => {
      const attempts = await attemptsMade.at(place);
      if (!mayTry(attempts)) {
        const fields = { ...bot.fields, update, attempts };
        host.log.error(fields, 'skipped an update; the process ended each time it was read');
        await receiveBatch([], { ...offset, passedOver: update });
        return attemptsMade.note(place, 0);
      }
      if (attempts >= SUSPECT) {
        // It waits until no turn is running, which would end with it.
        const { settled } = await receiveBatch([]);
        await orAfter(settled(), SETTLE_MS, host.clock, signal);
        if (signal.aborted) throw new Error('the channel stops');
      }
      await attemptsMade.note(place, attempts + 1);
      try {
        await store(updates, offset);
      } catch (error) {
        // An error is an outcome.
        await attemptsMade.note(place, attempts);
        throw error;
      }
    });
  }

  /** Whether the process may have ended there: then updates are read one at a time, to find the one. */
  const isSuspect = async (place: string) => (await attemptsMade.at(place)) >= SUSPECT;

  return { logIn, store, storeGuarded, isSuspect };
}

/** Attempts at a place (an offset or an update's id) that had no outcome yet, counted on disk. */
function attemptsOf(bot: Bot, state: ChannelState) {
  const key = () => `reading ${bot.id}`;
  return {
    async at(place: string): Promise<number> {
      const noted = (await state.get([key()])).get(key()) ?? '';
      const [, at, count] = /^(.*) (\d+)$/.exec(noted) ?? [];
      return at === place ? Number(count) : 0;
    },
    note: (place: string, attempts: number) =>
      state.set(new Map([[key(), attempts === 0 ? null : `${place} ${attempts}`]])),
  };
}

/** Polls for updates until the signal aborts. Never rejects. */
export function poll(intake: BotIntake): Promise<void> {
  const { host, bot, state, signal } = intake;
  const { clock, log, cursor } = host;
  const storing = createStoring(intake);
  /** Once after each success: somebody else may set it again at once. */
  let mayRemoveWebhook = true;
  let offset: number | null = null;
  /** A process guards its first batch; if an earlier process may have ended at a batch, each one. */
  let isFirst = true;
  let isCareful = false;
  /** Until a request has had to wait for its answer, Telegram is delivering its backlog. */
  let isCatchingUp = true;

  /** Before the first request. Returns the initial offset. */
  async function begin(failures: number): Promise<number> {
    await storing.logIn();
    const stored = Number((await cursor(String(bot.id))) ?? 0);
    isCareful = await storing.isSuspect(String(stored));
    // The first request may stay open for long. After a failure, only its answer shows recovery.
    if (failures === 0) state.up();
    return stored;
  }

  async function round(failures: number): Promise<void> {
    offset ??= await begin(failures);
    if (failures > 0) isCatchingUp = true;
    // After a failure the next request does not wait, so that recovery shows at once.
    const patience = failures === 0 ? LONG_POLL_SECONDS : 0;
    const askedAt = clock.now();
    const updates = await getUpdates(intake, offset, patience, isCareful);
    isCatchingUp = isCatchingUp && updates.length > 0 && clock.now() - askedAt < AT_ONCE_MS;
    if (updates.length > 0) {
      const next = offsetAfter(updates, offset);
      if (next < offset)
        log.info({ ...bot.fields, from: next }, 'Telegram restarted its update ids; following');
      await takeIn(updates, offset, next);
      offset = next;
      isFirst = false;
    }
    if (!isCatchingUp) isCareful = false;
    mayRemoveWebhook = true;
    if (failures > 0) state.up();
    const isQuick = updates.length === 0 && patience > 0 && clock.now() - askedAt < QUICK_MS;
    if (isQuick) await clock.sleep(QUICK_MS, signal);
  }

  async function takeIn(updates: unknown[], from: number, next: number): Promise<void> {
    const behind = { cursor: String(next), piledUp: isCatchingUp };
    try {
      if (isFirst || isCareful) await storing.storeGuarded(String(from), String(next - 1), updates, behind);
      else await storing.store(updates, behind);
    } catch (error) {
      throw new Error(`could not store updates from Telegram: ${describe(error)}`);
    }
  }

  return keepReceiving(intake, async (failures) => {
    try {
      await round(failures);
    } catch (error) {
      if (!mayRemoveWebhook || signal.aborted || !isWebhookInTheWay(bot.api.failure(error))) throw error;
      await removeWebhook(intake);
      mayRemoveWebhook = false;
      await round(1);
    }
  });
}

async function getUpdates(
  { bot: { api }, signal }: BotIntake,
  from: number,
  patience: number,
  isCareful: boolean,
): Promise<unknown[]> {
  const request = {
    timeout: patience,
    allowed_updates: ALLOWED_UPDATES,
    // One at a time, to identify the one that ends the process.
    ...(isCareful ? { limit: 1 } : {}),
    ...(from > 0 ? { offset: from } : {}),
  };
  const limits = { signal, ms: WATCHDOG_MS };
  const updates: unknown = await api.call((raw, ended) => raw.getUpdates(request, ended), limits);
  if (Array.isArray(updates)) return updates;
  throw new Error('Telegram answered getUpdates with something else than updates');
}

/** Keeps the pending updates. */
async function removeWebhook({ host: { log }, bot: { api, fields }, signal }: BotIntake): Promise<void> {
  await api.call((raw, ended) => raw.deleteWebhook({ drop_pending_updates: false }, ended), { signal });
  log.info(fields, 'removed the webhook that was set for this bot; polling instead');
}

/** Ids may restart anywhere. Telegram ignores an offset too far ahead, and then confirms nothing. */
function offsetAfter(updates: unknown[], offset: number): number {
  const ids = updates.map((update) => Object(update).update_id);
  const next = Math.max(...ids.filter((id) => typeof id === 'number')) + 1;
  if (!Number.isSafeInteger(next)) throw new Error('Telegram answered getUpdates with updates without ids');
  return next <= offset - MOST_AHEAD ? next : Math.max(next, offset);
}

/** Retries a failed round after a pause, until the signal aborts. Never rejects. */
export function keepReceiving(
  { host: { clock, log }, bot, state, signal }: BotIntake,
  round: (failures: number) => Promise<void>,
): Promise<void> {
  return supervise({
    async round(failures) {
      try {
        await round(failures);
        return null;
      } catch (error) {
        const { reason, retryAfterMs } = bot.api.failure(error);
        return { reason, pauseMs: Math.max(retryAfterMs ?? 0, backoffMs(failures)) };
      }
    },
    log: (_setback, told) => log.warn({ ...bot.fields, ...told }, 'receiving from Telegram failed; retrying'),
    state,
    clock,
    signal,
  });
}
