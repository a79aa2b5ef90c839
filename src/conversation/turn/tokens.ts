/** Estimates how many tokens messages take in a request when no server has counted them. Computed once per message. */
import { estimateTokens, type ModelMessage } from '../../core/model.js';

/** The order of magnitude that models charge for an image of the size we send. */
const TOKENS_PER_IMAGE = 1_000;
/** Per message. */
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
