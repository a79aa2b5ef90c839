/** Names of personas: as typed, as quoted in a sentence, and those that could be mistaken for each other. Pure. */
import type { PersonaId } from '../core/ids.js';
import { readingsOf } from '../core/likeness.js';
import type { Persona } from '../core/persona.js';
import { isReserved, slug } from './paths.js';

/** In code points; the name appears in sentences, lists and on buttons. */
const MOST_NAME_CHARS = 60;

/** Characters that join the adjacent letter or emoji: joiners, variation selectors, flag tags. */
const JOINS = /\u200c|\u200d|\p{Variation_Selector}|[\u{e0020}-\u{e007f}]/u;

/** On one line, without invisible characters. */
export function typedName(name: string): string {
  return name
    .replace(/[\p{DI}\p{Bidi_C}]/gu, (sign) => (JOINS.test(sign) ? sign : ''))
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}

/** Why no persona may have this name; null if it is valid. */
export function faultOf(name: string): string | null {
  const id = slug(name);
  if (id === '') {
    return `${quoted(name)} has no letter or digit to name a persona by; please choose another name.`;
  }
  if (Array.from(name).length > MOST_NAME_CHARS) {
    return `${quoted(name)} is longer than ${MOST_NAME_CHARS} characters; please choose a shorter name.`;
  }
  return isReserved(id) ? `"${id}" is the name of a folder of mine; please choose another name.` : null;
}

/** For a sentence; a long name is cut. */
export function quoted(name: string): string {
  const characters = Array.from(typedName(name));
  return `"${characters.slice(0, MOST_NAME_CHARS).join('')}${characters.length > MOST_NAME_CHARS ? '…' : ''}"`;
}

/** The name of a persona that could be confused with this one. */
export function lookalike(name: string, personas: readonly Persona[]): string | null {
  const readings = new Set(readingsOf(name));
  const isTaken = (other: string) => readingsOf(other).some((reading) => readings.has(reading));
  return personas.flatMap(namesOf).find(isTaken) ?? null;
}

/** Pairs of personas that could be confused. */
export function lookalikesAmong(personas: readonly Persona[]): [PersonaId, PersonaId][] {
  const first = new Map<string, PersonaId>();
  const pairs = new Map<string, [PersonaId, PersonaId]>();
  for (const persona of personas) {
    for (const reading of namesOf(persona).flatMap(readingsOf)) {
      const other = first.get(reading) ?? persona.id;
      if (other !== persona.id) pairs.set(`${other}/${persona.id}`, [other, persona.id]);
      else first.set(reading, persona.id);
    }
  }
  return [...pairs.values()];
}

export function namesOf({ id, name, aliases }: Persona): string[] {
  return [name, id, ...aliases];
}
