/**
 * Between steps 3 and 4, pure: who has the floor in a claimed room, and what of what waits is taken with it. Mostly the
 * one persona whom the messages are for; in company, the next of those who were addressed.
 */
import type { Exchange } from '../core/exchange.js';
import type { PersonaId } from '../core/ids.js';
import type { Persona } from '../core/persona.js';
import type { Claimed } from '../core/store.js';
import { isReaction, type StoredMessage } from '../core/transcript.js';
import type { Admission } from './admit.js';
import { type Floor, interrupted, nextSpeaker, opened } from './exchange.js';
import { isCompany } from './presence.js';

export interface Taking {
  turn: { personaId: PersonaId; batch: number[]; taken: number[]; addressed: PersonaId[] } | null;
  noted: number[];
  exchange: Exchange | null;
  /** Left out where nobody said anything new. */
  forBots?: boolean;
}

export function takeFloor(claimed: Claimed, { turn, noted }: Admission, personas: Persona[]): Taking {
  const { chat } = claimed;
  const idsOf = (messages: StoredMessage[]) => messages.map(({ id }) => id);
  const maySpeak = (id: PersonaId) => personas.some((each) => each.id === id) && !chat.away?.includes(id);
  const words = noted.filter((message) => !isReaction(message));
  const news = [...(turn?.batch ?? []), ...words];
  const said = news.length === 0 ? {} : { forBots: news.every(isBots) };

  if (turn === null) {
    const { exchange } = claimed;
    const left = exchange !== null && words.length > 0 ? interrupted(exchange) : exchange;
    const floor = left === null ? null : nextSpeaker(left, maySpeak);
    return { ...given(floor, [], []), noted: idsOf(noted), ...said };
  }

  const to = [turn.personaId, ...turn.also];
  const taken = idsOf(turn.batch);
  if (to.length === 1 && claimed.exchange === null && !isCompany(chat, personas)) {
    const alone = { personaId: turn.personaId, batch: taken, taken, addressed: [] };
    return { turn: alone, noted: idsOf(noted), exchange: null, ...said };
  }
  const floor = nextSpeaker(opened(to, turn.batch, claimed.exchange), maySpeak);
  return { ...given(floor, taken, to), noted: idsOf(noted), ...said };
}

function given(
  floor: Floor | null,
  taken: number[],
  addressed: PersonaId[],
): Pick<Taking, 'turn' | 'exchange'> {
  if (floor === null) return { turn: null, exchange: null };
  const { speaker, batch, exchange } = floor;
  return { turn: { personaId: speaker, batch, taken, addressed }, exchange };
}

function isBots({ author }: StoredMessage): boolean {
  return author.kind === 'person' && author.bot === true;
}
