/**
 * Step 1 of the route: updates are stored before Telegram hears of it. Polling stores a batch together with
 * its offset, and the next request confirms it. With a webhook, Telegram repeats an update until it gets 200.
 * An update that ends the process on each attempt is skipped after five (docs/decisions/0042).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { CallbackQuery } from 'grammy/types';
import type { ChannelHost, ChoiceOutcome, Receive, Reception, Webhook } from '../../core/channel.js';
import { onAbort, withDeadline } from '../../core/clock.js';
import { createMutex } from '../../core/concurrency.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { mayTry } from '../../core/retry.js';
import { PRESS_ANSWERS } from '../kit/outgoing.js';
import { backoffMs, type Setback, type State, supervise } from '../kit/supervise.js';
import { type Bot, type Bots, logFields, pressIdOf } from './bots.js';
import { isWebhookInTheWay } from './failure.js';
import { inbound, numberCopies } from './inbound.js';
import { ALLOWED_UPDATES, readUpdate } from './update.js';
import type { DeliveryCheck } from './was-delivered.js';

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
/** After so many ends at one place updates are read one at a time: fewer are those of a gateway that is killed from outside. */
const SUSPECT = 3;
/** An update that may end the process waits until no turn is running, which would end with it. */
const SETTLE_MS = 30_000;
/** A press that takes longer to answer does not delay a stop, either. */
const PRESS_ANSWER_MS = 10_000;
const WEBHOOK_PATH = '/telegram/webhook';
/** Checked regularly: somebody else may set another webhook. */
const WEBHOOK_CHECK_MS = 300_000;

export interface BotIntake {
  host: Pick<ChannelHost<unknown>, 'state' | 'cursor' | 'clock' | 'log'>;
  bot: Bot;
  bots: Bots;
  receive: Receive;
  presses: PressAnswers;
  delivered: DeliveryCheck;
  state: State;
  signal: AbortSignal;
}

/** An offset, and whether more updates wait behind it. */
interface Offset {
  cursor: string;
  piledUp: boolean;
}

function createStoring({ host, bot, bots, receive, presses, delivered, signal }: BotIntake) {
  const { state, clock, log } = host;
  const numbered = numberCopies();
  const inTurn = createMutex();

  /** Resolves when the receiving bot and the names to recognise in messages are known. */
  async function logIn() {
    const [our, main] = await Promise.all([bot.identity(signal), bots.main.identity(signal)]);
    await bots.loggedIn(signal);
    const cursorFor = our.personaId === undefined ? {} : { cursorFor: String(our.id) };
    return { our, batch: { channel: 'telegram', account: String(main.id) }, cursorFor };
  }

  /** Resolves when the updates' contents are stored, together with the offset, if any. */
  async function store(updates: unknown[], offset?: Offset): Promise<void> {
    const { our, batch, cursorFor } = await logIn();
    delivered.heard(our, updates);
    const events = inbound(updates, our, bots.ours()).map((event) =>
      event.kind === 'message' && event.dedupeKey !== undefined ? numbered(event, event.dedupeKey) : event,
    );
    for (const event of events) {
      if (event.kind === 'message' || event.kind === 'choice') bots.heard(bot, event.chat.address);
    }
    const isNothing = events.length === 0 && offset === undefined;
    const reception = isNothing
      ? {}
      : await receive({ ...batch, events, ...offset, ...(offset === undefined ? {} : cursorFor) });
    presses.answer(bot, updates, reception);
  }

  const attemptsKey = () => `reading ${bot.our().id}`;

  /** Number of attempts at this place without an outcome. */
  async function attemptsAt(place: string): Promise<number> {
    const noted = (await state.get([attemptsKey()])).get(attemptsKey()) ?? '';
    const [, at, count] = /^(.*) (\d+)$/.exec(noted) ?? [];
    return at === place ? Number(count) : 0;
  }

  async function note(place: string, attempts: number): Promise<void> {
    await state.set(new Map([[attemptsKey(), attempts === 0 ? null : `${place} ${attempts}`]]));
  }

  /** Stores, with the count of attempts on disk; skips an update that has used them up. */
  function storeGuarded(place: string, updateId: string, updates: unknown[], offset?: Offset): Promise<void> {
    return inTurn(async () => {
      const attempts = await attemptsAt(place);
      const { batch, cursorFor } = await logIn();
      if (!mayTry(attempts)) {
        const fields = { ...logFields(bot.personaId), update: updateId, attempts };
        log.error(fields, 'skipped an update; the process ended each time it was read');
        await receive({ ...batch, events: [], passedOver: updateId, ...offset, ...cursorFor });
        return note(place, 0);
      }
      if (attempts >= SUSPECT) {
        const { settled } = await receive({ ...batch, events: [] });
        await withDeadline(clock, SETTLE_MS, signal, (ended) =>
          Promise.race([settled(), new Promise<void>((resolve) => onAbort(ended, resolve))]),
        );
        if (signal.aborted) throw new Error('the channel stops');
      }
      await note(place, attempts + 1);
      try {
        await store(updates, offset);
      } catch (error) {
        // An error is an outcome.
        await note(place, attempts);
        throw error;
      }
    });
  }

  return { logIn, store, storeGuarded, attemptsAt };
}

