/**
 * An exchange: what follows a human message in a chat of several personas. Everybody it addresses speaks in turn, then
 * those they address, in further rounds, until nobody is addressed or the caps are reached.
 */
import type { ChatId, PersonaId } from './ids.js';

export interface Exchange {
  /** What was said in it, oldest first: message ids and the persona who spoke, null for people. */
  said: { id: number; by: PersonaId | null }[];
  /** Who is still to speak in this round, in order. */
  due: PersonaId[];
  /** Whom personas have addressed in this round; they speak in the next. */
  next: PersonaId[];
  /** Number of this round, from 1. */
  round: number;
  /** How often a persona has spoken. */
  replies: number;
  /** Everybody who was addressed in it: they hear what is said even if they are not present. */
  party: PersonaId[];
  /** The person whose words it follows; left out if there is none. */
  personId?: ChatId;
}
