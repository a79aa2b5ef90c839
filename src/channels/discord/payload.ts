/** Reading Discord's payloads, which leave out fields or hold null; and Discord's ids (snowflakes). */
import type * as Discord from 'discord-api-types/v10';

/** The fields that Discord documents, any of which may be missing. */
export type Told<Payload> = { [Name in keyof Payload]?: Payload[Name] | null | undefined };

export type ToldInteraction = Told<
  Omit<Discord.APIMessageComponentInteraction, 'type' | 'data'> & {
    type: Discord.InteractionType;
    data: unknown;
  }
>;

/** Without any fields if the value is no object. */
export function fieldsOf<Payload>(value: unknown): Told<Payload> {
  return typeof value === 'object' && value !== null ? value : {};
}

/** The objects in a list; none if it is no list. */
export function listOf<Each>(list: readonly Each[] | null | undefined): Told<Each>[] {
  return Array.isArray(list) ? list.filter((each) => typeof each === 'object' && each !== null) : [];
}

/** A snowflake: a number too large for JSON, as text. */
export function idOf(value: unknown): string | undefined {
  return typeof value === 'string' && isSnowflake(value) ? value : undefined;
}

export function idsOf(list: unknown): string[] {
  return Array.isArray(list) ? list.flatMap((each) => idOf(each) ?? []) : [];
}

export function hasFlag(flags: unknown, flag: number): boolean {
  return Number.isSafeInteger(flags) && ((flags as number) & flag) !== 0;
}

const EPOCH_MS = 1_420_070_400_000;

export function isSnowflake(id: string): boolean {
  return /^\d{1,20}$/.test(id);
}

export function isLater(one: string, other: string): boolean {
  return BigInt(one) > BigInt(other);
}

export function byAge(one: { id: string }, other: { id: string }): number {
  return one.id === other.id ? 0 : isLater(one.id, other.id) ? 1 : -1;
}

/** Creation time, ms. */
export function timeOf(id: string): number {
  return Number(BigInt(id) >> 22n) + EPOCH_MS;
}

/** Less than every id made from then on. */
export function snowflakeAt(ms: number): string {
  return String(BigInt(Math.max(0, Math.floor(ms) - EPOCH_MS)) << 22n);
}
