/**
 * Within step 7 of the route: what is shown of replies that are still written, beside the queue of final ones. One
 * change at a time for each turn, one a second for each chat, and only from what the budget has to spare.
 */
import type { Channel, Part, Recipient, SendOptions, SendResult } from '../core/channel.js';
import { type Clock, OVER } from '../core/clock.js';
import type { ChatId, RoomId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { Delivery, NewDelivery, OutboxStore, ReceiveStore } from '../core/store.js';
import type { Budget } from './budget.js';

/** A reply while it is written, as far as it is shown. Whoever shows it keeps this and changes nothing in it. */
export interface Growing {
  readonly turnId: string;
  readonly room: RoomId;
  readonly chatId: ChatId;
  readonly channel: Channel;
  readonly to: Recipient;
  /** No more is to be shown. */
  over(): boolean;
  /** By part: its entry, and what was shown of it last; undefined where nobody knows. */
  parts: { entry: Delivery; stands: Part | undefined }[];
  /** Where the chat has previews: what was shown last, and when. `none` where it has not, null before that is known. */
  preview: 'none' | { part: Part; at: number } | null;
}

export interface Showing {
  /**
   * Makes one change, if there is one to make and it may be made now. Resolves with how long to wait before the next,
   * ms; null when nothing more can be shown. Never rejects.
   */
  change(growing: Growing, deliveries: NewDelivery[]): Promise<number | null>;
  /** Resolves when nothing is under way for this origin. What takes too long is cut off. */
  rest(origin: string): Promise<void>;
  /** Whether exactly this is known to stand there. */
  isShown(entry: Delivery): boolean;
  forget(id: number): void;
  /** Nothing is under way; in a channel, or anywhere. */
  isQuiet(channel?: string): boolean;
}

interface ShowingParts {
  store: OutboxStore & Pick<ReceiveStore, 'durable'>;
  clock: Clock;
  log: Log;
  budgetOf(channel: string): Budget | undefined;
  /** Does something in a chat's own turn: null when final messages are being sent there. */
  holding(chatId: ChatId, work: () => Promise<void>): Promise<void> | null;
  /** Keeps trying to store what is known. */
  note(what: () => Promise<void>): Promise<void>;
  stopping: AbortSignal;
  cuttingOff: AbortSignal;
  /** Something ended. */
  onRest(): void;
}

const EVERY_MS = 1_000;
/** A preview lives 30 s on the platform that keeps it shortest. */
const REFRESH_MS = 20_000;
/** After trouble that tells no time. */
const PAUSE_MS = 5_000;
/** So long a final text waits for a change that is under way, and then for it to end. */
const PATIENCE_MS = 2_000;
const LANDING_MS = 500;
const MOST_PACES = 1_000;

/** The same for every try, and not the one of a message that takes its place: that is another message. */
function keyOf({ id, shown }: Delivery): string {
  return shown === undefined ? String(id) : `${id}-open`;
}

export function optionsOf(entry: Delivery, signal: AbortSignal): SendOptions {
  return {
    ...toldOf(entry),
    ...{ key: keyOf(entry), earlierTries: entry.attempts, createdAt: entry.createdAt },
    ...{ replyTo: entry.replyTo, signal },
  };
}

function toldOf(delivery: NewDelivery): Pick<SendOptions, 'personaName' | 'speaker' | 'face' | 'leads'> {
  return {
    personaName: delivery.speaker,
    ...(delivery.personaId === null ? {} : { speaker: delivery.personaId }),
    ...(delivery.face === undefined ? {} : { face: delivery.face, leads: delivery.part === 0 }),
  };
}

function isSamePart(a: Part | undefined, b: Part): boolean {
  return a !== undefined && JSON.stringify([a.text, a.marks]) === JSON.stringify([b.text, b.marks]);
}

export function createShowing(parts: ShowingParts): Showing {
  const { store, clock, log } = parts;
  const underWay = new Map<string, { channel: string; done: Promise<void>; cutOff(): void }>();
  /** What certainly stands there, by entry. */
  const standing = new Map<number, Part>();
  const lastChange = new Map<ChatId, number>();

  /** What a change comes to; the time is how long to wait before the next. */
  async function change(growing: Growing, deliveries: NewDelivery[]): Promise<number | null> {
    const origin = deliveries[0]?.origin;
    if (growing.over() || parts.stopping.aborted) return null;
    if (origin === undefined || underWay.has(origin)) return EVERY_MS;
    const step = nextStep(growing, deliveries);
    if (step === null) return EVERY_MS;
    const { chatId, channel, to } = growing;
    const now = clock.now();
    const soonest = (lastChange.get(chatId) ?? Number.NEGATIVE_INFINITY) + EVERY_MS;
    if (now < soonest) return soonest - now;
    if (!parts.budgetOf(channel.name)?.takeSpare(chatId, to.kind, now)) return EVERY_MS;
    if (lastChange.size >= MOST_PACES) {
      for (const [id, at] of lastChange) if (at + EVERY_MS <= now) lastChange.delete(id);
    }
    lastChange.set(chatId, now);
    return during(origin, channel.name, (signal) => step(signal));
  }

  /** Runs it so that `rest` can wait for it, or cut it off. */
  async function during(
    origin: string,
    channel: string,
    work: (signal: AbortSignal) => Promise<number | null>,
  ): Promise<number | null> {
    const abort = new AbortController();
    const cutOff = () => abort.abort(OVER);
    parts.cuttingOff.addEventListener('abort', cutOff, { once: true });
    const doing = work(abort.signal).catch((error: unknown) => {
      log.warn({ err: error, origin }, 'a reply could not be shown while it is written');
      return PAUSE_MS;
    });
    underWay.set(origin, { channel, cutOff, done: doing.then(() => {}) });
    const wait = await doing;
    parts.cuttingOff.removeEventListener('abort', cutOff);
    underWay.delete(origin);
    parts.onRest();
    return wait;
  }

  type Step = (signal: AbortSignal) => Promise<number | null>;

  function nextStep(growing: Growing, deliveries: NewDelivery[]): Step | null {
    const { channel, preview } = growing;
    const last = deliveries.at(-1);
    if (last && channel.preview && preview !== 'none') {
      const isFresh = preview !== null && clock.now() < preview.at + REFRESH_MS;
      if (isFresh && isSamePart(preview.part, last.body)) return null;
      return (signal) => showPreview(growing, last, signal);
    }
    if (!channel.edit || !channel.remove) return null;
    for (const [n, delivery] of deliveries.entries()) {
      const shown = growing.parts[n];
      if (!shown) return () => open(growing, delivery);
      if (!isSamePart(shown.stands, delivery.body))
        return (signal) => edit(growing, shown, delivery.body, signal);
    }
    return null;
  }

  async function showPreview(
    growing: Growing,
    delivery: NewDelivery,
    signal: AbortSignal,
  ): Promise<number | null> {
    const now = clock.now();
    const options = {
      ...toldOf(delivery),
      key: growing.turnId.slice(0, 24),
      earlierTries: 0,
      createdAt: now,
    };
    const shown = await growing.channel.preview?.(growing.to, delivery.body, {
      ...options,
      replyTo: null,
      signal,
    });
    if (shown) growing.preview = { part: delivery.body, at: now };
    // One that failed in between is no reason to show the same twice.
    if (shown || growing.preview !== null) return EVERY_MS;
    growing.preview = 'none';
    return noChange(growing);
  }

  /** Nobody saw anything of it: the next may come at once. */
  function noChange({ chatId }: Growing): number {
    lastChange.delete(chatId);
    return 0;
  }

  async function open(growing: Growing, delivery: NewDelivery): Promise<number | null> {
    let wait: number | null = EVERY_MS;
    const held = parts.holding(growing.chatId, async () => {
      const { turnId, room } = growing;
      const opened = await store.open({ turnId, room, delivery, now: clock.now() });
      if (opened === null) wait = null;
      else if (opened.toBeSent) wait = await sendFirst(growing, opened.entry);
      else if (opened.entry.shown?.platformMessageId) {
        growing.parts.push({ entry: opened.entry, stands: undefined });
        wait = noChange(growing);
      } else wait = null;
    });
    await held;
    return wait;
  }

  async function sendFirst({ channel, parts: shown }: Growing, entry: Delivery): Promise<number | null> {
    const { id, body } = entry;
    await store.durable();
    const options = optionsOf({ ...entry, attempts: 0 }, parts.cuttingOff);
    const result = await channel.send(recipientOf(entry), body, options);
    if (result.kind === 'sent') {
      const { platformMessageId } = result;
      await parts.note(() => store.stands(id, platformMessageId));
      standing.set(id, body);
      shown.push({ entry: { ...entry, shown: { platformMessageId } }, stands: body });
      return EVERY_MS;
    }
    if (result.kind === 'unreachable' && result.taken === 'unknown') {
      // Cut off by our own end: the next process finds it as being sent.
      if (parts.cuttingOff.aborted) return null;
      const doubt = { notBefore: 0, uncertain: true, error: result.reason };
      await parts.note(() => store.retry(id, doubt));
      return null;
    }
    await parts.note(() => store.gone(id, clock.now()));
    return pauseAfter(result);
  }

  async function edit(
    { channel }: Growing,
    shown: Growing['parts'][number],
    body: Part,
    signal: AbortSignal,
  ): Promise<number | null> {
    const { entry } = shown;
    const platformMessageId = entry.shown?.platformMessageId;
    if (!channel.edit || !platformMessageId || !(await store.grow(entry.id, body))) return null;
    shown.stands = undefined;
    standing.delete(entry.id);
    const to = recipientOf(entry);
    const result = await channel.edit(to, platformMessageId, body, optionsOf(entry, signal));
    if (result.kind !== 'sent') return pauseAfter(result);
    if (!signal.aborted) {
      shown.stands = body;
      standing.set(entry.id, body);
    }
    return EVERY_MS;
  }

  /** What is refused once is left to the final text, which knows what to do then. */
  function pauseAfter(result: SendResult): number | null {
    if (result.kind !== 'unreachable') return null;
    return Math.max(EVERY_MS, result.retryAfterMs ?? PAUSE_MS);
  }

  return {
    change,
    async rest(origin) {
      const flight = underWay.get(origin);
      if (!flight) return;
      const enough = new AbortController();
      await Promise.race([flight.done, clock.sleep(PATIENCE_MS, enough.signal)]);
      flight.cutOff();
      await Promise.race([flight.done, clock.sleep(LANDING_MS, enough.signal)]);
      enough.abort(OVER);
    },
    isShown: ({ id, body }) => isSamePart(standing.get(id), body),
    forget: (id) => void standing.delete(id),
    isQuiet: (channel) =>
      [...underWay.values()].every((flight) => channel !== undefined && flight.channel !== channel),
  };
}

export function recipientOf({ address, threadId, kind }: Delivery): Recipient {
  return { address, threadId, kind };
}
