/**
 * Step 3 of the route, pure: who speaks now and next, usually the one persona addressed. With several present there are rounds:
 * everybody addressed speaks once, and the personas they address speak in the next round. Rounds and replies are capped, and a new
 * message from a person ends exchanges that only personas started.
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
  /** Absent if there was no new message. */
  forBots?: boolean;
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
  const said = news.length === 0 ? {} : { forBots: news.every(isBots) };

  if (turn === null) {
    const left = before !== null && words.length > 0 ? interruptRound(before) : before;
    const floor = left === null ? null : nextSpeaker(left, maySpeak);
    return { ...turnFor(floor, [], []), noted: idsOf(noted), ...said };
  }

  const to = [turn.personaId, ...turn.also];
  const taken = idsOf(turn.batch);
  if (to.length === 1 && before === null && !hasSeveral(chat, personas)) {
    const alone = { personaId: turn.personaId, batch: taken, taken, addressed: [] };
    return { turn: alone, noted: idsOf(noted), exchange: null, ...said };
  }
  const floor = nextSpeaker(openRound(to, turn.batch, before), maySpeak);
  return { ...turnFor(floor, taken, to), noted: idsOf(noted), ...said };
}

function turnFor(
  floor: NextSpeaker | null,
  taken: number[],
  addressed: PersonaId[],
): Omit<NextTurn, 'noted' | 'forBots'> {
  if (floor === null) return { turn: null, exchange: null };
  const { speaker, batch, exchange } = floor;
  return { turn: { personaId: speaker, batch, taken, addressed }, exchange };
}

function isBots({ author }: StoredMessage): boolean {
  return author.kind === 'person' && author.bot === true;
}

export interface Caps {
  /** Maximum number of rounds, and of replies in all, after one human message. */
  rounds: number;
  replies: number;
}

/** The next speaker, the messages it answers (ids, oldest first), and the round that remains afterwards. */
export interface NextSpeaker {
  speaker: PersonaId;
  batch: number[];
  exchange: GroupRound;
}

/**
 * Opens a round for a message that addresses `to`. From the previous round, only personas addressed by a person are kept; they
 * speak first and hear what was said meanwhile.
 */
export function openRound(
  to: readonly PersonaId[],
  batch: StoredMessage[],
  before: GroupRound | null,
): GroupRound {
  const waiting = before?.round === 1 ? before.due : [];
  const earlier = waiting.length > 0 ? (before?.said ?? []) : [];
  const due = [...new Set([...waiting, ...to])];
  const personId = senderOf(batch) || before?.personId;
  return {
    said: [...earlier, ...batch.map(({ id }) => ({ id, by: null }))],
    due,
    next: [],
    round: 1,
    replies: 0,
    party: [...new Set([...(waiting.length > 0 ? (before?.party ?? []) : []), ...due])],
    ...(personId && { personId }),
  };
}

/** The rest of the round after people said something to nobody in particular. */
export function interruptRound(exchange: GroupRound): GroupRound | null {
  return exchange.round === 1 && exchange.due.length > 0 ? { ...exchange, next: [] } : null;
}

/** Picks the first who is due, may speak and has heard something new since it last spoke; null if there is none. */
export function nextSpeaker(exchange: GroupRound, maySpeak: (id: PersonaId) => boolean): NextSpeaker | null {
  const { due } = exchange;
  const at = due.findIndex((id) => maySpeak(id) && newTo(id, exchange).length > 0);
  const speaker = due[at];
  if (speaker === undefined) return null;
  return { speaker, batch: newTo(speaker, exchange), exchange: { ...exchange, due: due.slice(at + 1) } };
}

/** The round after a reply that addressed `to` (other participants); null if nobody is left to speak. */
export function roundAfterReply(
  exchange: GroupRound,
  to: readonly PersonaId[],
  caps: Caps,
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

/** The messages since it last spoke. */
function newTo(speaker: PersonaId, { said }: GroupRound): number[] {
  const last = said.findLastIndex(({ by }) => by === speaker);
  return said.slice(last + 1).map(({ id }) => id);
}
