/**
 * Puts an answer of OpenAI's Responses API together, from its events or from the one document: text, calls, usage, why it
 * ended, and all items as they came, which go back with the next request.
 */
import { type Answer, type AnswerReader, reasoningTokensOf, usageOf } from './answer.js';
import { bytesOf, isVisible, record, withoutDepths, word } from './json.js';
import { ServerError } from './server-error.js';

type Item = Record<string, unknown>;

export function createResponsesAnswer(): AnswerReader {
  const items: Item[] = [];
  let text = '';
  let speaking: unknown = null;
  let last: Item | null = null;
  /** Of what is being written, and of what is whole: the same words come in both. */
  let writtenBytes = 0;
  let itemBytes = 0;

  function addText(piece: string, item: unknown): void {
    // What a model says before and after it thought again are paragraphs.
    if (text !== '' && item !== speaking) text += '\n\n';
    speaking = item;
    text += piece;
  }

  return {
    add(value) {
      const event = record(withoutDepths(value)) ?? {};
      // Text, reasoning and the arguments of calls alike.
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
          throw failure(event);
        default:
          if (event.object !== 'response') return isVisible(piece) ? 'more' : 'nothing';
          last = event;
      }
      if (last?.status === 'failed') throw failure(record(last.error) ?? {});
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

/** A call is one by its name; those of an answer are in the order of the items that have one. */
export function isNamed({ name }: Item): boolean {
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

/** A field that is null is one that the server does not take back. */
function withoutNulls(item: Item): Item {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null));
}

function failure(error: Item): ServerError {
  return new ServerError({
    kind: 'answered',
    words: word(error.message) ?? 'no reason given',
    code: word(error.code) ?? undefined,
    param: word(error.param) ?? undefined,
  });
}
