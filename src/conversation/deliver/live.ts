/**
 * Beside step 5 of the route: shows a reply while the model writes it. A quick answer is simply sent; a longer one appears after a
 * second and then grows, with one change at a time per turn, one per second and chat, and only from spare slots. Shown parts are
 * recorded with the turn, and the final reply takes them over (`send.ts`, docs/decisions/0015).
 */
import { createHash } from 'node:crypto';
import type {
  Delivery,
  NewDelivery,
  Part,
  SendOptions,
  SendResult,
  ShownPart,
  ShownSpeaker,
} from '../../core/channel.js';
import { OVER } from '../../core/clock.js';
import type { ChatId } from '../../core/ids.js';
import type { BaseServices, LiveReply, UnfinishedReply } from '../services.js';
import type { RateLimiter } from './rate-limiter.js';

/** For channels that show nothing before the reply is final. */
export const NOT_LIVE: LiveReply = { tell() {}, end() {} };

export interface LiveReplies {
  show(reply: UnfinishedReply): LiveReply;
  /** Resolves when no change of this origin is running. One that takes too long is cut off. */
  rest(origin: string): Promise<void>;
  /** Whether exactly this is known to be shown. */
  isShown(entry: Delivery): boolean;
  forget(entry: Delivery): void;
  /** Whether no change is running, in one channel or in all. */
  isIdle(channel?: string): boolean;
}

interface LiveServices extends BaseServices {
  limiterOf(channel: string): RateLimiter | undefined;
  /** Takes a chat's delivery lane and returns the function that leaves it; null if it is taken. */
  takeLane(chatId: ChatId): (() => void) | null;
  stopping: AbortSignal;
  cuttingOff: AbortSignal;
  /** Called when a change has ended. */
  ended(): void;
}

const FIRST_AFTER_MS = 1_000;
const EVERY_MS = 1_000;
/** The shortest lifetime of a preview on any platform is 30 s. */
const REFRESH_MS = 20_000;
/** Pause after a failure without a retry time. */
const PAUSE_MS = 5_000;
/** Time a final reply waits for a running change, and then for it to settle after the cut-off. */
const PATIENCE_MS = 2_000;
const REST_MS = 500;
const MOST_CHATS = 1_000;

/** A reply that is being written, and the parts shown of it. */
interface Growing extends UnfinishedReply {
  latest: string;
  isOver: boolean;
  /** In chats with previews, the last one and its time. `none`: no previews here; null: not known yet. */
  preview: 'none' | { part: Part; at: number } | null;
  /** By part: the content certainly shown now; undefined if unknown. */
  certain: (Part | undefined)[];
}

/** One change of the shown reply. Resolves with the wait before the next, in ms; null if nothing more can be shown. */
type Change = (signal: AbortSignal) => Promise<number | null>;

export function createLiveReplies(services: LiveServices): LiveReplies {
  const { clock, log } = services;
  const underWay = new Map<string, { channel: string; done: Promise<unknown>; cutOff(): void }>();
  /** By part key: the content certainly shown, for when the reply becomes final. */
  const certain = new Map<string, Part>();
  const lastChange = new Map<ChatId, number>();

  async function changeIfDue(growing: Growing): Promise<number | null> {
    if (growing.isOver || services.stopping.aborted) return null;
    const deliveries = growing.deliveriesOf(growing.latest);
    const origin = deliveries[0]?.origin;
    if (origin === undefined || underWay.has(origin)) return EVERY_MS;
    const change = nextChange(services, certain, growing, deliveries);
    if (change === null) return EVERY_MS;
    const { chatId, channel, to } = growing;
    const now = clock.now();
    const soonest = (lastChange.get(chatId) ?? Number.NEGATIVE_INFINITY) + EVERY_MS;
    if (now < soonest) return soonest - now;
    if (!services.limiterOf(channel.name)?.takeSpare(chatId, to.kind, now)) return EVERY_MS;
    if (lastChange.size >= MOST_CHATS) {
      for (const [id, at] of lastChange) if (at + EVERY_MS <= now) lastChange.delete(id);
    }
    lastChange.set(chatId, now);
    const wait = await run(origin, channel.name, change);
    // Nothing was shown, so the next change may come at once.
    if (wait === 0) lastChange.delete(chatId);
    return wait;
  }

  /** Runs a change so that `rest` can wait for it or cut it off. */
  async function run(origin: string, channel: string, change: Change): Promise<number | null> {
    const abort = new AbortController();
    const cutOff = () => abort.abort(OVER);
    services.cuttingOff.addEventListener('abort', cutOff, { once: true });
    const doing = change(abort.signal);
    underWay.set(origin, { channel, cutOff, done: Promise.allSettled([doing]) });
    try {
      return await doing;
    } finally {
      services.cuttingOff.removeEventListener('abort', cutOff);
      underWay.delete(origin);
      services.ended();
    }
  }

  return {
    show(reply) {
      const growing: Growing = {
        ...reply,
        shown: [...reply.shown],
        latest: '',
        isOver: false,
        preview: null,
        certain: reply.shown.map(() => undefined),
      };
      let cancel: (() => void) | null = null;
      async function step(): Promise<void> {
        const wait = await changeIfDue(growing).catch((error: unknown) => {
          log.warn({ err: error, turn: reply.turnId }, 'a reply could not be shown while it was written');
          return PAUSE_MS;
        });
        if (wait !== null && !growing.isOver) cancel = clock.after(wait, step);
      }
      return {
        tell(text) {
          const written = text.trim();
          if (growing.isOver || written === '') return;
          growing.latest = written;
          cancel ??= clock.after(FIRST_AFTER_MS, step);
        },
        end() {
          growing.isOver = true;
          cancel?.();
        },
      };
    },
    async rest(origin) {
      const change = underWay.get(origin);
      if (!change) return;
      const enough = new AbortController();
      await Promise.race([change.done, clock.sleep(PATIENCE_MS, enough.signal)]);
      change.cutOff();
      await Promise.race([change.done, clock.sleep(REST_MS, enough.signal)]);
      enough.abort(OVER);
    },
    isShown: ({ shown, body }) => shown !== undefined && isSamePart(certain.get(shown.key), body),
    forget: ({ shown }) => void (shown && certain.delete(shown.key)),
    isIdle: (channel) =>
      [...underWay.values()].every((change) => channel !== undefined && change.channel !== channel),
  };
}

