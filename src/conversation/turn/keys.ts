/** Step 5 of the route: the ids that a turn gives to its calls, and the name of its prompt cache. */
import { createHash } from 'node:crypto';
import type { PersonaId, RoomId } from '../../core/ids.js';

/**
 * Servers number calls in their own ways, some from zero in every answer. Our ids are unique, stable when a turn is
 * resumed, and in the one form that every server accepts: nine letters and digits.
 */
export function callId(seed: string, round: number, n: number): string {
  const digest = createHash('sha1').update(`${seed} ${round} ${n}`).digest('hex');
  return BigInt(`0x${digest}`).toString(36).slice(0, 9);
}

/**
 * The same for all requests of a persona in a room, flushes too, or for all of a task; and no name that a server should
 * know.
 */
export function cacheKeyOf(room: RoomId, whose: PersonaId | string): string {
  return createHash('sha256').update(`${room} ${whose}`).digest('hex').slice(0, 32);
}
