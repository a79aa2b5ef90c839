/** Results and errors of a call as text for the model, of limited length. Nothing binary reaches a prompt. Pure. */
import { cutAt, sizeInWords } from '../core/cut.js';
import { describe } from '../core/errors.js';
import { isNestedDeeper } from '../core/network.js';
import type { ToolResult } from '../core/tool.js';
import { MOST_MESSAGE_BYTES } from './settings.js';

/** Control and format characters, except newlines, tabs and the joiners of scripts. */
const UNSEEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}]/gu;
const MOST_BLOCKS = 200;
/** Of a result shown to the model. */
const MOST_RESULT_CHARS = 60_000;

export function plainText(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(UNSEEN, '');
}

/** For the log, or inside a sentence. */
export function oneLine(text: string, most = 300): string {
  const whole = plainText(cutAt(text, most * 4))
    .replace(/\s+/g, ' ')
    .trim();
  return whole.length <= most ? whole : `${cutAt(whole, most)}…`;
}

/** Calls `say` for the first `most` texts that differ. */
export function onceEach(most: number, say: (text: string) => void): (text: string) => void {
  const said = new Set<string>();
  return (text) => {
    if (said.size >= most || said.has(text)) return;
    said.add(text);
    say(text);
  };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `redact` runs before the text is cut, so that no half of a secret remains. */
export function resultOf(answer: unknown, redact: (text: string) => string = (text) => text): ToolResult {
  const { content, structuredContent, isError } = isObject(answer) ? answer : {};
  const blocks = Array.isArray(content) ? content : [];
  const words = blocks.slice(0, MOST_BLOCKS).map(wordsOf);
  if (blocks.length > MOST_BLOCKS) words.push(`[${blocks.length - MOST_BLOCKS} more parts are left out]`);
  // A server that sends both says the same twice.
  const saysText = blocks.some((block) => isObject(block) && block.type === 'text');
  if (isObject(structuredContent) && !saysText) {
    const isDeep = isNestedDeeper(structuredContent);
    words.push(isDeep ? '[Data that is nested too deeply to show]' : JSON.stringify(structuredContent));
  }
  const text = words.filter((each) => each !== '').join('\n\n');
  const failed = isError === true;
  if (text !== '') return { content: shownText(redact(text)), failed };
  return { content: failed ? 'The call failed without a message.' : 'Done; nothing was said.', failed };
}

function shownText(text: string): string {
  if (text.length <= MOST_RESULT_CHARS) return plainText(text);
  const kept = plainText(cutAt(text, MOST_RESULT_CHARS));
  const left = `${text.length - MOST_RESULT_CHARS} of ${text.length} characters are left out`;
  return `${kept}\n\n<<truncated due to mcp-max-chars=${MOST_RESULT_CHARS}; ${left}>>`;
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
  return `[Content of the type ${JSON.stringify(oneLine(String(type), 40))}, which cannot be shown here]`;
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

const NOT_REACHED = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ESRCH'];
const UNKNOWN =
  'whether the call was carried out is unknown. Do not assume that it was or was not; check first, or ask.';

export const UNREACHABLE = 'The server cannot be reached right now. Nothing was done.';
export const TOO_LARGE = 'MESSAGE_TOO_LARGE';

export function tooLarge(): Error {
  const message = `the server sent more than ${sizeInWords(MOST_MESSAGE_BYTES)} in one message`;
  return Object.assign(new Error(message), { code: TOO_LARGE });
}

/** `isLost`: connect again. By the errors' codes, so that the client library's classes need not be loaded. */
export function failureOf(error: unknown, seconds: number): { content: string; isLost: boolean } {
  const { code, status, data } = (error ?? {}) as {
    code?: unknown;
    status?: unknown;
    data?: { status?: unknown };
  };
  const lost = (content: string) => ({ content, isLost: true });
  const kept = (content: string) => ({ content, isLost: false });
  if (typeof code === 'number') return kept(`The server refused the call: ${oneLine(describe(error), 500)}`);
  if (code === 'REQUEST_TIMEOUT') return kept(`The server did not answer within ${seconds} s, so ${UNKNOWN}`);
  if (code === 'UNSUPPORTED_RESULT_TYPE') {
    return kept(
      'The server asked for something in return (a person’s input, or a model’s) that it does not get here, so the call failed.',
    );
  }
  if (code === 'INVALID_RESULT') return kept(`The server’s answer cannot be read; ${UNKNOWN}`);
  if (code === TOO_LARGE) {
    const size = sizeInWords(MOST_MESSAGE_BYTES);
    return lost(
      `The server’s answer was larger than ${size}, so it was cut off, and ${UNKNOWN} Ask for less.`,
    );
  }
  const http = Number(data?.status ?? status);
  if (http === 401 || http === 403)
    return lost('The server denied access to this gateway. Nothing was done.');
  if (http === 404) return lost('The server has forgotten this connection. Nothing was done; call again.');
  if (http >= 400) {
    return { content: `The server answered with the error ${http}, so ${UNKNOWN}`, isLost: http >= 500 };
  }
  if (code === 'NOT_CONNECTED' || NOT_REACHED.includes(codeIn(error))) return lost(UNREACHABLE);
  return lost(`The connection to the server broke, so ${UNKNOWN}`);
}

export function failed(content: string): ToolResult {
  return { content, failed: true };
}

/** The code of the first error in the chain of causes that has one. */
function codeIn(error: unknown): string {
  for (let each = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth += 1) {
    const { code } = each as { code?: unknown };
    if (typeof code === 'string') return code;
  }
  return '';
}
