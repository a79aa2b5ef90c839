/** Shared by tools: results, the refusal of secrets, and dates. */
import { createHash } from 'node:crypto';
import { cutWithMarker } from '../core/cut.js';
import { createZone } from '../core/dates.js';
import type { Origin } from '../core/origin.js';
import type { ToolContext, ToolResult } from '../core/tool.js';

/** Of a result. The default of `limits.tier_bytes` is the same, because only a tier seen whole can be replaced. */
const MAX_CHARS = 64_000;

export function done(content: string): ToolResult {
  return { content, failed: false };
}

/** The same for text that may be from outside. */
export function doneFrom(origin: Origin, content: string): ToolResult {
  return origin === 'outside' ? { ...done(content), outside: true } : done(content);
}

export function failed(content: string): ToolResult {
  return { content, failed: true };
}

/** A permitted write that did not happen: the file had changed, or could not be written. */
export function unsaved(content: string): ToolResult {
  return { content, failed: true, unsaved: true };
}

export function fits(text: string): boolean {
  return text.length <= MAX_CHARS;
}

/** The text as far as it fits, then a marker if it was cut. */
export function shown(text: string): string {
  return cutWithMarker(text, MAX_CHARS, 'tool-max-chars');
}

/** Refuses a write with a secret that is not in `known`, the replaced text; never quotes the secret. */
export async function refuseSecret(
  name: string,
  content: string,
  known: string,
  context: ToolContext,
  place = 'memory',
): Promise<ToolResult | null> {
  // Its many expressions are compiled at the first write, not at start-up.
  const { secretIn } = await import('./secrets.js');
  const secret = secretIn(content, known);
  if (secret === null) return null;
  context.log.info({ tool: name, ...secret, place }, 'write refused; it holds a secret');
  return failed(
    `Nothing was written: line ${secret.line} of the content holds ${secret.kind}, and ${place} keeps no secrets. ` +
      'Write it again without the secret; you may say where it is kept.',
  );
}

export const NO_DAY = 'The date must be a real day, written YYYY-MM-DD.';

/** YYYY-MM-DD. */
export function dayIn(timezone: string, now: number): string {
  return createZone(timezone).date(now);
}

/** Of something that a turn sends: equal for the same, so that it is sent once. */
export function keyOf(...parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 24);
}

/** 64,000 */
export function inDigits(count: number): string {
  return count.toLocaleString('en');
}
