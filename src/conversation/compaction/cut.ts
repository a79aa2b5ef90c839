/**
 * Where a window may be cut, pure. A question stays with its answer, a tool call with its result, and nothing that
 * is heard later can come before the cut.
 */
import type { HeardMessage, Position } from '../../core/view.js';

export interface Keep {
  /** `conversation.keep_recent_messages`: how many that were said to the persona or by it stay at most. */
  messages: number;
  /** How many tokens stay at most. */
  tokens: number;
  tokensOf(message: HeardMessage): number;
}

/** The indexes after which a stretch may end, ascending. */
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
    // What is heard from now on has a later place than a reply; behind a question something may still slip in.
    const closed = next
      ? next.position.heardAfter > message.position.heardAfter
      : message.author.kind === 'persona';
    if (closed) found.push(n);
  });
  return found;
}

/** The place of the last message that leaves, so that what stays is within the limits; null when none can leave. */
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
  // The newest exchange stays, whatever its size: a persona that forgets the last question is of no use.
  const inner = possible.filter((n) => n < messages.length - 1);
  const at = inner.find((n) => n >= from - 1) ?? inner.at(-1);
  return at === undefined ? null : (messages[at]?.position ?? null);
}
