/**
 * What a model is asked, as chat completions want it: without what the server does not take, and with what the operator wants in
 * it. Pure.
 */

import type OpenAI from 'openai';
import { cutAt } from '../core/cut.js';
import type {
  Echo,
  ModelImage,
  ModelMessage,
  ModelRequest,
  ToolCall,
  ToolDescription,
} from '../core/model.js';
import { isNestedDeeper } from '../core/network.js';
import {
  type Addressee,
  echoFor,
  inOrder,
  inTurns,
  sentId,
  sentName,
  withoutCalls,
  withoutSystem,
} from './history.js';
import { parse, record } from './json.js';
import type { Quirk } from './server-ways.js';
import { type Body, pictureUrl } from './stream.js';

/** What the model is shown again of arguments that are nested too deep. */
const SHOWN_CHARS = 200;

export interface ChatRequest {
  /** Where it goes: the fields are those of chat completions in any case, and `responses.ts` renames them. */
  api: 'chat' | 'responses';
  /** With what the operator adds. */
  parameters: Omit<OpenAI.Chat.ChatCompletionCreateParams, 'messages' | 'tools' | 'reasoning_effort'> & {
    reasoning_effort?: string;
    [extra: string]: unknown;
  };
  messages: ModelMessage[];
  tools: ToolDescription[];
  /** Whether pictures are sent; else a line of text stands in their place. */
  sendsImages: boolean;
  /** Who gets back what came along with its own answers; null where that was refused. */
  echoesTo: Addressee | null;
  /** Chat completions are known to take no tools from this model while it reasons. */
  isToolsOrReasoning: boolean;
  /** Where the server's prompt cache wants a mark; left out where it wants none. */
  marks?: CacheMarks;
}

/** A field on the last part of these messages, which says that the cache is to reach to here. */
export interface CacheMarks {
  field: Record<string, unknown>;
  messages: ReadonlySet<ModelMessage>;
}

/** Two names for one limit: an operator who sets one does not want the other beside it. */
const LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

/** Parameters that are left out once they were refused, whoever wants them. */
const LEFT_OUT: readonly Quirk[] = [
  ...LIMITS,
  'temperature',
  'stream_options',
  'prompt_cache_key',
  'reasoning_effort',
  'tool_choice',
];

/** An operator's field (`extra`) counts more than ours, a server's refusal more than both. */
export function chatRequest(
  request: ModelRequest,
  to: Addressee,
  outputTokens: number,
  refused: ReadonlySet<Quirk>,
  extra: Record<string, unknown> = {},
): ChatRequest {
  const { messages, temperature, mayCall = true, cacheKey } = request;
  const tools = refused.has('tools') ? [] : request.tools;
  // Without reasoning only where a model cannot have both: it thinks better on the Responses API.
  const isToolsOrReasoning = refused.has('reasoning_with_tools');
  const api = isToolsOrReasoning && !refused.has('responses') ? 'responses' : 'chat';

  const parameters: ChatRequest['parameters'] = { model: to.model, stream: !refused.has('stream') };
  if (parameters.stream) parameters.stream_options = { include_usage: true };
  const limit = LIMITS.find((name) => !refused.has(name));
  if (limit && !LIMITS.some((name) => name in extra)) parameters[limit] = outputTokens;
  if (temperature !== undefined) parameters.temperature = temperature;
  if (!mayCall && tools.length > 0) parameters.tool_choice = 'none';
  if (cacheKey !== undefined) parameters.prompt_cache_key = cacheKey;
  Object.assign(parameters, extra);
  // What lets the model have its tools counts more than the operator's.
  if (api === 'chat' && isToolsOrReasoning && tools.length > 0) parameters.reasoning_effort = 'none';
  for (const name of LEFT_OUT) if (refused.has(name)) delete parameters[name];

  const echoesTo = refused.has('echo') ? null : to;
  const marks = refused.has('cache_marks') ? undefined : cacheMarksFor(to.model, request);
  return {
    api,
    parameters,
    messages: takeable(messages, tools.length > 0, refused, echoesTo),
    tools,
    sendsImages: !refused.has('images'),
    echoesTo,
    isToolsOrReasoning,
    ...(marks && { marks }),
  };
}

/**
 * Where the system part ends, and where that ends which the next request begins with. Only what the system or a person says can
 * hold a mark on every server. undefined for a model that needs none.
 */
function cacheMarksFor(model: string, { messages, stableThrough }: ModelRequest): CacheMarks | undefined {
  const field = cacheMarkOf(model);
  if (field === null || stableThrough === undefined) return undefined;
  const stable = messages.slice(0, stableThrough + 1);
  const system = stable.findLast(({ role }) => role === 'system');
  const last = stable.findLast(
    ({ role, content }) => (role === 'system' || role === 'user') && content !== '',
  );
  const places = new Set([system, last].filter((message) => message !== undefined));
  return places.size === 0 ? undefined : { field, messages: places };
}

