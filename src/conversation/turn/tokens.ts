/** About how many tokens messages and tools take in a request, where no server counted. Made once for each. */
import { estimateTokens, type ModelMessage } from '../../core/model.js';

/** What models charge for a picture of the size we send is of this order. */
const TOKENS_PER_IMAGE = 1_000;
/** Around each message. */
const OVERHEAD = 4;

export function tokensOf(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, message) => sum + tokensOfOne(message), 0);
}

function tokensOfOne(message: ModelMessage): number {
  const calls =
    message.role === 'assistant' ? message.calls.map((call) => call.name + call.arguments).join() : '';
  const images = message.role === 'user' ? (message.images?.length ?? 0) * TOKENS_PER_IMAGE : 0;
  return estimateTokens(message.content) + estimateTokens(calls) + images + OVERHEAD;
}
