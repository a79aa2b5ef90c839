/**
 * The secrets of the messages that came lately: since May 2026 an edit is encrypted with that of the message it changes.
 * Kept for an hour (people may edit for a quarter of one), also over a restart, and in a space that does not grow.
 */
import { createHash } from 'node:crypto';
import * as z from 'zod';
import type { ChannelState } from '../../core/channel-host.js';
import type { Clock } from '../../core/clock.js';

const KEPT_MS = 3_600_000;
/** By its id, a message has its secret in one of these; each is one value of the channel's state. */
const SHELVES = 256;
const MOST_ON_SHELF = 16;

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
}

export function createSecrets(state: ChannelState, clock: Clock): Secrets {
  const shelves = new Map<string, Entry[]>();

  async function shelfOf(id: string): Promise<{ name: string; entries: Entry[] }> {
    const name = `secrets-${createHash('sha256').update(id).digest().readUInt8(0) % SHELVES}`;
    if (!shelves.has(name)) {
      const written = (await state.get([name])).get(name);
      const read = shelfSchema.safeParse(written === undefined ? [] : JSON.parse(written));
      // Somebody else may have asked meanwhile.
      if (!shelves.has(name)) shelves.set(name, read.data ?? []);
    }
    const oldest = clock.now() - KEPT_MS;
    return { name, entries: (shelves.get(name) ?? []).filter(({ at }) => at >= oldest) };
  }

  return {
    async keep(id, { author, bytes }) {
      const { name, entries } = await shelfOf(id);
      const secret = Buffer.from(bytes).toString('base64');
      const others = entries.filter((each) => each.id !== id || each.author !== author);
      const kept = [...others, { id, author, secret, at: clock.now() }].slice(-MOST_ON_SHELF);
      shelves.set(name, kept);
      await state.set(new Map([[name, JSON.stringify(kept)]]));
    },

    async of(id) {
      const { entries } = await shelfOf(id);
      return entries
        .filter((each) => each.id === id)
        .map(({ author, secret }) => ({ author, bytes: Buffer.from(secret, 'base64') }));
    },
  };
}
