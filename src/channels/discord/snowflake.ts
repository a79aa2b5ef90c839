/** Discord's ids: numbers in which the time stands before all else, so that a later one is greater. */

const EPOCH_MS = 1_420_070_400_000;

export function isSnowflake(id: string): boolean {
  return /^\d{1,20}$/.test(id);
}

/** Whether the first was made after the second. */
export function isLater(one: string, other: string): boolean {
  return BigInt(one) > BigInt(other);
}

/** For sorting, the oldest first. */
export function byAge(one: { id: string }, other: { id: string }): number {
  return one.id === other.id ? 0 : isLater(one.id, other.id) ? 1 : -1;
}

/** When it was made, ms. */
export function timeOf(id: string): number {
  return Number(BigInt(id) >> 22n) + EPOCH_MS;
}

/** One that is earlier than all that are made from then on. */
export function snowflakeAt(ms: number): string {
  return String(BigInt(Math.max(0, Math.floor(ms) - EPOCH_MS)) << 22n);
}
