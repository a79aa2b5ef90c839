/**
 * Native commands that came by a connection at one gateway and are answered by another, the holder of the channel: their
 * tokens, in the channel's state, while Discord takes answers. The gateway of the connection announces the answer in time.
 */
import * as z from 'zod';
import type { ChannelHost } from '../../core/channel.js';
import { createMutex } from '../../core/concurrency.js';
import { describe } from '../../core/errors.js';
import { keyOf } from './identifies.js';
import type { DiscordOptions } from './options.js';
import type { Shards } from './shards.js';

const INTERACTIONS = 'interactions';
/** Discord's quarter of an hour, less what an answer takes. */
const KEPT_MS = 14 * 60_000;

const handed = z.object({
  id: z.string(),
  token: z.string(),
  application_id: z.string(),
  chat: z.object({ address: z.string(), kind: z.enum(['direct', 'group']) }),
  at: z.number(),
});

type Handed = z.output<typeof handed>;

export class HandedOver {
  private readonly inTurn = createMutex();

  constructor(
    private readonly host: ChannelHost<DiscordOptions>,
    private readonly shards: Shards,
  ) {}

  /** Whether commands may come to another gateway. */
  isUsed(): boolean {
    return this.host.spread === true && (this.shards.count ?? 1) > 1;
  }

  /** Never rejects: without it, the answer is sent as a message. */
  async keep(shard: number, one: Omit<Handed, 'at'>): Promise<void> {
    // The first shard is connected where the channel is held.
    if (!this.isUsed() || shard === 0) return;
    await this.inTurn(async () => {
      const { state, clock, log } = this.host;
      const key = keyOf(INTERACTIONS, shard, this.shards.count ?? 1);
      try {
        const kept = [...(await this.kept([key])), { ...one, at: clock.now() }];
        await state.set(new Map([[key, JSON.stringify(kept)]]));
      } catch (error) {
        log.warn({ channel: 'discord', reason: describe(error) }, 'handing over a Discord command failed');
      }
    });
  }

  /** Resolves when all that were to be kept are. */
  written(): Promise<void> {
    return this.inTurn(() => {});
  }

  /** null also if it cannot be read. */
  async find(id: string): Promise<Handed | null> {
    if (!this.isUsed()) return null;
    const count = this.shards.count ?? 1;
    const keys = Array.from({ length: count }, (_, shard) => keyOf(INTERACTIONS, shard, count));
    try {
      return (await this.kept(keys)).find((each) => each.id === id) ?? null;
    } catch (error) {
      this.host.log.warn({ channel: 'discord', reason: describe(error) }, 'reading Discord commands failed');
      return null;
    }
  }

  private async kept(keys: string[]): Promise<Handed[]> {
    const { state, clock } = this.host;
    const found = await state.get(keys);
    return keys
      .flatMap((key) => z.array(handed).parse(JSON.parse(found.get(key) ?? '[]')))
      .filter(({ at }) => Math.abs(clock.now() - at) < KEPT_MS);
  }
}
