/** Helpers for reading what a model server sent without trusting its shape. */
import { isNestedDeeper } from '../core/network.js';

export function record(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

/** A non-empty string, else null. */
export function word(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** undefined if it is not JSON; skips a byte order mark. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text);
  } catch {
    return undefined;
  }
}

/** Deeper than any field a server sends, and far below where JSON.stringify overflows the stack. */
const MOST_LEVELS = 500;

/** Replaces values nested deeper than `levels` by null, in place. */
export function withoutDepths(value: unknown, levels = MOST_LEVELS): unknown {
  if (typeof value !== 'object' || value === null) return value;
  for (const [key, inner] of Object.entries(value)) {
    if (typeof inner !== 'object' || inner === null) continue;
    if (levels > 0) withoutDepths(inner, levels - 1);
    else Object.assign(value, { [key]: null });
  }
  return value;
}

/** Serialises arguments that came as an object. If nested too deep, the result is not JSON, and the model is told. */
export function argumentsJson(value: unknown): string {
  return isNestedDeeper(value) ? '(nested too deep)' : JSON.stringify(value);
}

/** Size of a string, or of an object as JSON, in bytes; other values count as 0. */
export function bytesOf(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  return typeof value === 'object' && value !== null ? Buffer.byteLength(JSON.stringify(value)) : 0;
}

/** Blanks, controls and zero-width characters only keep a connection alive. */
export function isVisible(text: unknown): boolean {
  return typeof text === 'string' && /[^\s\p{Cc}\p{Cf}]/u.test(text);
}
