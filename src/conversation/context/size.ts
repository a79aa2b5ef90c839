/**
 * How full a persona's window is, for deciding whether to compact. Pure and cheap: a turn knows these numbers anyway.
 * The server's own token count decides; without one, our estimate does.
 */
import { estimateTokens } from '../../core/model.js';
import type { Measured } from '../../core/transcript.js';
import type { RequestSize } from '../services.js';

export interface WindowLimits {
  /** The tokens available for a request: the model's window minus what is reserved for the answer. */
  tokens: number;
  /** `conversation.compact_after_messages`. */
  messages: number;
}

export type Pressure =
  | 'none'
  /** Time to flush and compact in the background. */
  | 'soon'
  /** The next request would not fit. */
  | 'now';

/** How full a window is when background compaction starts. */
const BEGIN_AT = 0.75;
/**
 * A server that counts less than this share of our estimate miscounts: no alphabet takes so few. One that cut the request
 * is noticed by the model client, and its count does not come here.
 */
const LEAST_CREDIBLE = 0.25;

/** How many real tokens one estimated token stands for. */
export function tokensPerEstimated(measured: Measured | null): number {
  if (!measured || measured.estimated <= 0) return 1;
  const ratio = measured.counted / measured.estimated;
  return ratio < LEAST_CREDIBLE ? 1 : ratio;
}

/** Corrects an estimate by the last request that the server counted. */
export function expectedTokens(estimated: number, measured: Measured | null): number {
  return estimated * tokensPerEstimated(measured);
}

export function pressureOf(sizes: RequestSize, measured: Measured | null, limits: WindowLimits): Pressure {
  const tokens = expectedTokens(sizes.estimated, measured);
  if (sizes.overfull || tokens > limits.tokens) return 'now';
  if (tokens >= BEGIN_AT * limits.tokens || sizes.messages >= limits.messages) return 'soon';
  return 'none';
}

/** How many characters of a text fit into so many tokens, approximately; its whole length if all of it fits. */
export function charsWithin(words: string, tokens: number): number {
  if (words.length <= tokens || estimateTokens(words) <= tokens) return words.length;
  let chars = tokens;
  while (estimateTokens(words.slice(0, Math.floor(chars * 1.25))) <= tokens) chars = Math.floor(chars * 1.25);
  return chars;
}
