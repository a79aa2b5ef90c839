/** The results of tools, and how a file that cannot be read or written becomes one. */
import { cutWithMarker } from '../core/cut.js';
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
