/** Reading what a model server sent without trusting its shape. */
import { isNestedDeeper } from '../core/network.js';

export function record(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

/** A string that is not empty. */
export function word(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** undefined when it is not JSON; a byte order mark is skipped. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text);
  } catch {
    return undefined;
  }
}

/** Deeper than any field that a server sends, and far from where JSON.stringify would overflow the stack. */
const MOST_LEVELS = 500;

/** A value as JSON.parse has made it, cut off in place where it is too deep. */
export function withoutDepths(value: unknown): unknown {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= MOST_LEVELS && level.length > 0; depth++) {
    const next: unknown[] = [];
    for (const each of level) {
      if (typeof each !== 'object' || each === null) continue;
      for (const [key, inner] of Object.entries(each)) {
        if (typeof inner !== 'object' || inner === null) continue;
        if (depth < MOST_LEVELS) next.push(inner);
        else Object.assign(each, { [key]: null });
      }
    }
    level = next;
  }
  return value;
}

/** Arguments that came as an object. Those too deep to be written out become no JSON, which the model is told. */
export function argumentsJson(value: unknown): string {
  return isNestedDeeper(value) ? '(nested too deep)' : JSON.stringify(value);
}

/** The size of a text or a structure; numbers and the like count as none. */
export function bytesOf(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  return typeof value === 'object' && value !== null ? Buffer.byteLength(JSON.stringify(value)) : 0;
}

/** Blanks, controls and marks without a width only keep a connection alive. */
export function isVisible(text: unknown): boolean {
  return typeof text === 'string' && /[^\s\p{Cc}\p{Cf}]/u.test(text);
}
