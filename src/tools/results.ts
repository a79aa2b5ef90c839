/** Shared by tools: results, the refusal of secrets, and dates. */
import * as z from 'zod';
import { cutWithMarker } from '../core/cut.js';
import { createZone } from '../core/dates.js';
import type { Origin } from '../core/origin.js';
import type { Tool, ToolContext, ToolResult } from '../core/tool.js';

/**
 * Maximum length of a result: a large file would fill the whole context. Equals the default of the longest
 * tier (`limits.tier_bytes`), because only a tier seen whole can be replaced.
 */
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
  const { kind, line } = secret;
  context.log.info({ tool: name, kind, line, place }, 'write refused; it holds a secret');
  return failed(
    `Nothing was written: line ${line} of the content holds ${kind}, and ${place} keeps no secrets. ` +
      'Write it again without the secret; you may say where it is kept.',
  );
}

/** Common answer of tools that take a date. */
export const NO_DAY = 'The date must be a real day, written YYYY-MM-DD.';

const DAY_MS = 86_400_000;

/** The day of `now` in a time zone, as YYYY-MM-DD. */
export function dayIn(timezone: string, now: number): string {
  return createZone(timezone).date(now);
}

/** Days between two dates, both YYYY-MM-DD; negative if the second is earlier. */
export function daysBetween(from: string, to: string): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS);
}

/** `YYYY-MM-DD`, and a day that the calendar has. */
export function isDay(date: string): boolean {
  return z.iso.date().safeParse(date).success;
}

/** Infers the type of a tool's arguments from its schema. */
export function defineTool<Parameters>(
  tool: Tool<Parameters> & { parameters: z.ZodType<Parameters> },
): Tool<Parameters> {
  return tool;
}
