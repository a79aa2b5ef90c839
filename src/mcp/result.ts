/**
 * What a call of a server's tool came to, in words for the model: its texts, bounded; of pictures, sounds and files only
 * that they were there. Nothing binary reaches a prompt. Pure.
 */
import { sizeInWords } from '../core/bytes.js';
import { cutAt } from '../core/cut.js';
import { isNestedDeeper } from '../core/nesting.js';
import type { ToolResult } from '../core/tool.js';
import { isObject } from './schema.js';
import { MOST_RESULT_CHARS } from './settings.js';
import { oneLine, plainText } from './words.js';

const MOST_BLOCKS = 200;

export function resultOf(
  answer: unknown,
  /** Cuts secrets out of the whole text, so that no half of one stays where it is cut. */
  redact: (text: string) => string = (text) => text,
): ToolResult {
  const { content, structuredContent, isError } = isObject(answer) ? answer : {};
  const blocks = Array.isArray(content) ? content : [];
  const words = blocks.slice(0, MOST_BLOCKS).map(wordsOf);
  if (blocks.length > MOST_BLOCKS) words.push(`[${blocks.length - MOST_BLOCKS} more parts are left out]`);
  // A server that gives both says the same twice.
  const saysText = blocks.some((block) => isObject(block) && block.type === 'text');
  if (isObject(structuredContent) && !saysText) words.push(inWords(structuredContent));
  const text = words.filter((each) => each !== '').join('\n\n');
  const failed = isError === true;
  if (text === '')
    return {
      content: failed ? 'It failed, and the server says nothing more.' : 'Done; nothing was said.',
      failed,
    };
  return { content: shownText(redact(text)), failed };
}

/** The text as far as it is shown, with how much was cut. */
export function shownText(text: string): string {
  if (text.length <= MOST_RESULT_CHARS) return plainText(text);
  const kept = plainText(cutAt(text, MOST_RESULT_CHARS));
  return `${kept}\n\n<<truncated due to mcp-max-chars=${MOST_RESULT_CHARS}; ${text.length - MOST_RESULT_CHARS} of ${text.length} characters are left out>>`;
}

function inWords(structured: Record<string, unknown>): string {
  return isNestedDeeper(structured)
    ? '[Data that is nested too deep to be shown here]'
    : JSON.stringify(structured);
}

function wordsOf(block: unknown): string {
  if (!isObject(block)) return '';
  const { type, text, data, mimeType, resource } = block;
  if (type === 'text') return typeof text === 'string' ? text : '';
  if (type === 'image') return notShown('A picture', mimeType, data);
  if (type === 'audio') return notShown('A sound', mimeType, data);
  if (type === 'resource_link') return `[A link to a resource of the server: ${named(block)}]`;
  if (type === 'resource' && isObject(resource)) {
    if (typeof resource.text === 'string') return `[The resource ${named(resource)}:]\n${resource.text}`;
    return notShown(`The resource ${named(resource)}`, resource.mimeType, resource.blob);
  }
  return `[Something of the kind ${JSON.stringify(oneLine(String(type), 40))}, which cannot be shown here]`;
}

function named({ name, uri }: Record<string, unknown>): string {
  const parts = [name, uri].filter((part): part is string => typeof part === 'string' && part !== '');
  return parts.map((part) => JSON.stringify(oneLine(part, 200))).join(', ') || 'without a name';
}

function notShown(what: string, mimeType: unknown, data: unknown): string {
  const type = typeof mimeType === 'string' ? ` (${oneLine(mimeType, 60)})` : '';
  const size = typeof data === 'string' ? `, ${sizeInWords(Math.floor((data.length * 3) / 4))}` : '';
  return `[${what}${type}${size}, which is not shown here]`;
}
