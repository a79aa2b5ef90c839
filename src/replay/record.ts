/**
 * What is recorded of one run of a turn, and how it stands on a line of a file: a request begins like the one before it
 * in that file, so only what is new is written. Pure.
 */
import { createHash } from 'node:crypto';
import { onceForEach } from '../core/concurrency.js';
import type { PersonaId, RoomId } from '../core/ids.js';
import type { TurnSight } from '../core/journal.js';
import type {
  ModelEvent,
  ModelMessage,
  ModelRequest,
  ToolCall,
  ToolDescription,
  Usage,
} from '../core/model.js';

/** A run as the recorder holds it: the requests themselves, which never change. */
export interface RunOfTurn {
  turnId: string;
  room: RoomId;
  personaId: PersonaId;
  startedAt: number;
  endedAt: number;
  sight: TurnSight | null;
  requests: Asked[];
}

export interface Asked {
  at: number;
  ms: number;
  request: ModelRequest;
  end: ModelEvent & { kind: 'done' | 'failed' };
}

/** The same as it is read. */
export interface TurnRecord extends Omit<RunOfTurn, 'requests'> {
  requests: RecordedRequest[];
}

/** Without what a server wants back unread, which the store has, and without pictures. */
export type RecordedMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string; images?: { mimeType: string; bytes: number }[] }
  | { role: 'assistant'; content: string; calls: ToolCall[] }
  | { role: 'tool'; callId: string; content: string };

export type RecordedEnd =
  | {
      kind: 'done';
      text: string;
      calls: ToolCall[];
      usage: Usage | null;
      further?: Usage;
      model: string;
      truncated: boolean;
      cut?: true;
    }
  | { kind: 'failed'; code: string; why: string };

export interface RecordedRequest extends Omit<ModelRequest, 'messages' | 'tools'> {
  at: number;
  ms: number;
  messages: RecordedMessage[];
  tools: ToolDescription[];
  end: RecordedEnd;
}

/** What the next request of a file may begin like: of each message its print, so that nothing that was said is held for it. */
export interface Before {
  messages: readonly string[];
  tools: readonly ToolDescription[];
}

export const NOTHING_BEFORE: Before = { messages: [], tools: [] };

/** A request on a line: its first `same` messages are those of the request before, and so are tools left out. */
interface RequestLine extends Omit<RecordedRequest, 'messages' | 'tools'> {
  same: number;
  messages: RecordedMessage[];
  tools?: ToolDescription[];
}

interface Line extends Omit<TurnRecord, 'requests'> {
  v: 1;
  requests: RequestLine[];
}

export function lineOf(
  run: RunOfTurn,
  before: Before,
  printOf: (message: ModelMessage) => string,
): { line: string; after: Before } {
  let last = before;
  const requests = run.requests.map(({ request, end, at, ms }): RequestLine => {
    const { messages, tools, ...settings } = request;
    const prints = messages.map(printOf);
    const same = alike(last.messages, prints);
    const isSameTools = last.tools === tools;
    last = { messages: prints, tools };
    return {
      ...{ at, ms, ...settings, same },
      messages: messages.slice(same).map(recorded),
      ...(!isSameTools && { tools }),
      end: endOf(end),
    };
  });
  const line: Line = { v: 1, ...run, requests };
  return { line: JSON.stringify(line), after: last };
}

/** How many messages two requests have in common, from the first on. */
function alike(one: readonly string[], other: readonly string[]): number {
  const differs = other.findIndex((print, n) => print !== one[n]);
  return differs < 0 ? other.length : differs;
}

/** The same for messages that are recorded alike. Made once for each, as long as it lives. */
export function createPrints(): (message: ModelMessage) => string {
  return onceForEach((message) => {
    const text = isPlain(message) ? `${message.role} ${message.content}` : JSON.stringify(recorded(message));
    return createHash('sha256').update(text).digest('base64').slice(0, 22);
  });
}

/** Its content is all that is recorded of it. */
function isPlain(message: ModelMessage): boolean {
  if (message.role === 'user') return message.images === undefined;
  if (message.role === 'assistant') return message.calls.length === 0;
  return message.role === 'system';
}

function recorded(message: ModelMessage): RecordedMessage {
  switch (message.role) {
    case 'user': {
      const { role, content, images } = message;
      if (images === undefined) return { role, content };
      return {
        role,
        content,
        images: images.map(({ mimeType, bytes }) => ({ mimeType, bytes: bytes.length })),
      };
    }
    case 'assistant': {
      const { role, content, calls } = message;
      return { role, content, calls };
    }
    default:
      return message;
  }
}

export function endOf(end: Asked['end']): RecordedEnd {
  if (end.kind === 'failed') return { kind: 'failed', code: end.fault.code, why: end.fault.message };
  const { kind, text, calls, usage, further, model, truncated, cut } = end;
  return { kind, text, calls, usage, ...(further && { further }), model, truncated, ...(cut && { cut }) };
}

/** Reads the lines of a file, one after the other from its first; null for one that is none. */
export function lineReader(): (line: string) => TurnRecord | null {
  let messages: RecordedMessage[] = [];
  let tools: ToolDescription[] = [];
  return (source) => {
    const line = parsed(source);
    if (line === null) return null;
    const { v: _, ...run } = line;
    const requests = line.requests.map(({ same, ...request }): RecordedRequest => {
      messages = [...messages.slice(0, same), ...request.messages];
      tools = request.tools ?? tools;
      return { ...request, messages, tools };
    });
    return { ...run, requests };
  };
}

function parsed(source: string): Line | null {
  try {
    const line = JSON.parse(source) as Partial<Line> | null;
    const isLine = line?.v === 1 && typeof line.turnId === 'string' && Array.isArray(line.requests);
    return isLine && line.requests?.every(isRequest) ? (line as Line) : null;
  } catch {
    return null;
  }
}

function isRequest(request: Partial<RequestLine> | null): boolean {
  return Number.isInteger(request?.same) && Array.isArray(request?.messages) && request?.end !== undefined;
}
