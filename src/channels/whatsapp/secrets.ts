/**
 * The secrets of the messages that came lately: since May 2026 an edit is encrypted with that of the message it changes.
 * Kept for an hour (people may edit for a quarter of one), on the disk for one and a half at most, also over a restart, and
 * in a space that does not grow.
 */
import { createHash } from 'node:crypto';
import * as z from 'zod';
import type { ChannelState } from '../../core/channel-host.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';

const KEPT_MS = 3_600_000;
const FORGET_EVERY_MS = 1_800_000;
/** By its id, a message has its secret in one of these; each is one value of the channel's state. */
const SHELVES = 256;
const MOST_ON_SHELF = 16;
const ALL_SHELVES = Array.from({ length: SHELVES }, (_, number) => shelf(number));

const entry = z.object({ id: z.string(), author: z.string(), secret: z.string(), at: z.number() });
const shelfSchema = z.array(entry);
type Entry = z.output<typeof entry>;

export interface Secret {
  /** The address of who wrote the message. */
  author: string;
  bytes: Buffer;
}

export interface Secrets {
  /** Resolves when it is on the disk. */
  keep(id: string, secret: { author: string; bytes: Uint8Array }): Promise<void>;
  /** Several, if messages in several chats have this id. */
  of(id: string): Promise<Secret[]>;
  /** Takes what is too old from the disk, again and again, until the signal aborts. Never rejects. */
  forgetOld(log: Log, signal: AbortSignal): Promise<void>;
}

export function createSecrets(state: ChannelState, clock: Clock): Secrets {
  const shelves = new Map<string, Entry[]>();

  /** Shelves are read when they are asked for first. */
  async function load(names: readonly string[]): Promise<void> {
    const unread = names.filter((name) => !shelves.has(name));
    if (unread.length === 0) return;
    const found = await state.get(unread);
    for (const name of unread) {
      const written = found.get(name);
      const read = shelfSchema.safeParse(written === undefined ? [] : JSON.parse(written));
      // Somebody else may have asked meanwhile.
      if (!shelves.has(name)) shelves.set(name, read.data ?? []);
    }
  }

  function youngOn(name: string): Entry[] {
    const oldest = clock.now() - KEPT_MS;
    return (shelves.get(name) ?? []).filter(({ at }) => at >= oldest);
  }

  async function put(name: string, entries: Entry[]): Promise<void> {
    shelves.set(name, entries);
    await state.set(new Map([[name, entries.length === 0 ? null : JSON.stringify(entries)]]));
  }

  async function forget(): Promise<void> {
    await load(ALL_SHELVES);
    for (const name of ALL_SHELVES) {
      const young = youngOn(name);
      if (young.length < (shelves.get(name)?.length ?? 0)) await put(name, young);
    }
  }

  return {
    async keep(id, { author, bytes }) {
      const name = shelfOf(id);
      await load([name]);
      const secret = Buffer.from(bytes).toString('base64');
      const others = youngOn(name).filter((each) => each.id !== id || each.author !== author);
      await put(name, [...others, { id, author, secret, at: clock.now() }].slice(-MOST_ON_SHELF));
    },

    async of(id) {
      const name = shelfOf(id);
      await load([name]);
      return youngOn(name)
        .filter((each) => each.id === id)
        .map(({ author, secret }) => ({ author, bytes: Buffer.from(secret, 'base64') }));
    },

    async forgetOld(log, signal) {
      while (!signal.aborted) {
        await forget().catch((error) =>
          log.warn(
            { channel: 'whatsapp', reason: describe(error) },
            'secrets of old messages were not removed; it is tried again in half an hour',
          ),
        );
        await clock.sleep(FORGET_EVERY_MS, signal);
      }
    },
  };
}

function shelfOf(id: string): string {
  return shelf(createHash('sha256').update(id).digest().readUInt8(0) % SHELVES);
}

function shelf(number: number): string {
  return `secrets-${number}`;
}
