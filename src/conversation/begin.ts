/**
 * Between steps 3 and 4: a turn begins. Who has the floor answers what waits for it; what is for nobody is noted in the
 * same transaction.
 */
import type { Channel } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import type { Exchange } from '../core/exchange.js';
import type { RoomId } from '../core/ids.js';
import type { Persona } from '../core/persona.js';
import type { Claimed, StoredTurn, TurnStore } from '../core/store.js';
import type { StoredMessage } from '../core/transcript.js';
import { takeFloor } from './floor.js';
import type { Opening } from './opening.js';
import { presentIn } from './presence.js';

/** A turn as far as it is known when it begins or goes on. */
export interface Begun {
  claimed: Claimed;
  channel: Channel;
  /** Of the chat, as read when the turn began or went on. */
  personas: Persona[];
  turn: StoredTurn;
  batch: StoredMessage[];
  /** What goes on between personas behind it; null for nothing. */
  exchange: Exchange | null;
}

export interface BeginParts {
  store: Pick<TurnStore, 'beginTurn' | 'release'>;
  clock: Clock;
  newId(): string;
  /** Somebody heard something in a room: it can be recalled soon. */
  onHeard(room: RoomId): void;
}

/** null when nothing is to be answered, or the claim was lost. */
export async function begin(
  { store, clock, newId, onHeard }: BeginParts,
  claimed: Claimed,
  channel: Channel,
  { admission, personas, usage }: Pick<Opening, 'admission' | 'personas' | 'usage'>,
): Promise<Begun | null> {
  const now = clock.now();
  const taking = takeFloor(claimed, admission, personas);
  const turn = taking.turn && { id: newId(), ...taking.turn };
  const batch = await store.beginTurn({
    ...taking,
    ...{ claim: claimed.claim, turn, now },
    ...(usage && { spent: { personaId: turn?.personaId ?? claimed.chat.activePersona, usage } }),
    hearers: presentIn(claimed.chat, personas),
  });
  if (batch === null) return null;
  if (turn === null) {
    await store.release(claimed.claim);
    onHeard(claimed.claim.room);
    return null;
  }
  const { id, personaId } = turn;
  return {
    ...{ claimed, channel, personas, batch, exchange: taking.exchange },
    turn: { id, personaId, startedAt: now, attempts: 0, crashes: 0, steps: [] },
  };
}
