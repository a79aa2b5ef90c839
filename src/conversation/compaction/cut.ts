/**
 * Where a window may be cut. Pure. A question stays with its answer, a tool call with its result, and no message heard
 * later may get a position before the cut.
 */
import type { HeardMessage, Position } from '../../core/view.js';

export interface Keep {
  /** `conversation.keep_recent_messages`: the most addressed messages that stay. */
  messages: number;
  /** The most tokens that stay. */
  tokens: number;
  tokensOf(message: HeardMessage): number;
}

/** The indexes after which a span may end, ascending. */
export function boundaries(messages: HeardMessage[]): number[] {
  const lastOfTurn = new Map<string, number>();
  messages.forEach(({ addressed, turnId }, n) => {
    if (addressed && turnId !== null) lastOfTurn.set(turnId, n);
  });
  const found: number[] = [];
  let openUntil = -1;
  messages.forEach((message, n) => {
    if (message.addressed && message.turnId !== null) {
      openUntil = Math.max(openUntil, lastOfTurn.get(message.turnId) ?? n);
    }
    if (openUntil > n) return;
    const next = messages[n + 1];
    // Messages heard later get positions after a reply; after an unanswered question one may still be inserted.
    const closed = next
      ? next.position.heardAfter > message.position.heardAfter
      : message.author.kind === 'persona';
    if (closed) found.push(n);
  });
  return found;
}

/** The position of the last message that leaves, so that the rest is within the limits; null when none can leave. */
export function cutPlace(messages: HeardMessage[], keep: Keep): Position | null {
  let kept = 0;
  let tokens = 0;
  let from = messages.length;
  while (from > 0) {
    const message = messages[from - 1];
    if (!message) break;
    tokens += keep.tokensOf(message);
    if (message.addressed) kept++;
    if (kept > keep.messages || tokens > keep.tokens) break;
    from--;
  }
  if (from === 0) return null;
  const possible = boundaries(messages);
  // The newest exchange always stays, whatever its size: a persona must not forget the last question.
  const inner = possible.filter((n) => n < messages.length - 1);
  const at = inner.find((n) => n >= from - 1) ?? inner.at(-1);
  return at === undefined ? null : (messages[at]?.position ?? null);
}