/** Polls for updates until the signal aborts. Never rejects. */
export function poll(intake: BotIntake): Promise<void> {
  const { host, bot, state, signal } = intake;
  const { clock, log, cursor } = host;
  const { api } = bot;
  const fields = logFields(bot.personaId);
  const { logIn, store, storeGuarded, attemptsAt } = createStoring(intake);
  let webhookRemoved: Promise<unknown> | null = null;
  let offset: number | null = null;
  /** A process guards its first batch; if an earlier process may have ended at a batch, each one. */
  let isFirst = true;
  let isCareful = false;
  /** Until a request has had to wait for its answer, Telegram is delivering its backlog. */
  let isCatchingUp = true;

  /** Before the first request. Returns the initial offset. */
  async function begin(failures: number): Promise<number> {
    const loggingIn = logIn();
    // A leftover webhook would take our updates. If this fails, getUpdates reports a webhook in the way.
    webhookRemoved ??= removeWebhook(intake).catch((error) =>
      log.debug({ ...fields, reason: api.failure(error).reason }, 'no webhook removed'),
    );
    const [{ our }] = await Promise.all([loggingIn, webhookRemoved]);
    const stored = Number((await cursor(String(our.id))) ?? 0);
    isCareful = (await attemptsAt(String(stored))) >= SUSPECT;
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
      if (next < offset) log.info({ ...fields, from: next }, 'Telegram restarted its update ids; following');
      await takeIn(updates, offset, next);
      offset = next;
      isFirst = false;
    }
    if (!isCatchingUp) isCareful = false;
    if (failures > 0) state.up();
    const isQuick = updates.length === 0 && patience > 0 && clock.now() - askedAt < QUICK_MS;
    if (isQuick) await clock.sleep(QUICK_MS, signal);
  }

  async function takeIn(updates: unknown[], from: number, next: number): Promise<void> {
    const behind = { cursor: String(next), piledUp: isCatchingUp };
    try {
      if (isFirst || isCareful) await storeGuarded(String(from), String(next - 1), updates, behind);
      else await store(updates, behind);
    } catch (error) {
      throw new Error(`could not store updates from Telegram: ${describe(error)}`);
    }
  }

  return keepReceiving(intake, async (failures) => {
    try {
      await round(failures);
    } catch (error) {
      if (!(await repaired(intake, error, failures))) throw error;
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
function removeWebhook({ bot: { api }, signal }: BotIntake): Promise<unknown> {
  return api.call((raw, ended) => raw.deleteWebhook({ drop_pending_updates: false }, ended), { signal });
}

/** Removes a webhook in the way, but only after a success: somebody else may set it again at once. */
async function repaired(intake: BotIntake, error: unknown, failures: number): Promise<boolean> {
  const { host, bot, signal } = intake;
  const { api, personaId } = bot;
  if (failures > 0 || signal.aborted || !isWebhookInTheWay(api.failure(error))) return false;
  const fields = logFields(personaId);
  try {
    await removeWebhook(intake);
    host.log.info(fields, 'removed the webhook that was set for this bot; polling instead');
    return true;
  } catch (failed) {
    const { reason } = api.failure(failed);
    host.log.warn({ ...fields, reason }, "could not remove the bot's webhook");
    return false;
  }
}

/** Ids may restart anywhere. Telegram ignores an offset too far ahead, and then confirms nothing. */
function offsetAfter(updates: unknown[], offset: number): number {
  const ids = updates.map((update) => (update as { update_id?: unknown } | null)?.update_id);
  const next = Math.max(...ids.filter((id) => typeof id === 'number')) + 1;
  if (!Number.isSafeInteger(next)) throw new Error('Telegram answered getUpdates with updates without ids');
  return next <= offset - MOST_AHEAD ? next : Math.max(next, offset);
}

/** Retries a failed round after a pause, until the signal aborts. Never rejects. */
function keepReceiving(
  { host: { clock, log }, bot, state, signal }: BotIntake,
  round: (failures: number) => Promise<void>,
): Promise<void> {
  const setbackOf = (error: unknown): Setback => {
    const { reason, retryAfterMs } = bot.api.failure(error);
    return { reason, pauseMs: (failures) => Math.max(retryAfterMs ?? 0, backoffMs(failures)) };
  };
  return supervise({
    round: (failures) => round(failures).then(() => null, setbackOf),
    log: (_setback, told) =>
      log.warn({ ...logFields(bot.personaId), ...told }, 'receiving from Telegram failed; retrying'),
    state,
    clock,
    signal,
  });
}

export function createWebhook(url: string, secret: string) {
  let receiving: {
    intake: BotIntake;
    storeGuarded: ReturnType<typeof createStoring>['storeGuarded'];
  } | null = null;
  const underWay = new Set<Promise<void>>();

  /** Keeps the webhook set. Ends when the signal aborts and received updates are stored. Never rejects. */
  async function keep(intake: BotIntake): Promise<void> {
    const { host, bot, state, signal } = intake;
    const { api } = bot;
    const { logIn, storeGuarded } = createStoring(intake);
    let isSet = false;
    await keepReceiving(intake, async () => {
      await logIn();
      receiving = { intake, storeGuarded };
      if (!isSet) {
        const wanted = { url, secret_token: secret, allowed_updates: ALLOWED_UPDATES };
        await api.call((raw, ended) => raw.setWebhook(wanted, ended), { signal });
        isSet = true;
      }
      state.up();
      await host.clock.sleep(WEBHOOK_CHECK_MS, signal);
      if (signal.aborted) return;
      const info = await api.call((raw, ended) => raw.getWebhookInfo(ended), { signal });
      if (info.url === url) return;
      isSet = false;
      host.log.warn({ channel: 'telegram' }, "the bot's webhook was removed or replaced; setting it again");
    });
    await Promise.allSettled(underWay);
  }

  const admits = (given: string | null) => given !== null && isSame(given, secret);

  async function handle(body: unknown, givenSecret: string | null): Promise<number> {
    if (!admits(givenSecret)) return 401;
    if (typeof body !== 'object' || body === null || !('update_id' in body)) return 400;
    // Not started, not logged in, or stopping: Telegram keeps the update and retries.
    if (receiving === null || receiving.intake.signal.aborted) return 503;
    const id = String(body.update_id);
    const stored = receiving.storeGuarded(id, id, [body]);
    underWay.add(stored);
    try {
      await stored;
      return 200;
    } catch (error) {
      const fields = { channel: 'telegram', reason: describe(error) };
      receiving.intake.host.log.error(fields, 'could not store an update; Telegram will send it again');
      return 500;
    } finally {
      underWay.delete(stored);
    }
  }

  const webhook: Webhook = {
    path: WEBHOOK_PATH,
    secretHeader: 'x-telegram-bot-api-secret-token',
    admits,
    handle,
  };
  return { webhook, keep };
}

/** Compares digests, so that timing reveals neither content nor length. */
function isSame(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}

export type PressAnswers = ReturnType<typeof createPresses>;

/** Answers presses of our buttons, which ends their spinner, and removes the buttons. Best effort. */
export function createPresses(log: Log) {
  const underWay = new Set<Promise<void>>();

  async function answer(bot: Bot, press: CallbackQuery, outcome: ChoiceOutcome | undefined): Promise<void> {
    const { id, message } = press;
    const text = outcome === undefined ? null : PRESS_ANSWERS[outcome];
    const limits = { ms: PRESS_ANSWER_MS };
    const answered = { callback_query_id: id, ...(text === null ? {} : { text }) };
    await quietly(bot, () => bot.api.call((raw, ended) => raw.answerCallbackQuery(answered, ended), limits));
    if (message === undefined || outcome === undefined || outcome === 'not yours') return;
    const which = { chat_id: message.chat.id, message_id: message.message_id };
    const there = { ...limits, chat: String(message.chat.id) };
    await quietly(bot, () => bot.api.call((raw, ended) => raw.editMessageReplyMarkup(which, ended), there));
  }

  async function quietly(bot: Bot, call: () => Promise<unknown>): Promise<void> {
    try {
      await call();
    } catch (error) {
      const { reason } = bot.api.failure(error);
      log.debug({ ...logFields(bot.personaId), reason }, 'could not answer the press of a button');
    }
  }

  return {
    /** Answers every press among the updates, which are already stored. Returns at once. */
    answer(bot: Bot, updates: readonly unknown[], { choices }: { choices?: Reception['choices'] }): void {
      for (const update of updates) {
        if (typeof update !== 'object' || update === null || !('callback_query' in update)) continue;
        const press = readUpdate(update).callback_query;
        if (press === undefined) continue;
        const answering = answer(bot, press, choices?.get(pressIdOf(bot.our(), press)));
        underWay.add(answering);
        void answering.finally(() => underWay.delete(answering));
      }
    },
    /** Resolves when all are answered. */
    async idle(): Promise<void> {
      await Promise.all(underWay);
    },
  };
}
