/**
 * Shards of the fake Discord: which connection hears of what. From Discord's page on the gateway, "Sharding": a guild
 * belongs to the shard `(guild_id >> 22) % num_shards`, and events without a guild to shard 0.
 */
import { isSnowflake } from './discord-snowflake.js';
import type { Payload } from './discord-words.js';

export interface Shard {
  id: number;
  count: number;
}

/** A close code and its words. */
export type Refusal = [number, string];

export const WHOLE: Shard = { id: 0, count: 1 };

/** `shard` of an identify: `[shard_id, num_shards]`; null if it is none. */
export function shardOf(value: unknown): Shard | null {
  if (!Array.isArray(value) || value.length !== 2 || !value.every(Number.isSafeInteger)) return null;
  const [id, count] = value;
  return id >= 0 && id < count ? { id, count } : null;
}

export function isOn({ id, count }: Shard, guildId: string): boolean {
  return Number((BigInt(guildId) >> 22n) % BigInt(count)) === id;
}

/** 4010 for a shard that cannot be; 4011 where too many guilds would be on it. */
export function shardRefusal(
  shard: Shard | null,
  most: number,
  guildsOn: (shard: Shard) => number,
): Refusal | null {
  if (shard === null) return [4010, 'Invalid shard.'];
  return guildsOn(shard) > most ? [4011, 'Sharding required.'] : null;
}

/** Whether a shard is told of an event. */
export function concerns(shard: Shard, { name, data }: { name: string; data: Payload }): boolean {
  const guild = /^GUILD_(CREATE|UPDATE|DELETE)$/.test(name) ? data.id : data.guild_id;
  return isSnowflake(guild) ? isOn(shard, guild) : shard.id === 0;
}
