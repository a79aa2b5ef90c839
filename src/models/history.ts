/** Adapts messages to what this server takes: rewrites calls and roles, fits names and ids, returns the fields of its own answers. Pure. */
import { createHash } from 'node:crypto';
import type { Echo, ModelMessage } from '../core/model.js';
import { element, escaped } from '../core/origin.js';
import { record } from './json.js';
import type { Quirk } from './server-ways.js';

/** Names and ids that every server accepts (OpenAI's rule; Anthropic, Mistral and vLLM check it as well). */
const FITS = /^[A-Za-z0-9_-]{1,64}$/;
const LONGEST_NAME = 64;
/** Longer names are cut to this before they are matched, in characters. */
const MOST_READ = 400;

/** Prefixes that models write before a name: namespaces of Kimi, OpenAI and Gemini. CALL_NUMBER: Kimi's suffix. */
const NAMESPACE = /^(?:functions?|tools?|default_api|multi_tool_use|namespace)[.:/]/;
const CALL_NUMBER = /:\d{1,4}$/;

export function fits(nameOrId: string): boolean {
  return FITS.test(nameOrId);
}

/** The offered tool that a name means, without tokens, quotes and namespaces around it. Any other name is made to fit. */
export function calledName(name: string, offered: ReadonlySet<string>): string {
  if (offered.has(name)) return name;
  const [beforeToken = ''] = name.slice(0, MOST_READ).split(/<[|｜]/u, 1);
  const plain = beforeToken.replace(/^[\s"'`]+/, '').replace(/(?<!["'`\s])["'`\s]+$/, '');
  const bare = plain.replace(NAMESPACE, '');
  const unnumbered = bare.replace(CALL_NUMBER, '');
  const found = [plain, bare, unnumbered].find((each) => offered.has(each));
  return found ?? sentName(unnumbered === '' ? name : unnumbered);
}

/** Maps a name to one that servers accept, always to the same one. A name that does not fit would make every later request fail. */
export function sentName(name: string): string {
  if (fits(name)) return name;
  const plain = name.slice(0, MOST_READ).trim();
  return plain.replace(/[^A-Za-z0-9_-]+/gu, '_').slice(0, LONGEST_NAME) || '_';
}

/** Maps an id that does not fit to nine letters and digits, the form that Mistral requires. */
export function sentId(id: string): string {
  return fits(id) ? id : createHash('sha256').update(id).digest('hex').slice(0, 9);
}

export interface Addressee {
  server: string;
  model: string;
}

type Fields = Record<string, unknown>;

/** All fields of an answer besides text and calls: returned unread to the same model on the same server, never shown. */
export interface Besides {
  message: Fields;
  /** In the order of the calls. */
  calls: Fields[];
  /** All items of a Responses answer. */
  items?: Fields[];
}

/** Fields of list items that are streamed in pieces. */
export const WRITTEN = ['text', 'thinking', 'summary', 'data'];

/** Adds a field or a piece of one. An empty string is kept, because some servers require the field. */
export function addField(kept: Fields, name: string, value: unknown): void {
  const before = kept[name];
  if (value === null || value === undefined) return;
  if (typeof value === 'string' && typeof before === 'string') kept[name] = before + value;
  else if (Array.isArray(value)) {
    if (value.length > 0) kept[name] = joined(Array.isArray(before) ? before : [], value);
  } else kept[name] = value;
}

/** Lists are streamed in pieces, too: the next piece may continue the last item. */
function joined(before: unknown[], piece: unknown[]): unknown[] {
  const last = record(before.at(-1));
  const [first, ...others] = piece;
  const next = record(first);
  if (last === null || next === null || !goesOn(last, next)) return [...before, ...piece];
  const item = { ...last };
  for (const [name, value] of Object.entries(next)) {
    const earlier = item[name];
    if (WRITTEN.includes(name) && typeof earlier === 'string' && typeof value === 'string') {
      item[name] = earlier + value;
    } else if (value !== null && value !== '') item[name] = value;
  }
  return [...before.slice(0, -1), item, ...others];
}

function goesOn(last: Fields, next: Fields): boolean {
  if (last.type !== next.type || last.index !== next.index) return false;
  if (typeof last.id === 'string' && typeof next.id === 'string' && last.id !== next.id) return false;
  // Encrypted data comes in one piece, unless it is numbered.
  return next.index !== undefined || typeof next.data !== 'string';
}

/** undefined if there is nothing to return. */
export function echoOf({ server, model }: Addressee, { message, calls, items }: Besides): Echo | undefined {
  const echo: Echo = { server, model };
  if (!isEmpty(message)) echo.message = message;
  if (!calls.every(isEmpty)) echo.calls = calls.map((call) => (isEmpty(call) ? null : call));
  if (items !== undefined) echo.items = items;
  return echo.message || echo.calls || echo.items ? echo : undefined;
}

function isEmpty(fields: Fields): boolean {
  return Object.keys(fields).length === 0;
}

/** The fields to return with this message; null if it came from another server or model, or has none. */
export function echoFor(message: ModelMessage, to: Addressee | null): Echo | null {
  if (to === null || message.role !== 'assistant' || message.echo === undefined) return null;
  return message.echo.server === to.server && message.echo.model === to.model ? message.echo : null;
}

/** Whether the message has calls but no fields to return to this server. */
export function callsUnechoed(message: ModelMessage, to: Addressee | null): boolean {
  return message.role === 'assistant' && message.calls.length > 0 && echoFor(message, to) === null;
}

/** Names of all fields returned with these messages. */
export function echoedNames(messages: ModelMessage[], to: Addressee | null): string[] {
  const fields = messages.flatMap((message) => {
    const echo = echoFor(message, to);
    return echo === null ? [] : [echo.message, ...(echo.calls ?? [])];
  });
  return fields.flatMap((each) => Object.keys(each ?? {}));
}

/** Rewrites the calls of messages to which `applies`, and their results, as text. */
function withoutCalls(messages: ModelMessage[], applies: (message: ModelMessage) => boolean): ModelMessage[] {
  const calls = messages.flatMap((each) => (each.role === 'assistant' && applies(each) ? each.calls : []));
  const names = new Map(calls.map(({ id, name }) => [id, sentName(name)]));
  return joinedSides(messages.map((message) => inWords(message, names)));
}

/** Merges consecutive messages of one side. */
function joinedSides(messages: ModelMessage[]): ModelMessage[] {
  const plain: ModelMessage[] = [];
  for (const next of messages) {
    const last = plain.at(-1);
    const whole = last === undefined ? null : merged(last, next);
    if (whole !== null) plain.pop();
    plain.push(whole ?? next);
  }
  return plain;
}

/** `names`: the names of the rewritten calls, by id. */
function inWords(message: ModelMessage, names: ReadonlyMap<string, string>): ModelMessage {
  if (message.role === 'tool') {
    const of = names.get(message.callId);
    return of === undefined
      ? message
      : { role: 'user', content: element('tool_result', { of }, message.content) };
  }
  if (message.role !== 'assistant' || !message.calls.some(({ id }) => names.has(id))) return message;
  const called = message.calls.map((call) =>
    escaped(`[Called ${sentName(call.name)} with ${call.arguments}]`),
  );
  const content = [message.content, ...called].filter((text) => text !== '').join('\n');
  return { role: 'assistant', content, calls: [] };
}

/** null if the messages must stay separate. */
function merged(last: ModelMessage, next: ModelMessage): ModelMessage | null {
  const content = [last.content, next.content].filter((text) => text !== '').join('\n\n');
  if (last.role === 'user' && next.role === 'user') {
    const images = [...(last.images ?? []), ...(next.images ?? [])];
    return { role: 'user', content, ...(images.length > 0 && { images }) };
  }
  if (last.role !== 'assistant' || next.role !== 'assistant') return null;
  return last.calls.length > 0 || next.calls.length > 0 ? null : { role: 'assistant', content, calls: [] };
}

const BETWEEN: ModelMessage = { role: 'assistant', content: '(I have read the results.)', calls: [] };

/** Inserts an assistant message between a tool's result and a user's message (Mistral). */
function inOrder(messages: ModelMessage[]): ModelMessage[] {
  return messages.flatMap((message, n) => (isUserAfterTool(messages, n) ? [BETWEEN, message] : [message]));
}

export function isOutOfOrder(messages: ModelMessage[]): boolean {
  return messages.some((_message, n) => isUserAfterTool(messages, n));
}

function isUserAfterTool(messages: ModelMessage[], n: number): boolean {
  return messages[n]?.role === 'user' && messages[n - 1]?.role === 'tool';
}

const GOES_ON: ModelMessage = { role: 'user', content: '(The conversation goes on.)' };

/** Makes user and assistant alternate, starting with the user; messages with calls, and results, stay unchanged. */
function inTurns(messages: ModelMessage[]): ModelMessage[] {
  const whole = joinedSides(messages);
  const first = whole.findIndex(({ role }) => role !== 'system');
  return whole[first]?.role === 'assistant' ? whole.toSpliced(first, 0, GOES_ON) : whole;
}

/** Whether they already alternate, ignoring calls and results. */
export function takesTurns(messages: ModelMessage[]): boolean {
  const sides = messages
    .filter((message) => !(message.role === 'assistant' && message.calls.length > 0))
    .map(({ role }) => role)
    .filter((role) => role === 'user' || role === 'assistant');
  return sides.every((role, n) => role === (n % 2 === 0 ? 'user' : 'assistant'));
}

/** Moves the text of system messages before the first user message. */
function withoutSystem(messages: ModelMessage[]): ModelMessage[] {
  const isSystem = ({ role }: ModelMessage) => role === 'system';
  const system = messages.filter(isSystem).map(({ content }) => content);
  const [first, ...rest] = messages.filter((message) => !isSystem(message));
  const instructions: ModelMessage = { role: 'user', content: system.join('\n\n') };
  if (first === undefined) return [instructions];
  const whole = merged(instructions, first);
  return whole === null ? [instructions, first, ...rest] : [whole, ...rest];
}

/** Without what the server refused. */
export function retold(
  messages: ModelMessage[],
  hasTools: boolean,
  refused: ReadonlySet<Quirk>,
  echoesTo: Addressee | null,
): ModelMessage[] {
  const isAny = refused.has('tools') || refused.has('tool_results');
  let fit = messages;
  if (isAny || (!hasTools && refused.has('calls_without_tools'))) fit = withoutCalls(messages, () => true);
  else if (refused.has('calls_without_echo')) {
    fit = withoutCalls(messages, (message) => echoFor(message, echoesTo) === null);
  }
  if (refused.has('user_after_tool')) fit = inOrder(fit);
  if (refused.has('role_order')) fit = inTurns(fit);
  return refused.has('system_role') ? withoutSystem(fit) : fit;
}
