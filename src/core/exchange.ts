/**
 * What follows a human message in a chat of several personas: everybody whom it addresses speaks in turn, and so may
 * those whom they address, in further passes, until nobody is addressed or the caps are reached.
 */
import type { PersonaId } from './ids.js';

export interface Exchange {
  /** What was said in it, oldest first: message ids, and which persona's words they are; null for people's. */
  said: { id: number; by: PersonaId | null }[];
  /** Who is still to speak in this pass, in order. */
  due: PersonaId[];
  /** Whom a persona has addressed in this pass: they speak in the next. */
  next: PersonaId[];
  /** Of the passes, from 1 on. */
  round: number;
  /** How many times a persona has spoken. */
  replies: number;
  /** Everybody who was addressed in it: they hear what is said, though they may not be present. */
  party: PersonaId[];
}
