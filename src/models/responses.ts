/**
 * OpenAI's Responses API, for models that reason with tools only there: builds the request, and reads the answer from its events or
 * single document. Nothing is stored on the server: its reasoning is returned encrypted, with the items of its answers.
 */
import type OpenAI from 'openai';
import type { ModelMessage } from '../core/model.js';
import { type Answer, type AnswerReader, reasoningTokensOf, usageOf } from './answer.js';
import { errorInAnswer } from './failures.js';
import { echoFor, sentId, sentName } from './history.js';
import { bytesOf, isVisible, record, withoutDepths, word } from './json.js';
import {
  type Body,
  type ChatRequest,
  marked,
  picturesIn,
  readableArguments,
  saysSomething,
  userContent,
} from './request.js';

type Item = Record<string, unknown>;

export function responsesBody(request: ChatRequest): Body {
  const {
    stream_options: _,
    max_tokens,
    max_completion_tokens,
    reasoning_effort,
    ...rest
  } = request.parameters;
  const { tools } = request;
  const input = request.messages.filter(saysSomething).flatMap((message) => {
    const items = itemsOf(message, request);
    return items.map((item) => marked(item, message, request, 'input_text'));
  });
  const body = {
    ...rest,
    max_output_tokens: max_completion_tokens ?? max_tokens ?? undefined,
    reasoning: reasoning_effort === undefined ? undefined : { effort: reasoning_effort },
    store: false,
    include: ['reasoning.encrypted_content'],
    // Strict is the default here, and forbids schemas with optional fields.
    tools:
      tools.length === 0 ? undefined : tools.map((tool) => ({ type: 'function', ...tool, strict: false })),
    input,
  };
  return { text: JSON.stringify(body), pictures: picturesIn(request) };
}

function itemsOf(
  message: ModelMessage,
  { sendsImages, echoesTo }: ChatRequest,
): OpenAI.Responses.ResponseInputItem[] {
  switch (message.role) {
    case 'system':
      return [{ role: 'system', content: message.content }];
    case 'user': {
      const text = (words: string) => ({ type: 'input_text' as const, text: words });
      const picture = (url: string) => ({
        type: 'input_image' as const,
        image_url: url,
        detail: 'auto' as const,
      });
      return [{ role: 'user', content: userContent(message, sendsImages, text, picture) }];
    }
    case 'tool':
      return [{ type: 'function_call_output', call_id: sentId(message.callId), output: message.content }];
    case 'assistant': {
      const calls = message.calls.map((call) => ({
        type: 'function_call' as const,
        call_id: sentId(call.id),
        name: sentName(call.name),
        arguments: readableArguments(call),
      }));
      const echoed = echoFor(message, echoesTo)?.items;
      if (echoed !== undefined) return withCallsOf(calls, echoed) as never;
      return [
        ...(message.content === '' ? [] : [{ role: 'assistant' as const, content: message.content }]),
        ...calls,
      ];
    }
  }
}

/** The items unchanged, but with the calls as they are answered now; calls without an answer are omitted. */
function withCallsOf(calls: object[], items: Item[]): object[] {
  let n = 0;
  return items.flatMap((item) => {
    if (item.type !== 'function_call') return [item];
    const call = isNamed(item) ? calls[n++] : undefined;
    return call === undefined ? [] : [{ ...item, ...call }];
  });
}

export function createResponsesAnswer(): AnswerReader {
  const items: Item[] = [];
  let text = '';
  let speaking: unknown = null;
  let last: Item | null = null;
  /** The same words come in pieces and in whole items, so each is counted separately. */
  let writtenBytes = 0;
  let itemBytes = 0;

  function addText(piece: string, item: unknown): void {
    // Text before and after further reasoning becomes separate paragraphs.
    if (text !== '' && item !== speaking) text += '\n\n';
    speaking = item;
    text += piece;
  }

  return {
    add(value) {
      const event = record(withoutDepths(value)) ?? {};
      // Pieces of text, reasoning and arguments.
      const piece = word(event.delta) ?? '';
      writtenBytes += Buffer.byteLength(piece);
      switch (event.type) {
        case 'response.output_text.delta':
        case 'response.refusal.delta': {
          if (piece !== '') addText(piece, event.output_index);
          return isVisible(piece) ? 'text' : 'nothing';
        }
        case 'response.output_item.done': {
          const item = record(event.item);
          if (item === null) return 'nothing';
          items.push(item);
          itemBytes += bytesOf(item);
          return 'more';
        }
        case 'response.completed':
        case 'response.incomplete':
        case 'response.failed':
          last = record(event.response);
          break;
        case 'error':
          throw errorInAnswer(event);
        default:
          if (event.object !== 'response') return isVisible(piece) ? 'more' : 'nothing';
          last = event;
      }
      if (last?.status === 'failed') throw errorInAnswer(last.error);
      if (items.length > 0 || !Array.isArray(last?.output)) return 'nothing';
      for (const item of last.output.map(record)) if (item !== null) items.push(item);
      if (text !== '') return 'more';
      for (const [index, item] of items.entries()) {
        for (const piece of piecesOf(item)) addText(piece, index);
      }
      return isVisible(text) ? 'text' : 'more';
    },

    bytes: () => Math.max(writtenBytes, itemBytes),
    visible: () => text,
    finish: () => (last === null ? null : finishOf(last, items)),

    complete(): Answer {
      const called = items.filter((item) => item.type === 'function_call' && isNamed(item));
      return {
        text,
        calls: called.map((item) => ({
          id: word(item.call_id) ?? '',
          name: word(item.name) ?? '',
          arguments: word(item.arguments) ?? '',
        })),
        usage: usageOf(last?.usage),
        reasoningTokens: reasoningTokensOf(last?.usage),
        model: word(last?.model),
        finish: last === null ? null : finishOf(last, items),
        besides: { message: {}, calls: [], items: items.map(withoutNulls) },
      };
    },
  };
}

/** Only items with a name are calls; an answer's calls are in their order. */
function isNamed({ name }: Item): boolean {
  return (word(name)?.trim() ?? '') !== '';
}

function finishOf(response: Item, items: Item[]): string {
  if (response.status === 'incomplete') {
    const reason = word(record(response.incomplete_details)?.reason);
    return reason === 'max_output_tokens' ? 'length' : (reason ?? 'length');
  }
  if (response.status !== 'completed') return 'error';
  return items.some(({ type }) => type === 'function_call') ? 'tool_calls' : 'stop';
}

/** The texts of a message, refusals included. */
function piecesOf(item: Item): string[] {
  const parts = item.type === 'message' && Array.isArray(item.content) ? item.content.map(record) : [];
  return parts.flatMap((part) => word(part?.text) ?? word(part?.refusal) ?? []);
}

/** The server refuses fields that are null. */
function withoutNulls(item: Item): Item {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null));
}
