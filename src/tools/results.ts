/** The results of tools, and how a file that cannot be read or written becomes one. */

import * as z from 'zod';
import { cutWithMarker } from '../core/cut.js';
import { createZone } from '../core/dates.js';
import { describe, Fault } from '../core/errors.js';
import type { Origin } from '../core/origin.js';
import type { ToolContext, ToolResult } from '../core/tool.js';

/**
 * No result is longer: one file of megabytes would otherwise fill the whole context. As long as the longest tier that may
 * be written by default (`limits.tier_bytes`), for only what was seen whole can be replaced.
 */
const MAX_CHARS = 64_000;

export function done(content: string): ToolResult {
  return { content, failed: false };
}

/** The same of what may be words from outside. */
export function doneFrom(origin: Origin, content: string): ToolResult {
  return origin === 'outside' ? { ...done(content), outside: true } : done(content);
}

export function failed(content: string): ToolResult {
  return { content, failed: true };
}

/** A write that was allowed and did not happen: the file had changed, or could not be written. */
export function unsaved(content: string): ToolResult {
  return { content, failed: true, unsaved: true };
}

export function fits(text: string): boolean {
  return text.length <= MAX_CHARS;
}

/** The text as far as it fits, with a marker where it does not. */
export function shown(text: string): string {
  return cutWithMarker(text, MAX_CHARS, 'tool-max-chars');
}

/**
 * Runs a tool; where a file cannot be read or written, the model is told, without the path, which is for the operator
 * alone. `failure` makes that result: `unsaved` for tools that write.
 */
export async function runTool(
  name: string,
  context: ToolContext,
  work: () => Promise<ToolResult>,
  failure: (content: string) => ToolResult = failed,
): Promise<ToolResult> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    context.log.warn({ tool: name, error: describe(error) }, 'a tool could not do its work');
    return failure(`${name} failed: ${error.sentence} Nothing was changed.`);
  }
}

// What a model is told that would have written a secret into a file. Nobody, and no log, gets the secret itself.

/** null when the content holds no secret that is not in `known`, the text it replaces. */
export async function refuseSecret(
  name: string,
  content: string,
  known: string,
  context: ToolContext,
  place = 'memory',
): Promise<ToolResult | null> {
  // Its many expressions are made at the first write, not at the start of the gateway.
  const { secretIn } = await import('./secrets.js');
  const secret = secretIn(content, known);
  if (secret === null) return null;
  const { kind, line } = secret;
  context.log.info({ tool: name, kind, line }, `a secret was kept out of ${place}`);
  return failed(
    `Nothing was written, for line ${line} of the content holds ${kind}, and ${place} keeps no secrets. ` +
      'Write it again without it; where it is kept may be said, the secret itself may not.',
  );
}

// Days as the daily log names its files.

const DAY_MS = 86_400_000;

/** The day that `now` falls on in a zone, as YYYY-MM-DD. */
export function dayIn(timezone: string, now: number): string {
  return createZone(timezone).date(now);
}

/** From one day to another, both as YYYY-MM-DD; negative where the other is earlier. */
export function daysBetween(from: string, to: string): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS);
}

/** `YYYY-MM-DD`, and a day that the calendar has. */
export function isDay(date: string): boolean {
  return z.iso.date().safeParse(date).success;
}
