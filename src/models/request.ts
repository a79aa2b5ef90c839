/**
 * Step 5, to the server: what a model is asked, as chat completions want it, without what the server does not take. The
 * text of a message is made once: the next request of a conversation brings the same messages, and some more.
 */
import type { ModelImage, ModelMessage, ModelRequest, ToolCall, ToolDescription } from '../core/model.js';
import { type CacheMarks, marked } from './cache-marks.js';
import { parse, record } from './json.js';
import type { Quirk } from './quirk-store.js';

export interface ChatRequest {
  parameters: {
    model: string;
    stream: boolean;
    stream_options?: { include_usage: true };
    max_tokens?: number;
    max_completion_tokens?: number;
    temperature?: number;
    prompt_cache_key?: string;
    /** What the operator adds. */
    [extra: string]: unknown;
  };
  messages: ModelMessage[];
  tools: ToolDescription[];
  /** Whether pictures are sent; else a line of text stands in their place. */
  sendsImages: boolean;
  /** Where the server's prompt cache wants a mark; left out where it wants none. */
  marks?: CacheMarks;
}

/** Pure. */
export function chatRequest(
  { messages, tools: offered, temperature }: ModelRequest,
  model: string,
  outputTokens: number,
  refused: ReadonlySet<Quirk>,
): ChatRequest {
  const tools = refused.has('tools') ? [] : offered;
  const withoutCalls = refused.has('tools') || (tools.length === 0 && refused.has('calls_without_tools'));
  const parameters: ChatRequest['parameters'] = { model, stream: !refused.has('stream') };
  if (parameters.stream && !refused.has('stream_options')) {
    parameters.stream_options = { include_usage: true };
  }
  if (!refused.has('max_tokens')) parameters.max_tokens = outputTokens;
  else if (!refused.has('max_completion_tokens')) parameters.max_completion_tokens = outputTokens;
  if (temperature !== undefined && !refused.has('temperature')) parameters.temperature = temperature;
  return {
    parameters,
    messages: withoutCalls ? withoutToolCalls(messages) : messages,
    tools,
    sendsImages: !refused.has('images'),
  };
}

/**
 * Writes requests as JSON. The text of a message or a tool is remembered as long as the object itself lives, so neither
 * may change; messages with pictures are written each time, because their text is many times as large.
 */
export function createRequestWriter(): (request: ChatRequest) => string {
  const messageTexts = new WeakMap<ModelMessage, string>();
  const toolTexts = new WeakMap<ToolDescription, string>();

  function messageText(message: ModelMessage, sendsImages: boolean): string {
    if (message.role === 'user' && message.images !== undefined) {
      return JSON.stringify(messageParam(message, sendsImages));
    }
    let text = messageTexts.get(message);
    if (text === undefined) {
      text = JSON.stringify(messageParam(message, sendsImages));
      messageTexts.set(message, text);
    }
    return text;
  }

  function toolText(tool: ToolDescription): string {
    let text = toolTexts.get(tool);
    if (text === undefined) {
      text = JSON.stringify({ type: 'function', function: tool });
      toolTexts.set(tool, text);
    }
    return text;
  }

  return ({ parameters, messages, tools, sendsImages, marks }) => {
    const texts: string[] = [];
    for (const message of messages) {
      if (saysNothing(message)) continue;
      // The mark moves on with the next request, so this form is not worth keeping.
      if (marks?.messages.has(message)) {
        texts.push(JSON.stringify(marked(messageParam(message, sendsImages), marks.field)));
      } else texts.push(messageText(message, sendsImages));
    }
    const offered = tools.length === 0 ? '' : `,"tools":[${tools.map(toolText).join(',')}]`;
    return `${JSON.stringify(parameters).slice(0, -1)}${offered},"messages":[${texts.join(',')}]}`;
  };
}

/** Most servers refuse such a message. */
function saysNothing(message: ModelMessage): boolean {
  return message.role === 'assistant' && message.content === '' && message.calls.length === 0;
}

function messageParam(message: ModelMessage, sendsImages: boolean): object {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.content };
    case 'user':
      return { role: 'user', content: userContent(message, sendsImages) };
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content: message.content };
    case 'assistant': {
      const content = message.content === '' ? null : message.content;
      if (message.calls.length === 0) return { role: 'assistant', content };
      return { role: 'assistant', content, tool_calls: message.calls.map(callParam) };
    }
  }
}

/** Where pictures cannot be sent, a line says so; otherwise models make up what they show. */
function userContent(
  { content, images = [] }: { content: string; images?: ModelImage[] },
  sendsImages: boolean,
): string | object[] {
  if (images.length === 0) return content;
  if (!sendsImages) {
    const pictures = images.length === 1 ? '1 picture' : `${images.length} pictures`;
    return `${content}\n[${pictures} could not be shown to this model]`.trimStart();
  }
  return [...(content === '' ? [] : [{ type: 'text', text: content }]), ...images.map(imagePart)];
}

function imagePart({ mimeType, bytes }: ModelImage): object {
  const url = `data:${mimeType};base64,${bytes.toString('base64')}`;
  return { type: 'image_url', image_url: { url, detail: 'auto' } };
}

/** Servers parse the arguments of past calls; one that the model garbled would make every request fail. */
function callParam(call: ToolCall): object {
  const readable = record(parse(call.arguments)) !== null;
  const args = readable ? call.arguments : JSON.stringify({ not_json: call.arguments });
  return { id: call.id, type: 'function', function: { name: call.name, arguments: args } };
}

/** For a model without tools: what was called and answered becomes text, and speakers take turns. */
function withoutToolCalls(messages: ModelMessage[]): ModelMessage[] {
  const toolNames = new Map<string, string>();
  const plain: ModelMessage[] = [];
  for (const message of messages) {
    const next = withoutToolCall(message, toolNames);
    const last = plain.at(-1);
    if (last?.role === next.role && next.role !== 'system') {
      last.content = [last.content, next.content].filter((text) => text !== '').join('\n\n');
      if (last.role === 'user' && next.role === 'user' && next.images !== undefined) {
        last.images = [...(last.images ?? []), ...next.images];
      }
    } else plain.push(next);
  }
  return plain;
}

/** A new message, because merging writes into it. Adds the names of its calls to `toolNames`, by id. */
function withoutToolCall(message: ModelMessage, toolNames: Map<string, string>): ModelMessage {
  if (message.role === 'tool') {
    const name = toolNames.get(message.callId) ?? 'tool';
    return { role: 'user', content: `[Result of ${name}]\n${message.content}` };
  }
  if (message.role !== 'assistant') return { ...message };
  for (const call of message.calls) toolNames.set(call.id, call.name);
  const called = message.calls.map((call) => `[Called ${call.name} with ${call.arguments}]`);
  const content = [message.content, ...called].filter((text) => text !== '').join('\n');
  return { role: 'assistant', content, calls: [] };
}
