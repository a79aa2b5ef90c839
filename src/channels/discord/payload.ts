/** Reads Discord's payloads: a field of the wrong type counts as absent. Also Discord's ids. */
import { boundedText } from '../kit/incoming.js';

/** The fields of a payload; each may hold anything. */
export type Fields<Payload> = { readonly [Name in keyof Payload]?: unknown };

/** Without any fields if the value is no object. */
export function fieldsOf<Payload>(value: unknown): Fields<Payload> {
  return typeof value === 'object' && value !== null ? value : {};
}

export function listOf<Payload>(value: unknown): Fields<Payload>[] {
  return itemsOf(value).map((each) => fieldsOf<Payload>(each));
}

export function itemsOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A snowflake: a number too large for JSON, as text. */
export function idOf(value: unknown): string | undefined {
  return typeof value === 'string' && isSnowflake(value) ? value : undefined;
}

export function idsOf(value: unknown): string[] {
  return itemsOf(value).flatMap((each) => idOf(each) ?? []);
}

/** Cut to the limit for a message. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? boundedText(value) : undefined;
}

/** Fractions allowed. */
export function numberOf(value: unknown): number | undefined {
  return Number.isFinite(value) ? (value as number) : undefined;
}

export function hasFlag(flags: unknown, flag: number): boolean {
  return Number.isSafeInteger(flags) && ((flags as number) & flag) !== 0;
}

export function bitsOf(value: unknown): bigint | undefined {
  return typeof value === 'string' && /^\d{1,40}$/.test(value) ? BigInt(value) : undefined;
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
