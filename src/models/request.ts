/**
 * Step 5, to the server: what a model is asked, as chat completions want it, without what the server does not take and with
 * what the operator wants in it. The text of a message is made once: the next request of a conversation brings the same
 * messages, and some more.
 */

import { onceForEach } from '../core/concurrency.js';
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
import { type Body, createSlot, pictureUrl, withoutPictures } from './body.js';
import { type CacheMarks, marked, marksAt } from './cache-marks.js';
import { sentId, sentName } from './call-names.js';
import { type Addressee, echoFor } from './echo.js';
import { parse, record } from './json.js';
import type { Quirk } from './quirk-store.js';
import { inOrder, inTurns, withoutCalls, withoutSystem } from './retold.js';

/** What the model is shown again of arguments that are nested too deep. */
const SHOWN_CHARS = 200;

export interface ChatRequest {
  /** Where it goes: the fields are those of chat completions in any case, and `responses-request.ts` renames them. */
  api: 'chat' | 'responses';
  parameters: {
    model: string;
    stream: boolean;
    stream_options?: { include_usage: true };
    max_tokens?: number;
    max_completion_tokens?: number;
    temperature?: number;
    reasoning_effort?: string;
    prompt_cache_key?: string;
    tool_choice?: 'none';
    /** What the operator adds. */
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

/** Pure. An operator's field (`extra`) counts more than ours, a server's refusal more than both. */
export function chatRequest(
  request: ModelRequest,
  to: Addressee,
  outputTokens: number,
  refused: ReadonlySet<Quirk>,
  extra: Record<string, unknown> = {},
): ChatRequest {
  const { messages, temperature, mayCall = true, cacheKey, stableThrough } = request;
  const tools = refused.has('tools') ? [] : request.tools;
  // Without reasoning only where a model cannot have both: it thinks better on the Responses API.
  const isToolsOrReasoning = refused.has('reasoning_with_tools');
  const api = isToolsOrReasoning && !refused.has('responses') ? 'responses' : 'chat';
  const isToStopReasoning = api === 'chat' && isToolsOrReasoning && tools.length > 0;

  const parameters: ChatRequest['parameters'] = { model: to.model, stream: !refused.has('stream') };
  if (parameters.stream) parameters.stream_options = { include_usage: true };
  const limit = LIMITS.find((name) => !refused.has(name));
  if (limit && !LIMITS.some((name) => name in extra)) parameters[limit] = outputTokens;
  if (temperature !== undefined) parameters.temperature = temperature;
  if (!mayCall && tools.length > 0) parameters.tool_choice = 'none';
  if (cacheKey !== undefined) parameters.prompt_cache_key = cacheKey;
  Object.assign(parameters, extra);
  // What lets the model have its tools counts more than the operator's.
  if (isToStopReasoning) parameters.reasoning_effort = 'none';
  for (const name of LEFT_OUT) if (refused.has(name)) delete parameters[name];

  const echoesTo = refused.has('echo') ? null : to;
  const mark = refused.has('cache_marks') ? null : cacheMarkOf(to.model);
  const marks = mark && stableThrough !== undefined ? marksAt(messages, stableThrough, mark) : null;
  return {
    api,
    parameters,
    messages: refused.size === 0 ? messages : takeable(messages, tools.length > 0, refused, echoesTo),
    tools,
    sendsImages: !refused.has('images'),
    echoesTo,
    isToolsOrReasoning,
    ...(marks && { marks }),
  };
}

/**
 * The mark up to which a server is to keep a prompt in its cache, for the models that need one; null for the rest, which
 * cache whatever begins alike. From gpt-5.6 on OpenAI's own mark stands behind the last message, so that of a prompt with a
 * changing end nothing would be found again; older models refuse the field. Claude and Qwen, behind OpenRouter and other
 * proxies, cache nothing without.
 */
function cacheMarkOf(model: string): CacheMarks['field'] | null {
  if (/\bgpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)/i.test(model))
    return { prompt_cache_breakpoint: { mode: 'explicit' } };
  if (/\bclaude\b|^(qwen|alibaba)\//i.test(model)) return { cache_control: { type: 'ephemeral' } };
  return null;
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

/**
 * Writes requests as JSON. The text of a message or a tool is remembered as long as the object itself lives, so neither
 * may change; messages with pictures are written each time, because their text is many times as large.
 */
export function createRequestWriter(): (request: ChatRequest) => Body {
  const slot = createSlot();
  const messageTexts = new WeakMap<ModelMessage, string>();
  /** Of those with what came along with them. */
  const echoTexts = new WeakMap<ModelMessage, string>();
  const toolText = onceForEach((tool: ToolDescription) =>
    JSON.stringify({ type: 'function', function: tool }),
  );

  function messageText(message: ModelMessage, { sendsImages, echoesTo }: ChatRequest): string {
    const shown = sendsImages ? slot : null;
    if (message.role === 'user' && message.images !== undefined) {
      return JSON.stringify(messageParam(message, shown, null));
    }
    const hasEcho = message.role === 'assistant' && message.echo !== undefined;
    const echo = hasEcho ? echoFor(message, echoesTo) : null;
    const texts = echo === null ? messageTexts : echoTexts;
    let text = texts.get(message);
    if (text === undefined) {
      text = JSON.stringify(messageParam(message, shown, echo));
      texts.set(message, text);
    }
    return text;
  }

  return (request) => {
    const { parameters, messages, tools, sendsImages, marks } = request;
    const texts: string[] = [];
    for (const message of messages) {
      if (saysNothing(message)) continue;
      // The mark moves on with the next request, so this form is not worth keeping.
      if (marks?.messages.has(message)) {
        texts.push(
          JSON.stringify(marked(messageParam(message, sendsImages ? slot : null, null), marks.field)),
        );
      } else texts.push(messageText(message, request));
    }
    const offered = tools.length === 0 ? '' : `,"tools":[${tools.map(toolText).join(',')}]`;
    const text = `${JSON.stringify(parameters).slice(0, -1)}${offered},"messages":[${texts.join(',')}]}`;
    return { text, slot, pictures: sendsImages ? picturesIn(messages) : [] };
  };
}

/** In the order in which they are written. */
export function picturesIn(messages: readonly ModelMessage[]): Buffer[] {
  return messages.flatMap((message) =>
    message.role === 'user' ? (message.images ?? []).map(({ bytes }) => bytes) : [],
  );
}

/** Most servers refuse such a message. */
export function saysNothing(message: ModelMessage): boolean {
  return message.role === 'assistant' && message.content === '' && message.calls.length === 0;
}

/** `slot`: what stands for a picture; null: the server takes none. */
function messageParam(message: ModelMessage, slot: string | null, echo: Echo | null): object {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.content };
    case 'user':
      return { role: 'user', content: userContent(message, slot) };
    case 'tool':
      return { role: 'tool', tool_call_id: sentId(message.callId), content: message.content };
    case 'assistant': {
      const content = message.content === '' ? null : message.content;
      if (message.calls.length === 0) return { role: 'assistant', content };
      const calls = message.calls.map((call, n) => ({ ...echo?.calls?.[n], ...callParam(call) }));
      return { role: 'assistant', content, ...echo?.message, tool_calls: calls };
    }
  }
}

/** Where pictures cannot be sent, a line says so; otherwise models make up what they show. */
function userContent(
  { content, images = [] }: { content: string; images?: ModelImage[] },
  slot: string | null,
): string | object[] {
  if (images.length === 0) return content;
  if (slot === null) return withoutPictures(content, images);
  const parts = images.map((image) => ({
    type: 'image_url',
    image_url: { url: pictureUrl(image, slot), detail: 'auto' },
  }));
  return [...(content === '' ? [] : [{ type: 'text', text: content }]), ...parts];
}

function callParam(call: ToolCall): object {
  return {
    id: sentId(call.id),
    type: 'function',
    function: { name: sentName(call.name), arguments: readableArguments(call) },
  };
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
