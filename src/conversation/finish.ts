/**
 * Step 6 of the route: how a turn ends, as one transaction. Its messages count as answered, the reply becomes transcript
 * and deliveries, whom it turns to has the floor next, the room is free. What is delivered is decided here and nowhere
 * else.
 */
import type { Clock } from '../core/clock.js';
import type { ChatId, PersonaId, RoomId } from '../core/ids.js';
import type { Given } from '../core/keeping.js';
import type { Metrics } from '../core/log.js';
import type { Usage } from '../core/model.js';
import type { TurnStore } from '../core/store.js';
import type { Measured } from '../core/view.js';
import { calledOf, turnedTo } from './addressing.js';
import type { Begun } from './begin.js';
import { type Caps, spoken } from './exchange.js';
import { faceOf, presentIn } from './presence.js';
import { replyOf } from './reply.js';

export interface Ending {
  outcome: 'answered' | 'failed' | 'parked';
  /** What the persona said; for a turn that failed, the one plain sentence. */
  text: string;
  speaker: string;
  lateByHours: number | null;
  usage: Usage | null;
  /** The size of its last request, and what of memory it was given; where there was an answer. */
  measured: Measured | null;
  given: Given | null;
}

export interface FinishParts {
  store: Pick<TurnStore, 'finishTurn'>;
  caps: Caps;
  deliver: { wake(chatId: ChatId): void };
  onHeard(room: RoomId): void;
  metrics: Metrics;
  clock: Clock;
}

/** `next`: somebody else of the room has the floor now. `lost`: somebody else has ended the turn, and nothing was done. */
export async function finish(
  parts: FinishParts,
  begun: Begun,
  ending: Ending,
): Promise<'done' | 'next' | 'lost'> {
  const { turn, batch, channel, personas } = begun;
  const { claim, chat } = begun.claimed;
  const { personaId } = turn;
  const answered = ending.outcome === 'answered';
  const addressed = answered ? companyCalled(begun, ending.text) : [];
  const exchange = begun.exchange && spoken(begun.exchange, addressed, parts.caps);
  const said = {
    ...{ turnId: turn.id, personaId, speaker: ending.speaker, batch, kind: chat.kind },
    face: faceOf(chat, personas, personaId),
    lateByHours: answered ? ending.lateByHours : null,
  };
  const outcome = await parts.store.finishTurn({
    ...{ claim, turnId: turn.id, outcome: ending.outcome, addressed, exchange },
    reply: answered ? ending.text : null,
    hearers: [...new Set([...presentIn(chat, personas), ...(begun.exchange?.party ?? [])])],
    deliveries: replyOf(channel, said, ending.text),
    ...{ usage: ending.usage, measured: ending.measured, given: answered ? ending.given : null },
    now: parts.clock.now(),
  });
  if (outcome === 'lost') return 'lost';
  parts.deliver.wake(chat.id);
  parts.onHeard(claim.room);
  parts.metrics.count('turns_total', { outcome: ending.outcome });
  return exchange === null ? 'done' : 'next';
}

/** Whom of the others present a reply turns to. */
function companyCalled({ claimed, personas, turn }: Begun, reply: string): PersonaId[] {
  const others = presentIn(claimed.chat, personas).filter((id) => id !== turn.personaId);
  if (others.length === 0) return [];
  return turnedTo(reply, personas.filter(({ id }) => others.includes(id)).map(calledOf));
}
