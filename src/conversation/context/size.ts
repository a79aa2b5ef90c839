/**
 * How full a persona's window is, for deciding whether to compact. Pure, and next to nothing for each message: a
 * turn knows these numbers anyway. The server's own count decides; our estimate fills in where there is none.
 */
import type { Measured } from '../../core/view.js';

/** What a request comes to, as a turn found it. */
export interface Sizes {
  /** Our estimate of the whole request, tokens. */
  estimated: number;
  /** How many messages said to the persona or by it are in the window, with those of this turn. */
  messages: number;
  /** There are more messages than a request is made from. */
  overfull: boolean;
}

export interface WindowLimits {
  /** What a request may hold: the model's window without what is kept for the answer. */
  tokens: number;
  /** `conversation.compact_after_messages`. */
  messages: number;
}

export type Pressure =
  | 'none'
  /** Time to flush and compact, beside the conversation. */
  | 'soon'
  /** The next request would not fit. */
  | 'now';

/** So full is a window when compaction begins in the background. */
const BEGIN_AT = 0.75;
/** A server that counts less than this part of our estimate counts wrongly, or cuts what it is sent. */
const LEAST_CREDIBLE = 0.25;

/** How many real tokens one of our estimated tokens is. */
export function tokensPerEstimated(measured: Measured | null): number {
  if (!measured || measured.estimated <= 0) return 1;
  const ratio = measured.counted / measured.estimated;
  return ratio < LEAST_CREDIBLE ? 1 : ratio;
}

/** What a request that we estimate will really come to, going by the last one that was counted. */
export function expectedTokens(estimated: number, measured: Measured | null): number {
  return estimated * tokensPerEstimated(measured);
}

export function pressureOf(sizes: Sizes, measured: Measured | null, limits: WindowLimits): Pressure {
  const tokens = expectedTokens(sizes.estimated, measured);
  if (sizes.overfull || tokens > limits.tokens) return 'now';
  if (tokens >= BEGIN_AT * limits.tokens || sizes.messages >= limits.messages) return 'soon';
  return 'none';
}
