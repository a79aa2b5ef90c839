/** Discord's ids: the time and a counter in one number, so that a later one is greater. */

const DISCORD_EPOCH = 1_420_070_400_000;

interface Snowflakes {
  /** At a time, ms; now if left out. Those of now grow always. */
  next(at?: number): string;
}

export function createSnowflakes(now: () => number): Snowflakes {
  let latest = 0;
  let counter = 0n;
  return {
    next(at) {
      // A clock that is set back must not make ids shrink.
      latest = Math.max(latest, now());
      counter = (counter + 1n) % 0x40_0000n;
      // Of one millisecond, the ones made later are greater until the counter turns over.
      return String((BigInt((at ?? latest) - DISCORD_EPOCH) << 22n) | counter);
    },
  };
}

export function timeOf(snowflake: string): number {
  return Number(BigInt(snowflake) >> 22n) + DISCORD_EPOCH;
}

export function isSnowflake(value: unknown): value is string {
  return typeof value === 'string' && /^\d{1,20}$/.test(value);
}

/** By age, the older first. */
export function byId(one: string, other: string): number {
  const difference = BigInt(one) - BigInt(other);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}
