/**
 * Shards, the connections to Discord's gateway: each hears of a part of the servers, the first also of direct chats. Their
 * number is agreed on once and kept in the channel's state, because all gateways of a store must mean the same shards.
 */
import * as z from 'zod';
import type { ChannelHost } from '../../core/channel.js';
import { onAbort } from '../../core/clock.js';
import { createSlots, type Slots } from '../../core/concurrency.js';
import { gathered, keyOf } from './identifies.js';
import type { DiscordOptions } from './options.js';

/** In the channel's state: the session, of each shard; and how many shards there are. */
export const SESSION = 'session';
const SHARDS = 'shards';

const keptShards = z.object({ count: z.int().min(1), by: z.enum(['auto', 'number']) });

export class Shards {
  /** null until it is agreed on. */
  count: number | null = null;
  /** Discord refused so few for the bot's servers. */
  areTooFew = false;
  private readonly agreed = new AbortController();
  private current = new AbortController();
  private readonly lanes = new Map<number, Slots>();

  constructor(private readonly host: ChannelHost<DiscordOptions>) {}

  /** As configured, or as agreed on before. Otherwise Discord is asked when the first session begins. */
  async load(): Promise<void> {
    const wanted = this.host.options.shards;
    if (wanted !== 'auto') this.count = wanted;
    const { kept, isOfOne } = await this.kept();
    if (wanted !== 'auto') await this.become(wanted, 'number');
    else if (kept?.by === 'auto') await this.become(kept.count, 'auto');
    // Such a session is resumed, as it was before there were shards.
    else if (isOfOne) await this.become(1, 'auto');
  }

  /** Discord was asked, because a session is to begin. Rejects if the number cannot be kept. */
  async agree(recommended: number): Promise<void> {
    const { host } = this;
    if (this.count === null) await this.load();
    const isGrowing = this.areTooFew && host.options.shards === 'auto' && recommended > (this.count ?? 0);
    if (this.count === null || isGrowing) await this.become(recommended, 'auto');
    else if (recommended > this.count) {
      const fields = { channel: 'discord', shards: this.count, recommended };
      host.log.info(fields, 'Discord recommended more shards; the number stays as it was agreed on');
    }
    if (isGrowing) this.areTooFew = false;
  }

  /** Resolves when their number is known, or the signal aborts. */
  async known(signal: AbortSignal): Promise<void> {
    if (this.count !== null) return;
    await new Promise<void>((resolve) => {
      for (const each of [this.agreed.signal, signal]) onAbort(each, resolve);
    });
  }

  /** Aborts when there are to be more: all connections are then made anew. */
  get round(): AbortSignal {
    return this.current.signal;
  }

  /** Shards of a bucket begin their sessions one after the other. Resolves with the function that lets the next one in. */
  enter(bucket: number): Promise<() => void> {
    const lane = this.lanes.get(bucket) ?? createSlots(1);
    this.lanes.set(bucket, lane);
    return lane.enter();
  }

  private async kept() {
    const found = await this.host.state.get([SHARDS, SESSION]);
    const kept = keptShards.safeParse(JSON.parse(found.get(SHARDS) ?? 'null')).data;
    return { kept, isOfOne: kept === undefined && found.has(SESSION) };
  }

  /** Sessions of another number cannot be resumed; what they have begun still counts. */
  private async become(count: number, by: 'auto' | 'number'): Promise<void> {
    const { kept } = await this.kept();
    const before = kept?.count ?? 1;
    if (kept?.count !== count || kept.by !== by) {
      const others = before === count ? [] : [...Array(before).keys()];
      await this.host.state.set(
        new Map<string, string | null>([
          ...(before === count ? [] : await gathered(this.host, before)),
          ...others.map((shard) => [keyOf(SESSION, shard, before), null] as const),
          [SHARDS, JSON.stringify({ count, by })],
        ]),
      );
    }
    const isOther = this.count !== null && this.count !== count;
    this.count = count;
    this.agreed.abort();
    if (!isOther) return;
    const { current } = this;
    this.current = new AbortController();
    current.abort();
  }
}

/** One of them. */
export class Seat {
  constructor(
    readonly shard: number,
    private readonly all: Shards,
  ) {}

  get count(): number {
    return this.all.count ?? 1;
  }

  /** A key that each of several has for itself. */
  key(name: string): string {
    return keyOf(name, this.shard, this.count);
  }

  /** Whether it hears of this server; null: of direct chats. */
  readonly hears = (guildId: string | null): boolean =>
    this.shard === (guildId === null ? 0 : Number((BigInt(guildId) >> 22n) % BigInt(this.count)));
}
