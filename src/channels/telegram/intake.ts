/**
 * Where the route begins, receiving by asking: one batch of updates, stored together with its offset, and only then the
 * next question, which tells Telegram that we have it. What is not stored is given again. (`webhook.ts` receives by being
 * called.)
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import type { ChannelState, ChoiceOutcome, Receive, Reception, Webhook } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { PRESS_ANSWERS } from '../kit/outgoing.js';
import { backoffMs, type Setback, type State, supervise } from '../kit/supervise.js';
import { type Bot, type Bots, logFields, type OurBot, pressIdOf } from './bots.js';
import { isWebhookInTheWay } from './failure.js';
import { inbound, type numberCopies } from './inbound.js';
import { type Called, createCalled, createStuck, type Stuck } from './stuck.js';
import { ALLOWED_UPDATES, type Press, readUpdate } from './update.js';
import type { DeliveryCheck } from './was-delivered.js';

/** How long Telegram keeps a question that it has no answer to. */
const PATIENCE_SECONDS = 30;
/** A question open for longer than this is lost: the connection is dead and nobody said so. */
const WATCHDOG_MS = 45_000;
/** An empty answer should take its time. A server that does not wait is not asked as fast as it answers. */
const QUICK_MS = 50;
/** An answer within this time was there before the question. */
const AT_ONCE_MS = 500;
/** An offset further ahead of Telegram's next id than this is none to it. */
const MOST_AHEAD = 10;

