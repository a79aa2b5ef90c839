/**
 * Personas on disk: implements the port for steps 3 and 4 of the route and for `/persona`. PERSONA.md is authoritative.
 */
import { existsSync } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../core/clock.js';
import { codeOf, isMissing, namesIn, unavailable } from '../core/file-access.js';
import { type ChatId, DEFAULT_PERSONA, type PersonaId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { Persona, PersonaRefusal, Personas } from '../core/persona.js';
import { fileUpdater } from '../core/update-file.js';
import { personaFolder } from './paths.js';
import { freshPersonaFile, inherit, NO_FILE, withModel } from './persona-file.js';
import { faultOf, lookalike, quoted, typedName } from './persona-names.js';
import { personaReader } from './persona-reader.js';
import { isPersonaId, slug } from './slug.js';
import { NEW_MEMORY } from './tiers.js';

export interface PersonasOptions {
  groupsDir: string;
  log: Log;
  clock: Pick<Clock, 'now'>;
  /** How many a chat may have when another is asked for; left out: any number. */
  mostInChat?: number;
  /** The models that a persona's file for another program may name; left out: any. */
  models?: readonly string[];
}

/** The prefix of a PERSONA.md that was moved aside. */
const DELETED = 'PERSONA.deleted-';

type Outcome = { ok: true; persona: Persona } | PersonaRefusal;

export function createPersonas({ groupsDir, log, clock, mostInChat, models }: PersonasOptions): Personas {
  const update = fileUpdater();
  const { list, get, find, library, asInLibrary } = personaReader(groupsDir, log, models ?? null);

  return { list, get, find, ensure, meet, create, remove, setModel };

  async function ensure(chatId: ChatId, personaId: PersonaId): Promise<void> {
    if (personaId === DEFAULT_PERSONA) {
      await writeIfMissing(fileOf(chatId, personaId, 'PERSONA.md'), () => freshPersonaFile(personaId, null));
    }
    await writeIfMissing(fileOf(chatId, personaId, 'MEMORY.md'), () => NEW_MEMORY);
  }

  async function meet(chatId: ChatId, personaId: PersonaId): Promise<boolean> {
    if (personaId === DEFAULT_PERSONA || !isPersonaId(personaId)) return false;
    const there = await namesIn(personaFolder(groupsDir, chatId, personaId));
    if (there.some((name) => name.startsWith(DELETED))) return false;
    const { name } = await asInLibrary(personaId);
    const made = await writeIfMissing(fileOf(chatId, personaId, 'PERSONA.md'), () =>
      freshPersonaFile(name, null),
    );
    if (made) await ensure(chatId, personaId);
    return made;
  }

  async function create(chatId: ChatId, typed: string, from: string | null): Promise<Outcome> {
    const name = typedName(typed);
    const fault = faultOf(name);
    if (fault !== null) return refuse(fault);
    const id = slug(name);
    const source = from === null ? null : slug(from);
    if (source !== null && !(await library()).includes(source)) return notInLibrary(from ?? '');
    const here = await list(chatId);
    if (here.some((persona) => persona.id === id)) return taken(id);
    const alike = lookalike(name, here) ?? lookalike(name, await othersInLibrary([id, source]));
    if (alike !== null) {
      return refuse(`${quoted(name)} reads like the name ${quoted(alike)}; please choose another name.`);
    }
    if (mostInChat !== undefined && here.length >= mostInChat) {
      return refuse(
        `There are ${here.length} personas here, which is as many as a chat may have; /persona delete NAME makes room.`,
      );
    }
    const file = () => freshPersonaFile(name, source);
    if (!(await writeIfMissing(fileOf(chatId, id, 'PERSONA.md'), file))) return taken(id);
    await ensure(chatId, id);
    return accept(chatId, id);
  }

  /** A new persona may be called as the one of the library that it becomes, or takes after. */
  async function othersInLibrary(own: readonly (PersonaId | null)[]): Promise<Persona[]> {
    return Promise.all((await library()).filter((other) => !own.includes(other)).map(asInLibrary));
  }

  async function remove(chatId: ChatId, name: string): Promise<Outcome> {
    const persona = await find(chatId, name);
    if (persona === null) return unknown(name);
    if (persona.id === DEFAULT_PERSONA) {
      return refuse('The persona "default" is always here and cannot be deleted.');
    }
    const path = fileOf(chatId, persona.id, 'PERSONA.md');
    const time = new Date(clock.now()).toISOString().replaceAll(':', '-');
    try {
      await rename(path, fileOf(chatId, persona.id, `${DELETED}${time}.md`));
    } catch (error) {
      // It was deleted meanwhile.
      if (!isMissing(error)) throw unavailable('write', path, error);
    }
    return { ok: true, persona };
  }

  async function setModel(chatId: ChatId, name: string, model: string): Promise<Outcome> {
    const persona = await find(chatId, name);
    if (persona === null) return unknown(name);
    const wanted = typedName(model);
    if (wanted === '') return refuse('Please name the model, too.');

    let editable = false;
    await update(fileOf(chatId, persona.id, 'PERSONA.md'), (bytes) => {
      const before = bytes ?? Buffer.from(freshPersonaFile(persona.id, null));
      const edited = withModel(before, wanted, models ?? null);
      editable = edited !== null;
      return edited;
    });
    if (!editable) {
      return refuse(
        `The front matter of the PERSONA.md of ${quoted(persona.id)} cannot be read, so nothing was changed; please mend it first.`,
      );
    }
    return accept(chatId, persona.id);
  }

  function fileOf(chatId: ChatId, personaId: PersonaId, name: string): string {
    return join(personaFolder(groupsDir, chatId, personaId), name);
  }

  async function accept(chatId: ChatId, personaId: PersonaId): Promise<Outcome> {
    const persona = (await get(chatId, personaId)) ?? inherit(personaId, null, NO_FILE, NO_FILE);
    return { ok: true, persona };
  }

  async function notInLibrary(from: string): Promise<PersonaRefusal> {
    const held = await library();
    const holds = held.length === 0 ? 'It is empty.' : `It holds: ${held.join(', ')}.`;
    return refuse(`There is no persona ${quoted(from)} in the library. ${holds}`);
  }
}

/** False if it exists. It usually does, so the text is only created if it is missing. */
async function writeIfMissing(path: string, text: () => string): Promise<boolean> {
  if (existsSync(path)) return false;
  try {
    await mkdir(dirname(path), { recursive: true });
    const file = await open(path, 'wx').catch(nullIfThere);
    if (file === null) return false;
    try {
      await file.writeFile(text());
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    } finally {
      await file.close();
    }
    return true;
  } catch (error) {
    throw unavailable('write', path, error);
  }
}

function nullIfThere(error: unknown): null {
  if (codeOf(error) === 'EEXIST') return null;
  throw error;
}

function refuse(reason: string): PersonaRefusal {
  return { ok: false, reason };
}

function taken(id: PersonaId): PersonaRefusal {
  return refuse(`There is a persona named "${id}" here already; please choose another name.`);
}

function unknown(name: string): PersonaRefusal {
  return refuse(`There is no persona named ${quoted(name)} here; /persona lists those there are.`);
}
