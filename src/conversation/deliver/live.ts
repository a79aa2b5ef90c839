/** Beside step 5 of the route: shows a reply while it is written, from spare slots (docs/decisions/0015). */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { NewDelivery, Part, SendResult, ShownPart } from '../../core/channel.js';
import { OVER } from '../../core/clock.js';
import type { ChatId } from '../../core/ids.js';
import type { LiveReply, UnfinishedReply } from '../services.js';
import { optionsFor, type Sender } from './sender.js';
import { isSamePart } from './shown.js';

/** A quick answer is simply sent; a longer one is shown from then on, and then as often, unless its channel says how often. */
const EVERY_MS = 1_000;
/** The shortest lifetime of a preview on any platform is 30 s. */
const REFRESH_MS = 20_000;
/** Pause after a failure without a retry time. */
const PAUSE_MS = 5_000;
const MOST_CHATS = 1_000;

interface Growing extends UnfinishedReply {
  latest: string;
  everyMs: number;
  isOver: boolean;
  /** In chats with previews, the last one and its time. `none`: no previews here; null: not known yet. */
  preview: 'none' | { part: Part; at: number } | null;
}

/** One change of the shown reply. Resolves with the wait before the next, in ms; null if nothing more can be shown. */
type Change = (signal: AbortSignal) => Promise<number | null>;

export function createLiveReplies(sender: Sender): (reply: UnfinishedReply) => LiveReply {
  const { clock, log, changes, limiters } = sender;
  const lastChange = new LRUCache<ChatId, number>({ max: MOST_CHATS });

  async function changeIfDue(growing: Growing): Promise<number | null> {
    const { chatId, channel, to, everyMs } = growing;
    if (growing.isOver || sender.stopping.aborted) return null;
    const deliveries = growing.deliveriesOf(growing.latest);
    const origin = deliveries[0]?.origin;
    if (origin === undefined || changes.has(origin)) return everyMs;
    const change = nextChange(sender, growing, deliveries);
    if (change === null) return everyMs;
    const now = clock.now();
    const soonest = (lastChange.get(chatId) ?? Number.NEGATIVE_INFINITY) + everyMs;
    if (now < soonest) return soonest - now;
    if (!limiters.get(channel.name)?.takeSpare(chatId, to.kind, now)) return everyMs;
    lastChange.set(chatId, now);
    const wait = await run(origin, channel.name, change);
    // Nothing was shown, so the next change may come at once.
    if (wait === 0) lastChange.delete(chatId);
    return wait;
  }

  /** Runs a change so that the final reply can wait for it or cut it off. */
  async function run(origin: string, channel: string, change: Change): Promise<number | null> {
    const abort = new AbortController();
    const cutOff = () => abort.abort(OVER);
    sender.cuttingOff.addEventListener('abort', cutOff, { once: true });
    const doing = change(abort.signal);
    changes.set(origin, { channel, cutOff, done: Promise.allSettled([doing]) });
    try {
      return await doing;
    } finally {
      sender.cuttingOff.removeEventListener('abort', cutOff);
      changes.delete(origin);
      sender.changeEnded();
    }
  }

  return (reply) => {
    const everyMs = reply.channel.liveEveryMs ?? EVERY_MS;
    const shown = [...reply.shown];
    // An answer that replaces another grows where that one is shown.
    const preview = shown.length > 0 ? 'none' : null;
    const growing: Growing = { ...reply, shown, everyMs, latest: '', isOver: false, preview };
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
        cancel ??= clock.after(everyMs, step);
      },
      end() {
        growing.isOver = true;
        cancel?.();
      },
    };
  };
}

function nextChange(sender: Sender, growing: Growing, deliveries: NewDelivery[]): Change | null {
  const { channel, preview, shown } = growing;
  const last = deliveries.at(-1);
  if (last && channel.preview && preview !== 'none') {
    const isFresh = preview !== null && sender.clock.now() < preview.at + REFRESH_MS;
    if (isFresh && isSamePart(preview.part, last.body)) return null;
    return (signal) => showPreview(sender, growing, last, signal);
  }
  if (!channel.edit || !channel.remove) return null;
  for (const [n, delivery] of deliveries.entries()) {
    const part = shown[n];
    if (!part) return () => sendPart(sender, growing, delivery);
    if (isSamePart(sender.shown.get(part.key), delivery.body)) continue;
    return (signal) => editPart(sender, growing, part, delivery, signal);
  }
  return null;
}

async function showPreview(
  { clock }: Sender,
  growing: Growing,
  delivery: NewDelivery,
  signal: AbortSignal,
): Promise<number | null> {
  const now = clock.now();
  const options = optionsFor({ ...delivery, replyTo: null }, growing.turnId.slice(0, 24), now, 0, signal);
  const isShown = await growing.channel.preview?.(growing.to, delivery.body, options);
  if (isShown) growing.preview = { part: delivery.body, at: now };
  // After a failed preview that followed others, no message is sent: the same text would appear twice.
  if (isShown || growing.preview !== null) return growing.everyMs;
  growing.preview = 'none';
  return 0;
}

/** Sends a part for the first time. Recorded before sending, so that a crash leaves no unknown message. */
async function sendPart(sender: Sender, growing: Growing, delivery: NewDelivery): Promise<number | null> {
  const { store, clock, cuttingOff } = sender;
  const { shown, channel, to, turnId, chatId, everyMs } = growing;
  const leave = sender.takeLane(chatId);
  if (leave === null) return everyMs;
  try {
    const { body, speaker, appearance } = delivery;
    // The same for every attempt at this part, even after a restart: at most 24 letters, digits and `-`.
    const key = `${createHash('sha256').update(turnId).digest('hex').slice(0, 18)}-${delivery.part}`;
    const sentAt = clock.now();
    const mark = channel.watermark?.(to) ?? null;
    const part: ShownPart = { body, key, platformMessageId: null, sentAt, speaker, appearance };
    if (mark !== null) part.mark = mark;
    shown.push(part);
    if (!(await store.show(turnId, shown))) return null;
    await store.durable();
    const result = await channel.send(to, body, optionsFor(delivery, key, sentAt, 0, cuttingOff));
    if (result.kind === 'sent') {
      part.platformMessageId = result.platformMessageId;
      sender.shown.set(key, body);
      return (await store.show(turnId, shown)) ? everyMs : null;
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
  sender: Sender,
  { shown, channel, to, turnId, everyMs }: Growing,
  part: ShownPart,
  delivery: NewDelivery,
  signal: AbortSignal,
): Promise<number | null> {
  if (!channel.edit || !part.platformMessageId) return null;
  const { body } = delivery;
  part.body = body;
  sender.shown.delete(part.key);
  if (!(await sender.store.show(turnId, shown))) return null;
  const options = optionsFor(delivery, part.key, part.sentAt, 1, signal);
  const result = await channel.edit(to, part.platformMessageId, body, options);
  if (result.kind !== 'sent') return pauseAfter(result);
  if (!signal.aborted) sender.shown.set(part.key, body);
  return everyMs;
}

/** A refused change is left to the final reply. */
function pauseAfter(result: SendResult): number | null {
  return result.kind === 'unreachable' ? Math.max(EVERY_MS, result.retryAfterMs ?? PAUSE_MS) : null;
}
