/**
 * Step 3 of the route, pure: who speaks now and next, usually the one persona addressed. With several present there are
 * rounds: everybody addressed speaks once, and the personas they address speak in the next round. Rounds and replies are
 * capped, and a new message from a person ends exchanges that only personas started.
 */
import type { PersonaId } from '../../core/ids.js';
import type { Persona } from '../../core/persona.js';
import type { RoomState } from '../../core/store.js';
import type { GroupRound, StoredMessage } from '../../core/transcript.js';
import { hasSeveral } from '../participants.js';
import type { Routing } from './routing.js';
import { senderOf } from './turn.js';

export interface NextTurn {
  turn: { personaId: PersonaId; batch: number[]; taken: number[]; addressed: PersonaId[] } | null;
  noted: number[];
  exchange: GroupRound | null;
  /** Whether all new messages are from bots; undefined if there was none. */
  forBots: boolean | undefined;
}

export function nextTurn(
  { chat, exchange: before }: RoomState,
  { turn, noted }: Routing,
  personas: Persona[],
): NextTurn {
  const idsOf = (messages: StoredMessage[]) => messages.map(({ id }) => id);
  const maySpeak = (id: PersonaId) => personas.some((each) => each.id === id) && !chat.away?.includes(id);
  const words = noted.filter(({ reaction }) => !reaction);
  const news = [...(turn?.batch ?? []), ...words];
  const isBots = news.every(({ author }) => author.kind === 'person' && author.bot === true);
  const said = { noted: idsOf(noted), forBots: news.length === 0 ? undefined : isBots };
  const taken = idsOf(turn?.batch ?? []);
  const to = turn === null ? [] : [turn.personaId, ...turn.also];
  const [only] = to;
  if (only !== undefined && to.length === 1 && before === null && !hasSeveral(chat, personas)) {
    return { turn: { personaId: only, batch: taken, taken, addressed: [] }, exchange: null, ...said };
  }
  const left = before !== null && words.length > 0 ? interruptRound(before) : before;
  const round = turn === null ? left : openRound(to, turn.batch, before);
  const next = round && nextSpeaker(round, maySpeak);
  if (next === null) return { turn: null, exchange: null, ...said };
  const { speaker, batch, exchange } = next;
  return { turn: { personaId: speaker, batch, taken, addressed: to }, exchange, ...said };
}

/** Opens a round for a message that addresses `to`. Those whom a person addressed before and who wait still speak first. */
export function openRound(
  to: readonly PersonaId[],
  batch: StoredMessage[],
  before: GroupRound | null,
): GroupRound {
  const kept = before?.round === 1 && before.due.length > 0 ? before : null;
  const due = [...new Set([...(kept?.due ?? []), ...to])];
  const personId = senderOf(batch) || before?.personId;
  return {
    said: [...(kept?.said ?? []), ...batch.map(({ id }) => ({ id, by: null }))],
    due,
    next: [],
    round: 1,
    replies: 0,
    party: [...new Set([...(kept?.party ?? []), ...due])],
    ...(personId && { personId }),
  };
}

/** The rest of the round after people said something to nobody in particular. */
export function interruptRound(exchange: GroupRound): GroupRound | null {
  return exchange.round === 1 && exchange.due.length > 0 ? { ...exchange, next: [] } : null;
}

/**
 * Picks the first who is due, may speak and has heard something new since it last spoke, with the messages it answers
 * (ids, oldest first) and the round that remains; null if there is none.
 */
export function nextSpeaker(exchange: GroupRound, maySpeak: (id: PersonaId) => boolean) {
  const { due, said } = exchange;
  for (const [at, speaker] of due.entries()) {
    const last = said.findLastIndex(({ by }) => by === speaker);
    const batch = said.slice(last + 1).map(({ id }) => id);
    if (maySpeak(speaker) && batch.length > 0)
      return { speaker, batch, exchange: { ...exchange, due: due.slice(at + 1) } };
  }
  return null;
}

/** The round after a reply that addressed `to` (other participants); null if nobody is left to speak. */
export function roundAfterReply(
  exchange: GroupRound,
  to: readonly PersonaId[],
  caps: { rounds: number; replies: number },
): GroupRound | null {
  const replies = exchange.replies + 1;
  if (replies >= caps.replies) return null;
  const next = [...new Set([...exchange.next, ...to])];
  const party = [...new Set([...exchange.party, ...to])];
  const { due, round } = exchange;
  if (due.length > 0) return { ...exchange, next, party, replies };
  if (next.length === 0 || round >= caps.rounds) return null;
  return { ...exchange, due: next, next: [], party, replies, round: round + 1 };
}
