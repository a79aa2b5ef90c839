/**
 * Who speaks when several personas do, for steps 3 and 6. Pure. A round is one pass in which everybody who is addressed
 * speaks once; whom they address speaks in the next. Both are capped, and a person's word ends what only personas have
 * asked of each other.
 */
import type { Exchange } from '../core/exchange.js';
import type { PersonaId } from '../core/ids.js';
import type { StoredMessage } from '../core/transcript.js';

export interface Caps {
  /** Passes, and replies in all, that follow one human message. */
  rounds: number;
  replies: number;
}

/** The next to speak, what it answers (message ids, oldest first), and what goes on behind it. */
export interface Floor {
  speaker: PersonaId;
  batch: number[];
  exchange: Exchange;
}

/**
 * Somebody addressed `to`. Of what goes on, only those whom a person has addressed before still speak, and before these:
 * they hear what was said meanwhile.
 */
export function opened(
  to: readonly PersonaId[],
  batch: readonly StoredMessage[],
  before: Exchange | null,
): Exchange {
  const waiting = before?.round === 1 ? before.due : [];
  const earlier = waiting.length > 0 ? (before?.said ?? []) : [];
  const due = [...new Set([...waiting, ...to])];
  return {
    said: [...earlier, ...batch.map(({ id }) => ({ id, by: null }))],
    ...{ due, next: [], round: 1, replies: 0 },
    party: [...new Set([...(waiting.length > 0 ? (before?.party ?? []) : []), ...due])],
  };
}

/** What is left of it when people talked, but to nobody. */
export function interrupted(exchange: Exchange): Exchange | null {
  return exchange.round === 1 && exchange.due.length > 0 ? { ...exchange, next: [] } : null;
}

/**
 * Gives the floor to the first of those who are due and may speak; null when nobody is. Whoever has heard nothing since
 * it spoke has said what it had to say.
 */
export function nextSpeaker(exchange: Exchange, maySpeak: (id: PersonaId) => boolean): Floor | null {
  const { due } = exchange;
  const at = due.findIndex((id) => maySpeak(id) && newTo(id, exchange).length > 0);
  const speaker = due[at];
  if (speaker === undefined) return null;
  return { speaker, batch: newTo(speaker, exchange), exchange: { ...exchange, due: due.slice(at + 1) } };
}

/** After a reply that turned to `to` (others of the company). null when nobody is to speak any more. */
export function spoken(exchange: Exchange, to: readonly PersonaId[], caps: Caps): Exchange | null {
  const replies = exchange.replies + 1;
  if (replies >= caps.replies) return null;
  const next = [...new Set([...exchange.next, ...to])];
  const party = [...new Set([...exchange.party, ...to])];
  const { due, round } = exchange;
  if (due.length > 0) return { ...exchange, next, party, replies };
  if (next.length === 0 || round >= caps.rounds) return null;
  return { ...exchange, due: next, next: [], party, replies, round: round + 1 };
}

/** What was said since it spoke last. */
function newTo(speaker: PersonaId, { said }: Exchange): number[] {
  const last = said.findLastIndex(({ by }) => by === speaker);
  return said.slice(last + 1).map(({ id }) => id);
}
