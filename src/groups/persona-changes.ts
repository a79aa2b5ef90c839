/** Creates and deletes personas, and sets their models, as people ask by command. And the names they may have. */

import { rename } from 'node:fs/promises';
import type { Exclusive } from '../core/concurrency.js';
import { isMissing, unavailable } from '../core/file-access.js';
import { type ChatId, DEFAULT_PERSONA, type PersonaId } from '../core/ids.js';
import { readingsOf } from '../core/likeness.js';
import type { Persona, PersonaAnswer, Personas } from '../core/persona.js';
import { fileUpdater } from '../core/write-whole.js';
import { isReserved, slug } from './paths.js';
import { freshPersonaFile, withModel } from './persona-file.js';

/** The prefix of a PERSONA.md that was moved aside. */
export const DELETED = 'PERSONA.deleted-';

interface PersonaReader {
  list: Personas['list'];
  get: Personas['get'];
  find: Personas['find'];
  library(): Promise<PersonaId[]>;
  asInLibrary(id: PersonaId): Promise<Persona>;
}

interface ChangeRules {
  now(): number;
  mostInChat: number | undefined;
  models: readonly string[] | null;
  exclusive: Exclusive;
}

/** False if the persona exists. */
export type MakePersona = (
  chatId: ChatId,
  id: PersonaId,
  name: string,
  from: string | null,
  character?: string,
) => Promise<boolean>;

export function personaChanges(
  { list, get, find, library, asInLibrary }: PersonaReader,
  fileOf: (chatId: ChatId, personaId: PersonaId, name: string) => string,
  make: MakePersona,
  rules: ChangeRules,
): { [Verb in 'create' | 'remove' | 'setModel']: Personas[Verb] } {
  const update = fileUpdater(rules.exclusive);

  /** Why this name clashes with a persona of the chat or the library; null if it does not. */
  async function clash(chatId: ChatId, name: string, from: string | null): Promise<string | null> {
    const [here, held] = [await list(chatId), await library()];
    const [id, source] = [slug(name), from === null ? null : slug(from)];
    if (source !== null && !held.includes(source)) {
      const holds = held.length === 0 ? 'It is empty.' : `It holds: ${held.join(', ')}.`;
      return `There is no persona ${quoted(from ?? '')} in the library. ${holds}`;
    }
    if (here.some((persona) => persona.id === id)) return taken(id);
    // It may share the name of the library persona that it becomes, or is based on.
    const others = held.filter((each) => each !== id && each !== source);
    const alike = lookalike(name, here) ?? lookalike(name, await Promise.all(others.map(asInLibrary)));
    if (alike !== null)
      return `${quoted(name)} reads like the name ${quoted(alike)}; please choose another name.`;
    if (here.length < (rules.mostInChat ?? Number.POSITIVE_INFINITY)) return null;
    return `There are ${here.length} personas here, which is as many as a chat may have; /persona delete NAME makes room.`;
  }

  async function accept(chatId: ChatId, id: PersonaId) {
    const persona = (await get(chatId, id)) ?? (await asInLibrary(id));
    return { ok: true as const, persona };
  }

  return {
    async create(chatId, typed, from, character) {
      const name = cleanName(typed);
      const fault = nameFault(name) ?? (await clash(chatId, name, from));
      if (fault !== null) return refuse(fault);
      const id = slug(name);
      if (!(await make(chatId, id, name, from === null ? null : slug(from), character))) {
        return refuse(taken(id));
      }
      return accept(chatId, id);
    },

    async remove(chatId, name) {
      const persona = await find(chatId, name);
      if (persona === null) return unknown(name);
      if (persona.id === DEFAULT_PERSONA) {
        return refuse('The persona "default" is always here and cannot be deleted.');
      }
      const path = fileOf(chatId, persona.id, 'PERSONA.md');
      const time = new Date(rules.now()).toISOString().replaceAll(':', '-');
      const aside = () => rename(path, fileOf(chatId, persona.id, `${DELETED}${time}.md`));
      await rules.exclusive(path, aside).catch((error) => {
        // If missing, it was deleted meanwhile.
        if (!isMissing(error)) throw unavailable('write', path, error);
      });
      return { ok: true, persona };
    },

    async setModel(chatId, name, model) {
      const persona = await find(chatId, name);
      if (persona === null) return unknown(name);
      const wanted = cleanName(model);
      if (wanted === '') return refuse('Please name the model, too.');
      let edited: Buffer | null = null;
      await update(fileOf(chatId, persona.id, 'PERSONA.md'), (bytes) => {
        edited = withModel(bytes ?? Buffer.from(freshPersonaFile(persona.id, null)), wanted, rules.models);
        return edited;
      });
      if (edited !== null) return accept(chatId, persona.id);
      return refuse(
        `The front matter of the PERSONA.md of ${quoted(persona.id)} cannot be read, so nothing was changed; please mend it first.`,
      );
    },
  };
}

function refuse(reason: string): PersonaAnswer {
  return { ok: false, reason };
}

function taken(id: PersonaId): string {
  return `There is a persona named "${id}" here already; please choose another name.`;
}

function unknown(name: string): PersonaAnswer {
  return refuse(`There is no persona named ${quoted(name)} here; /persona lists those there are.`);
}

/** In code points; the name appears in sentences, lists and on buttons. */
const MOST_NAME_CHARS = 60;

/** Characters that join the adjacent letter or emoji: joiners, variation selectors, flag tags. */
const JOINS = /\u200c|\u200d|\p{Variation_Selector}|[\u{e0020}-\u{e007f}]/u;

/** On one line, without invisible characters. */
export function cleanName(name: string): string {
  return name
    .replace(/[\p{DI}\p{Bidi_C}]/gu, (sign) => (JOINS.test(sign) ? sign : ''))
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}

/** Why no persona may have this name; null if it is valid. */
export function nameFault(name: string): string | null {
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
function quoted(name: string): string {
  const characters = Array.from(cleanName(name));
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
