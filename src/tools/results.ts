/** What the memory tools answer, and what keeps an expected fault from being thrown at the turn. */
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

export function fits(text: string): boolean {
  return text.length <= MAX_CHARS;
}

/** The text as far as it fits, with a marker where it does not. */
export function shown(text: string): string {
  if (fits(text)) return text;
  const halves = /[\uD800-\uDBFF]/.test(text.charAt(MAX_CHARS - 1));
  return `${text.slice(0, halves ? MAX_CHARS - 1 : MAX_CHARS)}\n\n<<truncated due to tool-max-chars=${MAX_CHARS}>>`;
}

/** A file that cannot be read or written is the model's to tell; the path in it is the operator's alone. */
export async function withoutFaults(
  name: string,
  context: ToolContext,
  work: () => Promise<ToolResult>,
): Promise<ToolResult> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    context.log.warn({ tool: name, error: describe(error) }, 'a tool could not do its work');
    return failed(`${name} failed: ${error.sentence} Nothing was changed.`);
  }
}
