/**
 * The rules of a real model server, put in front of the scripted fake: what it refuses, what of a request reaches its model,
 * how it words an answer, what it tells of itself. One file a server; each rule names what it rests on. They may refuse
 * what the real server refuses, and must not be kinder.
 */
import type { ChatBody, ChatBodyMessage } from '../model.js';
import type { ModelScript } from '../model-script.js';

export interface ModelServer {
  name: string;
  /** What it answers instead of its model: a refusal, mostly. null where the request is taken. */
  rules(body: ChatBody, n: number): ModelScript | null;
  /** What of the request its model gets to see, and what it counts; all of it where left out. */
  cut?(body: ChatBody): ChatBody;
  /** What its model says, in its own form. */
  dress?(script: ModelScript, body: ChatBody, n: number): ModelScript;
  /** What other paths than chat completions answer, by method and path: `GET /props`. */
  pages?: Record<string, () => object>;
  /** Whether it has the Responses API. */
  hasResponses?: true;
}

/** In the form that most servers use. */
export function refuse(status: number, error: Record<string, unknown>): ModelScript {
  return { status, body: { error } };
}

/** As any real server counts, roughly: everything that was sent, tools and calls included. */
export function tokensIn(body: Pick<ChatBody, 'messages' | 'tools'>): number {
  const texts = [...body.messages.map(tokenText), body.tools ? JSON.stringify(body.tools) : ''];
  return texts.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0);
}

function tokenText({ content, tool_calls }: ChatBodyMessage): string {
  return `${content ?? ''}${tool_calls ? JSON.stringify(tool_calls) : ''}`;
}

/** Without its front, so that no more than `tokens` are left; the message where the cut falls loses its own front. */
export function withoutFront(body: ChatBody, tokens: number): ChatBody {
  const kept: ChatBodyMessage[] = [];
  let left = tokens * 4;
  for (const message of body.messages.toReversed()) {
    const { length } = tokenText(message);
    if (length > left) {
      if (left > 0 && message.role !== 'tool')
        kept.unshift({ ...message, content: message.content?.slice(-left) ?? '' });
      break;
    }
    kept.unshift(message);
    left -= length;
  }
  const { tools: _, ...rest } = body;
  return { ...rest, messages: kept };
}

/** Assistant messages that call something, with their place. */
export function callMessages(body: ChatBody): { message: ChatBodyMessage; index: number }[] {
  return body.messages.flatMap((message, index) => (message.tool_calls?.length ? [{ message, index }] : []));
}

/** Fields of an assistant message beyond those that every server knows. */
export function unknownFields(message: ChatBodyMessage): string[] {
  const known = ['role', 'content', 'tool_calls', 'tool_call_id', 'name', 'images'];
  return Object.keys(message).filter((field) => !known.includes(field));
}

/** What every server checks: each call is answered right behind its message, and nothing else is. */
export function unpaired(body: ChatBody): string | null {
  let open: string[] = [];
  for (const message of body.messages) {
    if (message.role === 'tool') {
      if (!open.includes(message.tool_call_id ?? '')) return `no call for the result ${message.tool_call_id}`;
      open = open.filter((id) => id !== message.tool_call_id);
      continue;
    }
    if (open.length > 0) return `no result for the calls ${open.join(', ')}`;
    open = message.tool_calls?.map(({ id }) => id) ?? [];
  }
  return open.length > 0 ? `no result for the calls ${open.join(', ')}` : null;
}

/**
 * What strict servers check of calls in the history: OpenAI their names (mcp-use/mcp-use#90), Anthropic their ids
 * (tailcallhq/forgecode#1142).
 */
export function misnamed(body: ChatBody): Record<string, unknown> | null {
  for (const { message, index } of callMessages(body)) {
    for (const [n, call] of (message.tool_calls ?? []).entries()) {
      const at = `messages[${index}].tool_calls[${n}]`;
      if (!PLAIN.test(call.function.name)) return wrongPattern(`${at}.function.name`);
      if (!PLAIN.test(call.id)) return wrongPattern(`${at}.id`);
    }
  }
  return null;
}

const PLAIN = /^[a-zA-Z0-9_-]{1,64}$/;

function wrongPattern(param: string) {
  const message = `Invalid '${param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`;
  return { message, type: 'invalid_request_error', param, code: 'invalid_value' };
}

/** Each call with what `of` adds. */
export function withCalls(
  script: ModelScript,
  of: (call: { name: string }, index: number) => { id?: string; extra?: Record<string, unknown> },
): ModelScript {
  if (script.calls === undefined) return script;
  return { ...script, calls: script.calls.map((call, index) => ({ ...call, ...of(call, index) })) };
}
