/** Builds a chat completions request: without what the server refused, and with the operator's own fields. Pure. */
import { randomUUID } from 'node:crypto';
import type OpenAI from 'openai';
import { cutAt } from '../core/cut.js';
import type { ModelMessage, ModelRequest, ToolCall, ToolDescription } from '../core/model.js';
import { isNestedDeeper } from '../core/network.js';
import { type Addressee, echoFor, retold, sentId, sentName } from './history.js';
import { parse, record } from './json.js';
import type { Quirk } from './server-ways.js';

/** Maximum length of too deeply nested arguments shown to the model, in characters. */
const SHOWN_CHARS = 200;

export interface ChatRequest {
  /** The endpoint. Fields are always those of chat completions; `responses.ts` renames them. */
  api: 'chat' | 'responses';
  /** Includes the operator's `extra`. */
  parameters: Omit<OpenAI.Chat.ChatCompletionCreateParams, 'messages' | 'tools' | 'reasoning_effort'> & {
    reasoning_effort?: string;
    [extra: string]: unknown;
  };
  messages: ModelMessage[];
  tools: ToolDescription[];
  /** If false, a line of text replaces the pictures. */
  sendsImages: boolean;
  /** The server and model that get back the extra fields of their own answers; null if it refused them. */
  echoesTo: Addressee | null;
  /** On chat completions, this model takes no tools while it reasons. */
  isToolsOrReasoning: boolean;
  /** Absent if the server's prompt cache needs no marks. */
  marks?: CacheMarks | undefined;
}

/** `field` goes on the last part of each of `messages`: the prompt is cached up to there. */
interface CacheMarks {
  field: Record<string, unknown>;
  messages: ReadonlySet<ModelMessage>;
}

/** Two names for one limit: if an operator sets one, the other is not sent. */
const LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

/** Omitted once they were refused, even if the operator set them. */
const LEFT_OUT: readonly Quirk[] = [
  ...LIMITS,
  ...(['temperature', 'stream_options', 'prompt_cache_key', 'reasoning_effort', 'tool_choice'] as const),
];

/** The operator's `extra` overrides our fields; a server's refusal overrides both. */
export function chatRequest(
  request: ModelRequest,
  to: Addressee,
  outputTokens: number,
  refused: ReadonlySet<Quirk>,
  extra: Record<string, unknown> = {},
): ChatRequest {
  const { messages, temperature, mayCall = true, cacheKey } = request;
  const tools = refused.has('tools') ? [] : request.tools;
  // Models reason better on the Responses API, so reasoning is dropped only without it.
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
  // Overrides the operator, because otherwise the model would lose its tools.
  if (api === 'chat' && isToolsOrReasoning && tools.length > 0) parameters.reasoning_effort = 'none';
  for (const name of LEFT_OUT) if (refused.has(name)) delete parameters[name];

  const echoesTo = refused.has('echo') ? null : to;
  return {
    api,
    parameters,
    messages: refused.size === 0 ? messages : retold(messages, tools.length > 0, refused, echoesTo),
    tools,
    sendsImages: !refused.has('images'),
    echoesTo,
    isToolsOrReasoning,
    marks: refused.has('cache_marks') ? undefined : cacheMarksFor(to.model, request),
  };
}

/** At the end of the system part and of the prefix shared with the next request. Not every server takes one in other roles. */
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
 * From gpt-5.6 on, OpenAI places its own mark after the last message, which would miss when the end of a prompt changes; older
 * models refuse the field. Claude and Qwen, behind OpenRouter and other proxies, cache nothing without a mark.
 */
function cacheMarkOf(model: string): CacheMarks['field'] | null {
  if (/\bgpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)/i.test(model))
    return { prompt_cache_breakpoint: { mode: 'explicit' } };
  if (/\bclaude\b|^(qwen|alibaba)\//i.test(model)) return { cache_control: { type: 'ephemeral' } };
  return null;
}

/** With the mark on its last part, if its prompt is cached up to this message. `type`: the server's name for a text part. */
export function marked(
  param: object,
  message: ModelMessage,
  { marks }: ChatRequest,
  type: 'text' | 'input_text',
): object {
  if (!marks?.messages.has(message)) return param;
  const { content } = param as { content?: unknown };
  const parts: object[] = Array.isArray(content) ? content : [{ type, text: content }];
  return { ...param, content: [...parts.slice(0, -1), { ...parts.at(-1), ...marks.field }] };
}

/** JSON with a slot per picture: base64 is made only while sending, so that ten pictures fit in memory. */
export interface Body {
  text: string;
  pictures: readonly Buffer[];
}

/** In the place of a picture's base64. Random, so that no message can contain it. */
export const SLOT = `picture-${randomUUID()}`;

export function chatBody(request: ChatRequest): Body {
  const { parameters, tools } = request;
  const messages = request.messages
    .filter(saysSomething)
    .map((message) => marked(messageParam(message, request), message, request, 'text'));
  const offered = tools.map((tool) => ({ type: 'function', function: tool }));
  const body = { ...parameters, ...(tools.length > 0 && { tools: offered }), messages };
  return { text: JSON.stringify(body), pictures: picturesIn(request) };
}

/** In the order of their slots in the body. */
export function picturesIn({ messages, sendsImages }: ChatRequest): Buffer[] {
  if (!sendsImages) return [];
  const images = messages.flatMap((each) => (each.role === 'user' ? (each.images ?? []) : []));
  return images.map(({ bytes }) => bytes);
}

/** Most servers refuse empty assistant messages. */
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
      const text = (words: string) => ({ type: 'text' as const, text: words });
      const picture = (url: string) => ({
        type: 'image_url' as const,
        image_url: { url, detail: 'auto' as const },
      });
      return { role: 'user', content: userContent(message, sendsImages, text, picture) };
    }
    case 'tool':
      return { role: 'tool', tool_call_id: sentId(message.callId), content: message.content };
    case 'assistant': {
      const content = message.content === '' ? null : message.content;
      if (message.calls.length === 0) return { role: 'assistant', content };
      const echo = echoFor(message, echoesTo);
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

/** Its words alone, or as a part, with parts for its pictures. */
export function userContent<Text, Picture>(
  { content, images = [] }: ModelMessage & { role: 'user' },
  sendsImages: boolean,
  text: (words: string) => Text,
  picture: (url: string) => Picture,
): string | (Text | Picture)[] {
  if (images.length === 0) return content;
  // Without this line, models make up what the pictures show.
  const pictures = images.length === 1 ? '1 picture' : `${images.length} pictures`;
  if (!sendsImages) return `${content}\n[${pictures} could not be shown to this model]`.trimStart();
  const parts = images.map(({ mimeType }) => picture(`data:${mimeType};base64,${SLOT}`));
  return content === '' ? parts : [text(content), ...parts];
}

/** Servers parse the arguments of past calls; malformed ones would make every request fail. */
export function readableArguments(call: ToolCall): string {
  const read = record(parse(call.arguments));
  if (read === null) return JSON.stringify({ not_json: call.arguments });
  // Python, in which most servers are written, cannot parse a thousand levels.
  return isNestedDeeper(read)
    ? JSON.stringify({ nested_too_deep: cutAt(call.arguments, SHOWN_CHARS) })
    : call.arguments;
}