/** What one of our bots takes in with. */
interface Intake {
  bot: Bot;
  bots: Bots;
  receive: Receive;
  numbered: ReturnType<typeof numberCopies>;
  presses: Presses;
  delivered: DeliveryCheck;
  state: State;
  /** What is kept from start to start. */
  kept: Pick<ChannelState, 'get' | 'set'>;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

/** The bot as it logged in, and the account that all our bots are together. */
interface Login {
  our: OurBot;
  account: string;
}

/** `cursor`: the offset that was stored last for a bot, by its id; null before the first. */
export function poll(intake: Intake, cursor: (bot: string) => Promise<string | null>): Promise<void> {
  const { bot, state, clock, log, signal } = intake;
  const { api } = bot;
  const fields = logFields(bot.personaId);
  let webhookRemoved: Promise<unknown> | null = null;
  let begun: { login: Login; stuck: Stuck } | null = null;
  let offset = 0;
  /** Until a question has had to wait for its answer, Telegram gives us what it kept while we were away. */
  let catchingUp = true;

  /** Before the first question; again only while this fails. */
  async function begin(failures: number): Promise<{ login: Login; stuck: Stuck }> {
    const loggingIn = logIn(intake);
    // A webhook that was left over would get what we ask for. If this fails, getUpdates says whether one is in the way.
    webhookRemoved ??= removeWebhook().catch((error) =>
      log.debug({ ...fields, reason: api.failure(error).reason }, 'no webhook removed'),
    );
    const [login] = await Promise.all([loggingIn, webhookRemoved]);
    offset = Number((await cursor(String(login.our.id))) ?? 0);
    const stuck = await createStuck(keptOf(intake, login), offset);
    // The first question may be open for long. After a failure, only its answer says that all is well.
    if (failures === 0) state.up();
    return { login, stuck };
  }

  async function round(failures: number): Promise<void> {
    begun ??= await begin(failures);
    const { login, stuck } = begun;
    if (failures > 0) catchingUp = true;
    // After a failure the next question is answered at once: so it is known that all is well again.
    const patience = failures === 0 ? PATIENCE_SECONDS : 0;
    const askedAt = clock.now();
    const updates = await ask(patience, stuck.deadly === null ? {} : { limit: 1 });
    catchingUp = catchingUp && updates.length > 0 && clock.now() - askedAt < AT_ONCE_MS;
    if (updates.length > 0) {
      const next = offsetAfter(updates, offset);
      if (next < offset) log.info({ ...fields, from: next }, 'Telegram counts updates anew; following it');
      await takeIn(login, stuck, updates, next).catch((error) => {
        throw new Error(`what came from Telegram could not be stored: ${describe(error)}`);
      });
      offset = next;
    }
    if (!catchingUp && !stuck.isOver) await stuck.caughtUp();
    if (failures > 0) state.up();
    const isQuick = updates.length === 0 && patience > 0 && clock.now() - askedAt < QUICK_MS;
    if (isQuick) await clock.sleep(QUICK_MS, signal);
  }

  /** Resolves when all is stored, or the one that ends the process is passed over, with the next offset. */
  async function takeIn(login: Login, stuck: Stuck, updates: unknown[], next: number): Promise<void> {
    const behind = { cursor: String(next), piledUp: catchingUp };
    if (!stuck.isOver) await stuck.begin(offset);
    const all = () => store(intake, login, updates, behind);
    if (stuck.deadly === null) return all();
    // A server that gives more than was asked for: it is all of these, then.
    const those = `${next - 1}`;
    return stuck.deadly.handle(those, all, () => passOver(intake, login, those, behind));
  }

  async function ask(patience: number, most: { limit?: number }): Promise<unknown[]> {
    const question = { timeout: patience, allowed_updates: ALLOWED_UPDATES, ...most };
    const updates: unknown = await api.call(
      (raw, ended) => raw.getUpdates(offset > 0 ? { ...question, offset } : question, ended),
      { signal, ms: WATCHDOG_MS },
    );
    if (Array.isArray(updates)) return updates;
    throw new Error('Telegram answers getUpdates with something else than updates');
  }

  /** What waits for the webhook is kept. */
  function removeWebhook(): Promise<unknown> {
    return api.call((raw, ended) => raw.deleteWebhook({ drop_pending_updates: false }, ended), { signal });
  }

  /** A webhook in the way is removed, but only after a success: somebody else may set it again at once. */
  async function repaired(error: unknown, failures: number): Promise<boolean> {
    if (failures > 0 || signal.aborted || !isWebhookInTheWay(api.failure(error))) return false;
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

  return keepReceiving(intake, async (failures) => {
    try {
      await round(failures);
    } catch (error) {
      if (!(await repaired(error, failures))) throw error;
      await round(1);
    }
  });
}

/**
 * After a quiet week, and on another server, ids begin anew at any place. An offset that is too far ahead of them is no
 * offset to Telegram: it gives what waits, and confirms nothing until it is asked from where it is.
 */
function offsetAfter(updates: unknown[], offset: number): number {
  const ids = updates.map((update) => (update as { update_id?: unknown } | null)?.update_id);
  const next = Math.max(...ids.filter((id) => typeof id === 'number')) + 1;
  if (!Number.isSafeInteger(next)) {
    throw new Error('Telegram answers getUpdates with updates that have no ids');
  }
  return next <= offset - MOST_AHEAD ? next : Math.max(next, offset);
}

/** Resolves when it is known who receives, and which names a message may mention. */
async function logIn({ bot, bots, signal }: Intake): Promise<Login> {
  const [our, main] = await Promise.all([bot.identity(signal), bots.main.identity(signal)]);
  await bots.loggedIn(signal);
  return { our, account: String(main.id) };
}

/** Resolves when what the updates hold is stored, with the offset, if there is one; rejects when it could not be. */
async function store(
  { bot, bots, receive, numbered, presses, delivered }: Intake,
  { our, account }: Login,
  updates: unknown[],
  offset?: { cursor: string; piledUp: boolean },
): Promise<void> {
  delivered.heard(our, updates);
  const events = inbound(updates, our, bots.ours()).map((event) =>
    event.kind === 'message' && event.twin !== undefined ? numbered(event, event.twin) : event,
  );
  for (const event of events) {
    if (event.kind === 'message' || event.kind === 'choice') bots.heard(bot, event.chat.address);
  }
  const cursorFor = offset === undefined || our.personaId === undefined ? {} : { cursorFor: String(our.id) };
  const isNothing = events.length === 0 && offset === undefined;
  const batch = { channel: 'telegram', account, events, ...offset, ...cursorFor };
  const reception = isNothing ? {} : await receive(batch);
  const pressed = updates.filter(isPress);
  if (pressed.length > 0) presses.answer(bot, pressed, reception);
}

function isPress(update: unknown): boolean {
  return typeof update === 'object' && update !== null && 'callback_query' in update;
}

/** What is kept of one bot from start to start, to tell what ends the process. */
function keptOf({ bot, receive, kept, clock, log, signal }: Intake, { our, account }: Login) {
  return {
    state: kept,
    id: our.id,
    ask: () => receive({ channel: 'telegram', account, events: [] }),
    fields: logFields(bot.personaId),
    ...{ clock, log, signal },
  };
}

/** Nothing of it is read; the offset moves on behind it, if there is one. */
async function passOver(
  { receive }: Intake,
  { our, account }: Login,
  passedOver: string,
  offset: { cursor?: string } = {},
): Promise<void> {
  const cursorFor = our.personaId === undefined ? {} : { cursorFor: String(our.id) };
  await receive({ channel: 'telegram', account, events: [], passedOver, ...offset, ...cursorFor });
}

/** A round that fails is begun again after a pause, until the signal aborts. Never rejects. */
function keepReceiving(
  { bot, state, clock, log, signal }: Intake,
  round: (failures: number) => Promise<void>,
): Promise<void> {
  const setbackOf = (error: unknown): Setback => {
    const { reason, retryAfterMs } = bot.api.failure(error);
    return { reason, pauseMs: (failures) => Math.max(retryAfterMs ?? 0, backoffMs(failures)) };
  };
  return supervise({
    round: (failures) => round(failures).then(() => null, setbackOf),
    log: (_setback, told) => {
      const fields = { ...logFields(bot.personaId), ...told };
      log.warn(fields, 'taking in from Telegram is interrupted; trying again');
    },
    state,
    clock,
    signal,
  });
}

// Receiving by being called. Telegram sends one update at a time for each chat, and sends it again unless it gets
// 200, which it gets only when the update is stored.

const PATH = '/telegram/webhook';

/** Somebody else may set another one. */
const LOOK_AGAIN_MS = 300_000;

export function createWebhook(url: string, secret: string) {
  let receiving: { intake: Intake; login: Login; called: Called } | null = null;
  const storing = new Set<Promise<void>>();

  /** Keeps it set. Ends when the signal aborts and what Telegram called with is stored. Never rejects. */
  async function keep(intake: Intake): Promise<void> {
    const { bot, state, clock, log, signal } = intake;
    const { api } = bot;
    let isSet = false;
    await keepReceiving(intake, async () => {
      const login = await logIn(intake);
      receiving = { intake, login, called: receiving?.called ?? createCalled(keptOf(intake, login)) };
      if (!isSet) {
        const wanted = { url, secret_token: secret, allowed_updates: ALLOWED_UPDATES };
        await api.call((raw, ended) => raw.setWebhook(wanted, ended), { signal });
        isSet = true;
      }
      state.up();
      await clock.sleep(LOOK_AGAIN_MS, signal);
      if (signal.aborted) return;
      const info = await api.call((raw, ended) => raw.getWebhookInfo(ended), { signal });
      if (info.url === url) return;
      isSet = false;
      log.warn(
        { channel: 'telegram' },
        'another webhook was set for this bot, or ours was removed; setting ours again',
      );
    });
    await Promise.allSettled(storing);
    // What could not be said of this end makes the next starts more careful, no more.
    await receiving?.called
      .end()
      .catch((error) => log.debug({ reason: describe(error) }, 'the end was not kept'));
  }

  const admits = (given: string | null) => given !== null && isSame(given, secret);

  /** A call of Telegram's. */
  async function handle(body: unknown, givenSecret: string | null): Promise<number> {
    if (!admits(givenSecret)) return 401;
    if (typeof body !== 'object' || body === null || !('update_id' in body)) return 400;
    // Not started, not logged in, or stopping: Telegram keeps the update and comes again.
    if (receiving === null || receiving.intake.signal.aborted) return 503;
    const stored = takeIn(receiving, body);
    storing.add(stored);
    try {
      await stored;
      return 200;
    } catch (error) {
      receiving.intake.log.error(
        { channel: 'telegram', reason: describe(error) },
        'an update could not be stored; Telegram will send it again',
      );
      return 500;
    } finally {
      storing.delete(stored);
    }
  }

  async function takeIn(
    { intake, login, called }: NonNullable<typeof receiving>,
    body: { update_id: unknown },
  ): Promise<void> {
    const id = String(body.update_id);
    const it = () => store(intake, login, [body]);
    const deadly = await called.begin();
    await (deadly?.handle(id, it, () => passOver(intake, login, id)) ?? it());
  }

  const webhook: Webhook = { path: PATH, secretHeader: 'x-telegram-bot-api-secret-token', admits, handle };
  return { webhook, keep };
}

/** Compares digests, so that neither the time taken nor the length tells anything. */
function isSame(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}

// What somebody is told who pressed a button below a message of ours. Until a press is answered,
// the button looks as if it were working; so it is answered as soon as it is stored, and then the buttons are taken away.

/** A press that is not answered within this is not waited for at a stop, either. */
const ANSWER_MS = 10_000;

type Presses = ReturnType<typeof createPresses>;

export function createPresses(log: Log) {
  const underWay = new Set<Promise<void>>();

  /** Best effort: what is lost of it costs whoever pressed a moment. */
  async function quietly(bot: Bot, call: Promise<unknown>): Promise<void> {
    try {
      await call;
    } catch (error) {
      const { reason } = bot.api.failure(error);
      log.debug({ ...logFields(bot.personaId), reason }, 'whoever pressed a button could not be answered');
    }
  }

  async function answer(bot: Bot, press: Press, became: ChoiceOutcome | undefined): Promise<void> {
    const { id, message } = press;
    const text = became === undefined ? null : PRESS_ANSWERS[became];
    const told = { callback_query_id: id, ...(text === null ? {} : { text }) };
    const { api } = bot;
    const limits = { ms: ANSWER_MS };
    await quietly(
      bot,
      api.call((raw, ended) => raw.answerCallbackQuery(told, ended), limits),
    );
    if (message === undefined || became === undefined || became === 'not yours') return;
    const which = { chat_id: message.chat.id, message_id: message.message_id };
    await quietly(
      bot,
      api.call((raw, ended) => raw.editMessageReplyMarkup(which, ended), {
        ...limits,
        chat: String(message.chat.id),
      }),
    );
  }

  return {
    /** Answers every press among the updates, which are stored. Returns at once. */
    answer(bot: Bot, updates: readonly unknown[], { choices }: Pick<Reception, 'choices'>): void {
      for (const update of updates) {
        const press = readUpdate(update)?.callback_query;
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
