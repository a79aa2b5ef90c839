/** Which names a new persona may have, and which personas of a chat can be taken for one another. Pure. */
import type { PersonaId } from '../core/ids.js';
import { readingsOf } from '../core/likeness.js';
import type { Persona } from '../core/persona.js';
import { isReserved, slug } from './slug.js';

/** In code points; the name stands in sentences, lists and on buttons. */
const MOST_NAME_CHARS = 60;

type Named = Pick<Persona, 'id' | 'name' | 'aliases'>;

/** What belongs to the letter or emoji beside it: joiners, variants, tags of flags. */
const JOINS = /\u200c|\u200d|\p{Variation_Selector}|[\u{e0020}-\u{e007f}]/u;

/** A name as somebody typed it, on one line, without what nobody sees. */
export function typedName(name: string): string {
  return name
    .replace(/[\p{DI}\p{Bidi_C}]/gu, (sign) => (JOINS.test(sign) ? sign : ''))
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}

/** Why nobody may be called so, whoever else is here; null: it is a name. */
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

/** The name of one of them that this one can be taken for; null: it is clearly another. */
export function lookalike(name: string, personas: readonly Named[]): string | null {
  const readings = new Set(readingsOf(name));
  const isTaken = (other: string) => readingsOf(other).some((reading) => readings.has(reading));
  return personas.flatMap(namesOf).find(isTaken) ?? null;
}

/** Personas of a chat of which one can be taken for another, in pairs. */
export function lookalikesAmong(personas: readonly Named[]): [PersonaId, PersonaId][] {
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

function namesOf({ id, name, aliases }: Named): string[] {
  return [name, id, ...aliases];
}

/** A name in a sentence; a long one is cut. */
export function quoted(name: string): string {
  const characters = Array.from(typedName(name));
  return `"${characters.slice(0, MOST_NAME_CHARS).join('')}${characters.length > MOST_NAME_CHARS ? '…' : ''}"`;
}
