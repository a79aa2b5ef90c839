/** Step 5, to the server: what a model is asked, as chat completions want it, without what the server refuses. */
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions';
import type { ModelImage, ModelMessage, ModelRequest, ToolCall } from '../core/model.js';
import { parse, record } from './json.js';
import type { Quirk } from './quirks.js';
import type { RequestBody } from './wire.js';

/** Pure. */
export function requestBody(
  request: ModelRequest,
  model: string,
  maxOutputTokens: number,
  refused: ReadonlySet<Quirk>,
): RequestBody {
  const tools = refused.has('tools') ? [] : request.tools;
  const withoutCalls = refused.has('tools') || (tools.length === 0 && refused.has('calls_without_tools'));
  const messages = withoutCalls ? inPlainWords(request.messages) : request.messages;
  const shows = !refused.has('images');
  const body: RequestBody = {
    model,
    messages: messages.flatMap((message) => messageParam(message, shows)),
    stream: !refused.has('stream'),
  };
  if (body.stream && !refused.has('stream_options')) body.stream_options = { include_usage: true };
  const most = Math.min(maxOutputTokens, request.maxOutputTokens ?? maxOutputTokens);
  if (!refused.has('max_tokens')) body.max_tokens = most;
  else if (!refused.has('max_completion_tokens')) body.max_completion_tokens = most;
  if (request.temperature !== undefined && !refused.has('temperature')) {
    body.temperature = request.temperature;
  }
  if (tools.length > 0) {
    body.tools = tools.map((tool) => ({ type: 'function', function: tool }));
  }
  return body;
}

/** The ids of the calls in a request: an answer must not use them again. */
export function callIds(messages: ModelMessage[]): Set<string> {
  return new Set(
    messages.flatMap((message) => (message.role === 'assistant' ? message.calls : [])).map((call) => call.id),
  );
}

/** An assistant message with neither text nor calls says nothing, and most servers refuse it. */
function messageParam(message: ModelMessage, showsPictures: boolean): ChatCompletionMessageParam[] {
  switch (message.role) {
    case 'system':
      return [{ role: 'system', content: message.content }];
    case 'user':
      return [{ role: 'user', content: userContent(message, showsPictures) }];
    case 'tool':
      return [{ role: 'tool', tool_call_id: message.callId, content: message.content }];
    case 'assistant': {
      if (message.content === '' && message.calls.length === 0) return [];
      const said: ChatCompletionAssistantMessageParam = {
        role: 'assistant',
        content: message.content === '' ? null : message.content,
      };
      if (message.calls.length > 0) said.tool_calls = message.calls.map(callParam);
      return [said];
    }
  }
}

/** A model that is not shown a picture is told of it, lest it makes one up. */
function userContent(
  { content, images = [] }: { content: string; images?: ModelImage[] },
  showsPictures: boolean,
): string | ChatCompletionContentPart[] {
  if (images.length === 0) return content;
  if (!showsPictures) {
    const pictures = images.length === 1 ? '1 picture' : `${images.length} pictures`;
    return `${content}\n[${pictures} could not be shown to this model]`.trimStart();
  }
  return [...(content === '' ? [] : [{ type: 'text' as const, text: content }]), ...images.map(imagePart)];
}

function imagePart({ mimeType, bytes }: ModelImage): ChatCompletionContentPart {
  const url = `data:${mimeType};base64,${bytes.toString('base64')}`;
  return { type: 'image_url', image_url: { url, detail: 'auto' } };
}

/** Servers parse the arguments of past calls; one that the model garbled would make every request fail. */
function callParam(call: ToolCall) {
  const readable = record(parse(call.arguments)) !== null;
  const args = readable ? call.arguments : JSON.stringify({ not_json: call.arguments });
  return { id: call.id, type: 'function' as const, function: { name: call.name, arguments: args } };
}

/** For a model without tools: what was called and answered becomes text, and speakers take turns. */
function inPlainWords(messages: ModelMessage[]): ModelMessage[] {
  const names = new Map<string, string>();
  const plain: ModelMessage[] = [];
  for (const message of messages) {
    const next = inWords(message, names);
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

/** A new message: merging writes into it. `names` learns the name of each call. */
function inWords(message: ModelMessage, names: Map<string, string>): ModelMessage {
  if (message.role === 'tool') {
    const name = names.get(message.callId) ?? 'tool';
    return { role: 'user', content: `[Result of ${name}]\n${message.content}` };
  }
  if (message.role !== 'assistant') return { ...message };
  for (const call of message.calls) names.set(call.id, call.name);
  const called = message.calls.map((call) => `[Called ${call.name} with ${call.arguments}]`);
  const content = [message.content, ...called].filter((text) => text !== '').join('\n');
  return { role: 'assistant', content, calls: [] };
}
