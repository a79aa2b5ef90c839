/**
 * Step 5, to the server: a request in the form of OpenAI's Responses API, for models that take tools only there while they
 * reason. Nothing is stored at the server: what it thought comes back to it sealed, with the items of its own answers.
 */

import { onceForEach } from '../core/concurrency.js';
import type { ModelImage, ModelMessage, ToolDescription } from '../core/model.js';
import { type Body, createSlot, pictureUrl, withoutPictures } from './body.js';
import { marked } from './cache-marks.js';
import { sentId, sentName } from './call-names.js';
import { echoFor } from './echo.js';
import { type ChatRequest, picturesIn, readableArguments, saysNothing } from './request.js';
import { isNamed } from './responses-answer.js';

/** The text of a message or a tool is remembered as long as the object itself lives, as for chat completions. */
export function createResponsesWriter(): (request: ChatRequest) => Body {
  const slot = createSlot();
  const texts = new WeakMap<ModelMessage, { isEchoed: boolean; text: string }>();
  const toolText = onceForEach((tool: ToolDescription) =>
    // Strict is the default here, and takes no schema with fields that may be left out.
    JSON.stringify({ type: 'function', ...tool, strict: false }),
  );

  function itemsText(message: ModelMessage, { sendsImages, echoesTo, marks }: ChatRequest): string {
    const shown = sendsImages ? slot : null;
    // The mark moves on with the next request, so this form is not worth keeping.
    if (marks?.messages.has(message)) {
      const [item = {}] = itemsOf(message, shown, undefined);
      return JSON.stringify(marked(item, marks.field, 'input_text'));
    }
    const items = echoFor(message, echoesTo)?.items;
    const isEchoed = items !== undefined;
    const kept = texts.get(message);
    if (kept?.isEchoed === isEchoed) return kept.text;
    const text = itemsOf(message, shown, items)
      .map((item) => JSON.stringify(item))
      .join();
    if (message.role !== 'user' || message.images === undefined) texts.set(message, { isEchoed, text });
    return text;
  }

  return (request) => {
    const input = request.messages
      .filter((message) => !saysNothing(message))
      .map((message) => itemsText(message, request));
    const tools = request.tools.length === 0 ? '' : `,"tools":[${request.tools.map(toolText).join()}]`;
    const text = `${JSON.stringify(parametersOf(request)).slice(0, -1)}${tools},"input":[${input.join()}]}`;
    return { text, slot, pictures: request.sendsImages ? picturesIn(request.messages) : [] };
  };
}

function parametersOf({ parameters }: ChatRequest): object {
  const { stream_options: _, max_tokens, max_completion_tokens, reasoning_effort, ...rest } = parameters;
  const limit = max_completion_tokens ?? max_tokens;
  return {
    ...rest,
    ...(limit !== undefined && { max_output_tokens: limit }),
    ...(reasoning_effort !== undefined && { reasoning: { effort: reasoning_effort } }),
    store: false,
    include: ['reasoning.encrypted_content'],
  };
}

function itemsOf(
  message: ModelMessage,
  slot: string | null,
  echoed: Record<string, unknown>[] | undefined,
): object[] {
  switch (message.role) {
    case 'system':
      return [{ role: 'system', content: message.content }];
    case 'user':
      return [{ role: 'user', content: userContent(message.content, message.images ?? [], slot) }];
    case 'tool':
      return [{ type: 'function_call_output', call_id: sentId(message.callId), output: message.content }];
    case 'assistant': {
      const calls = message.calls.map((call) => ({
        ...{ type: 'function_call', call_id: sentId(call.id), name: sentName(call.name) },
        arguments: readableArguments(call),
      }));
      if (echoed !== undefined) return withCallsOf(calls, echoed);
      return [...(message.content === '' ? [] : [{ role: 'assistant', content: message.content }]), ...calls];
    }
  }
}

/** The items as they came, only with the calls as they are answered now: one that nothing answers is left out. */
function withCallsOf(calls: object[], items: Record<string, unknown>[]): object[] {
  let n = 0;
  return items.flatMap((item) => {
    if (item.type !== 'function_call') return [item];
    const call = isNamed(item) ? calls[n++] : undefined;
    return call === undefined ? [] : [{ ...item, ...call }];
  });
}

function userContent(content: string, images: ModelImage[], slot: string | null): string | object[] {
  if (images.length === 0) return content;
  if (slot === null) return withoutPictures(content, images);
  return [
    ...(content === '' ? [] : [{ type: 'input_text', text: content }]),
    ...images.map((image) => ({ type: 'input_image', image_url: pictureUrl(image, slot), detail: 'auto' })),
  ];
}
