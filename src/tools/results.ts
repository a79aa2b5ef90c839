/** What the memory tools answer, and what keeps an expected fault from being thrown at the turn. */
import { cutWithMarker } from '../core/cut.js';
import { describe, Fault } from '../core/errors.js';
import type { ToolContext, ToolResult } from '../core/tool.js';

/** No tool answer is longer: one file of megabytes would otherwise take the whole conversation's place. */
const MAX_CHARS = 50_000;

export function done(content: string): ToolResult {
  return { content, failed: false };
}

export function failed(content: string): ToolResult {
  return { content, failed: true };
}

/** A write that would have been right, and did not come to be. */
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
 * A file that cannot be read or written is the model's to tell; the path in it is the operator's alone. `trouble`
 * is `unsaved` for what writes.
 */
export async function withoutFaults(
  name: string,
  context: ToolContext,
  work: () => Promise<ToolResult>,
  trouble: (content: string) => ToolResult = failed,
): Promise<ToolResult> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    context.log.warn({ tool: name, error: describe(error) }, 'a tool could not do its work');
    return trouble(`${name} failed: ${error.sentence} Nothing was changed.`);
  }
}
