/**
 * What a server sent along with an answer that calls tools and wants back unread: reasoning, signatures, whatever the next
 * server thinks of. Kept by its own names, given back to the same model of the same server, never shown.
 */
import type { Echo, ModelMessage } from '../core/model.js';
import { record } from './json.js';

/** Fields of list items that come in pieces. */
export const WRITTEN = ['text', 'thinking', 'summary', 'data'];

/** For whom a request is. */
export interface Addressee {
  server: string;
  model: string;
}

type Fields = Record<string, unknown>;

/** What came beside the text and the calls of an answer. */
export interface Besides {
  message: Fields;
  /** In the order of the calls. */
  calls: Fields[];
  /** Of a Responses answer, all that it consists of. */
  items?: Fields[];
}

/**
 * Adds a field that a message, a call or a piece of one has beyond what everybody knows. An empty text is kept: some servers
 * insist on a field that held nothing.
 */
export function addField(kept: Fields, name: string, value: unknown): void {
  const before = kept[name];
  if (value === null || value === undefined) return;
  if (typeof value === 'string' && typeof before === 'string') kept[name] = before + value;
  else if (Array.isArray(value)) {
    if (value.length > 0) kept[name] = joined(Array.isArray(before) ? before : [], value);
  } else kept[name] = value;
}

/** A list comes in pieces, too: its next piece may go on with the last item. */
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
  // What is sealed is one piece, unless it is numbered.
  return next.index !== undefined || typeof next.data !== 'string';
}

/** undefined where there is nothing to give back. */
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

/** What goes back with this message to this server; null where it came from elsewhere, or with nothing. */
export function echoFor(message: ModelMessage, to: Addressee | null): Echo | null {
  if (to === null || message.role !== 'assistant' || message.echo === undefined) return null;
  return message.echo.server === to.server && message.echo.model === to.model ? message.echo : null;
}

/** Whether it calls something and has nothing to go with it to this server. */
export function callsUnechoed(message: ModelMessage, to: Addressee | null): boolean {
  return message.role === 'assistant' && message.calls.length > 0 && echoFor(message, to) === null;
}

/** The names of all fields that go back with these messages. */
export function echoedNames(messages: ModelMessage[], to: Addressee | null): Set<string> {
  const names = new Set<string>();
  for (const message of messages) {
    const echo = echoFor(message, to);
    if (echo === null) continue;
    for (const fields of [echo.message, ...(echo.calls ?? [])]) {
      for (const name of Object.keys(fields ?? {})) names.add(name);
    }
  }
  return names;
}
