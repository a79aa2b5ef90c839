/** How a model writes that keeps to its limit of tokens, and what it does when it is asked to go on. */
import type { ChatBody, ModelReply } from './model.js';
import type { ModelScript } from './model-script.js';

export interface Writer {
  /** All that it would write without a limit. */
  whole: string;
  /** How many tokens it thinks before it writes; they count (OpenAI's reasoning models, DeepSeek). */
  thinks?: number;
  /** As this server says that it stopped at its limit. */
  finish?: string;
  /** Asked to go on, it says again this many characters of what it had written. */
  repeats?: number;
}

/**
 * A model that keeps to `max_tokens`, four characters a token. A new user message behind what it has written lets it write
 * on; whatever was not said yet is lost otherwise, for nothing is remembered.
 */
export function limited({ whole, thinks = 0, finish = 'length', repeats = 0 }: Writer): ModelReply {
  return (body) => {
    const limit = body.max_tokens ?? body.max_completion_tokens ?? Number.POSITIVE_INFINITY;
    const room = Math.max(0, limit - thinks) * 4;
    const from = Math.max(0, writtenIn(body, whole) - repeats);
    const text = whole.slice(from, from + room);
    const script: ModelScript = {
      text,
      finish: from + text.length < whole.length ? finish : 'stop',
      usage: {
        prompt_tokens: 50,
        completion_tokens: Math.min(limit, thinks) + Math.ceil(text.length / 4),
        completion_tokens_details: { reasoning_tokens: Math.min(limit, thinks) },
      },
    };
    return script;
  };
}

/** How much of it stands in the request, as what the model has written last. */
function writtenIn(body: ChatBody, whole: string): number {
  const [last, asked] = body.messages.slice(-2);
  const isAsked = last?.role === 'assistant' && asked?.role === 'user';
  return isAsked && last.content !== null && whole.startsWith(last.content) ? last.content.length : 0;
}