/**
 * From gpt-5.6 on OpenAI's own mark stands behind the last message, so that of a prompt with a changing end nothing would be
 * found again; older models refuse the field. Claude and Qwen, behind OpenRouter and other proxies, cache nothing without.
 */
function cacheMarkOf(model: string): CacheMarks['field'] | null {
  if (/\bgpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)/i.test(model))
    return { prompt_cache_breakpoint: { mode: 'explicit' } };
  if (/\bclaude\b|^(qwen|alibaba)\//i.test(model)) return { cache_control: { type: 'ephemeral' } };
  return null;
}

/** The message as it is written, with the mark on its last part; `type` is what the server calls a part of text. */
export function marked(param: object, field: CacheMarks['field'], type: 'text' | 'input_text'): object {
  const { content } = param as { content?: unknown };
  const parts: object[] = Array.isArray(content) ? content : [{ type, text: content }];
  return { ...param, content: [...parts.slice(0, -1), { ...parts.at(-1), ...field }] };
}

/** The messages in a form that this server takes. */
function takeable(
  messages: ModelMessage[],
  hasTools: boolean,
  refused: ReadonlySet<Quirk>,
  echoesTo: Addressee | null,
): ModelMessage[] {
  const noCalls =
    refused.has('tools') || refused.has('tool_results') || (!hasTools && refused.has('calls_without_tools'));
  let retold = messages;
  if (noCalls) retold = withoutCalls(messages, () => true);
  else if (refused.has('calls_without_echo')) {
    retold = withoutCalls(messages, (message) => echoFor(message, echoesTo) === null);
  }
  if (refused.has('user_after_tool')) retold = inOrder(retold);
  if (refused.has('role_order')) retold = inTurns(retold);
  return refused.has('system_role') ? withoutSystem(retold) : retold;
}

export function chatBody(request: ChatRequest): Body {
  const { parameters, tools, marks } = request;
  const messages = request.messages.filter(saysSomething).map((message) => {
    const param = messageParam(message, request);
    return marks?.messages.has(message) ? marked(param, marks.field, 'text') : param;
  });
  const offered = tools.map((tool) => ({ type: 'function', function: tool }));
  const body = { ...parameters, ...(tools.length > 0 && { tools: offered }), messages };
  return { text: JSON.stringify(body), pictures: picturesIn(request) };
}

/** In the order in which they are written. */
export function picturesIn({ messages, sendsImages }: ChatRequest): Buffer[] {
  const shown = sendsImages
    ? messages.flatMap((each) => (each.role === 'user' ? (each.images ?? []) : []))
    : [];
  return shown.map(({ bytes }) => bytes);
}

/** Most servers refuse a message that does not. */
export function saysSomething(message: ModelMessage): boolean {
  return message.role !== 'assistant' || message.content !== '' || message.calls.length > 0;
}

function messageParam(
  message: ModelMessage,
  { sendsImages, echoesTo }: ChatRequest,
): OpenAI.Chat.ChatCompletionMessageParam {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.content };
    case 'user': {
      const { content, images = [] } = message;
      if (images.length === 0) return { role: 'user', content };
      if (!sendsImages) return { role: 'user', content: withoutPictures(content, images) };
      const text = content === '' ? [] : [{ type: 'text' as const, text: content }];
      const pictures = images.map((image) => ({
        type: 'image_url' as const,
        image_url: { url: pictureUrl(image), detail: 'auto' as const },
      }));
      return { role: 'user', content: [...text, ...pictures] };
    }
    case 'tool':
      return { role: 'tool', tool_call_id: sentId(message.callId), content: message.content };
    case 'assistant': {
      const content = message.content === '' ? null : message.content;
      if (message.calls.length === 0) return { role: 'assistant', content };
      const echo: Echo | null = echoFor(message, echoesTo);
      const calls = message.calls.map((call, n) => ({
        ...echo?.calls?.[n],
        id: sentId(call.id),
        type: 'function' as const,
        function: { name: sentName(call.name), arguments: readableArguments(call) },
      }));
      return { role: 'assistant', content, ...echo?.message, tool_calls: calls };
    }
  }
}

/** Otherwise models make up what the pictures show. */
export function withoutPictures(content: string, images: ModelImage[]): string {
  const pictures = images.length === 1 ? '1 picture' : `${images.length} pictures`;
  return `${content}\n[${pictures} could not be shown to this model]`.trimStart();
}

/** Servers parse the arguments of past calls; one that the model garbled would make every request fail. */
export function readableArguments(call: ToolCall): string {
  const read = record(parse(call.arguments));
  if (read === null) return JSON.stringify({ not_json: call.arguments });
  // Python, in which most servers are written, reads no thousand levels.
  return isNestedDeeper(read)
    ? JSON.stringify({ nested_too_deep: cutAt(call.arguments, SHOWN_CHARS) })
    : call.arguments;
}