function nextChange(
  services: LiveServices,
  certain: Map<string, Part>,
  growing: Growing,
  deliveries: NewDelivery[],
): Change | null {
  const { channel, preview, shown } = growing;
  const last = deliveries.at(-1);
  if (last && channel.preview && preview !== 'none') {
    const isFresh = preview !== null && services.clock.now() < preview.at + REFRESH_MS;
    if (isFresh && isSamePart(preview.part, last.body)) return null;
    return (signal) => showPreview(services, growing, last, signal);
  }
  if (!channel.edit || !channel.remove) return null;
  for (const [n, delivery] of deliveries.entries()) {
    if (!shown[n]) return () => sendPart(services, certain, growing, delivery);
    if (isSamePart(growing.certain[n], delivery.body)) continue;
    return (signal) => editPart(services, certain, growing, n, delivery, signal);
  }
  return null;
}

async function showPreview(
  { clock }: LiveServices,
  growing: Growing,
  delivery: NewDelivery,
  signal: AbortSignal,
): Promise<number | null> {
  const now = clock.now();
  const key = growing.turnId.slice(0, 24);
  const speaker = speakerOptions(delivery);
  const options = { ...speaker, key, earlierTries: 0, createdAt: now, replyTo: null, signal };
  const isShown = await growing.channel.preview?.(growing.to, delivery.body, options);
  if (isShown) growing.preview = { part: delivery.body, at: now };
  // After a failed preview that followed others, no message is sent: the same text would appear twice.
  if (isShown || growing.preview !== null) return EVERY_MS;
  growing.preview = 'none';
  return 0;
}

/** Sends a part for the first time. Recorded before sending, so that a crash leaves no unknown message. */
async function sendPart(
  { store, clock, takeLane, cuttingOff }: LiveServices,
  certain: Map<string, Part>,
  { shown, channel, to, turnId, chatId, certain: ofReply }: Growing,
  delivery: NewDelivery,
): Promise<number | null> {
  const leave = takeLane(chatId);
  if (leave === null) return EVERY_MS;
  try {
    const { body, part: n, speaker, appearance } = delivery;
    const mark = channel.watermark?.(to) ?? null;
    const part: ShownPart = {
      body,
      // The same for every attempt at this part, even after a restart: at most 24 letters, digits and `-`.
      key: `${createHash('sha256').update(turnId).digest('hex').slice(0, 18)}-${n}`,
      platformMessageId: null,
      sentAt: clock.now(),
      speaker,
      appearance,
      ...(mark === null ? {} : { mark }),
    };
    shown.push(part);
    if (!(await store.show(turnId, shown))) return null;
    await store.durable();
    const result = await channel.send(to, body, optionsOf(delivery, part, 0, cuttingOff));
    if (result.kind === 'sent') {
      part.platformMessageId = result.platformMessageId;
      ofReply[n] = body;
      certain.set(part.key, body);
      return (await store.show(turnId, shown)) ? EVERY_MS : null;
    }
    // It may be shown or not; sending the final text finds out.
    if (result.kind === 'unreachable' && result.taken === 'unknown') return null;
    shown.pop();
    return (await store.show(turnId, shown)) ? pauseAfter(result) : null;
  } finally {
    leave();
  }
}

async function editPart(
  { store }: LiveServices,
  certain: Map<string, Part>,
  { shown, channel, to, turnId, certain: ofReply }: Growing,
  n: number,
  delivery: NewDelivery,
  signal: AbortSignal,
): Promise<number | null> {
  const part = shown[n];
  if (!channel.edit || !part?.platformMessageId) return null;
  const { body } = delivery;
  part.body = body;
  ofReply[n] = undefined;
  certain.delete(part.key);
  if (!(await store.show(turnId, shown))) return null;
  const result = await channel.edit(to, part.platformMessageId, body, optionsOf(delivery, part, 1, signal));
  if (result.kind !== 'sent') return pauseAfter(result);
  if (!signal.aborted) {
    ofReply[n] = body;
    certain.set(part.key, body);
  }
  return EVERY_MS;
}

/** The speaker, as a channel needs it. */
export function speakerOptions({
  speaker,
  personaId,
  appearance,
  part,
}: NewDelivery): ShownSpeaker & { personaName: string } {
  const persona = personaId === null ? {} : { speaker: personaId };
  return { personaName: speaker, ...persona, ...(appearance && { appearance, leads: part === 0 }) };
}

function optionsOf(
  delivery: NewDelivery,
  { key, sentAt }: ShownPart,
  earlierTries: number,
  signal: AbortSignal,
): SendOptions {
  const { replyTo } = delivery;
  return { ...speakerOptions(delivery), key, earlierTries, createdAt: sentAt, replyTo, signal };
}

/** A refused change is left to the final reply. */
function pauseAfter(result: SendResult): number | null {
  return result.kind === 'unreachable' ? Math.max(EVERY_MS, result.retryAfterMs ?? PAUSE_MS) : null;
}

function isSamePart(a: Part | undefined, b: Part): boolean {
  return a !== undefined && JSON.stringify([a.text, a.marks]) === JSON.stringify([b.text, b.marks]);
}
