/** Which names a new persona may have, and which personas of a chat can be taken for one another. Pure. */

import { existsSync } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { composedNames, nameOnDisk } from '../core/beneath.js';
import type { Clock } from '../core/clock.js';
import {
  codeOf,
  isMissing,
  namesIn,
  readIfThere,
  readOr,
  readUnlessUnchanged,
  unavailable,
} from '../core/file-access.js';
import { type ChatId, DEFAULT_PERSONA, type PersonaId } from '../core/ids.js';
import { readingsOf } from '../core/likeness.js';
import type { Log } from '../core/log.js';
import type { Persona, PersonaRefusal, Personas } from '../core/persona.js';
import { fileUpdater } from '../core/write-whole.js';
import { chatFolder, fromHere, isPersonaId, isReserved, personaFolder, slug } from './paths.js';
import {
  freshPersonaFile,
  inherit,
  NO_FILE,
  type PersonaFile,
  readPersonaFile,
  usable,
  withModel,
} from './persona-file.js';
import { NEW_MEMORY } from './tiers.js';

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

interface Found {
  /** As it is shown. */
  path: string;
  file: PersonaFile;
  /** With the path before each. */
  faults: string[];
}

const NOTHING: Found = { path: '', file: NO_FILE, faults: [] };

/** `models`: those that a persona may have as its own; null: any. */
export function personaReader(groupsDir: string, log: Log, models: readonly string[] | null) {
  const libraryFolder = join(groupsDir, 'personas');
  const fileAt = readUnlessUnchanged<PersonaFile | null>(null, async (path) => {
    const bytes = await readIfThere(path);
    return bytes && readPersonaFile(bytes.toString('utf8'));
  });
  /** Folders that may contain a persona, by the folder of their chat. */
  const idsIn = readUnlessUnchanged<PersonaId[]>([], async (folder) =>
    composedNames(await namesIn(folder))
      .filter((id) => id !== DEFAULT_PERSONA && isPersonaId(id))
      .sort(),
  );

  /** What was logged of a file last. */
  const told = new Map<string, string>();
  /** What the personas of a chat were called when they were last compared. */
  const compared = new Map<ChatId, string>();

  return { list, get, find, library, asInLibrary };

  async function list(chatId: ChatId): Promise<Persona[]> {
    const found: Persona[] = [];
    for (const id of [DEFAULT_PERSONA, ...(await listed(chatFolder(groupsDir, chatId), idsIn))]) {
      const persona = await get(chatId, id);
      if (persona !== null) found.push(persona);
    }
    warnOfLookalikes(chatId, found);
    return found;
  }

  /** Whoever makes the files by hand may call two personas alike; people and models will mistake them. */
  function warnOfLookalikes(chatId: ChatId, personas: Persona[]): void {
    if (personas.length < 2) return void compared.delete(chatId);
    const called = JSON.stringify(personas.map(({ id, name, aliases }) => [id, name, ...aliases]));
    if (compared.get(chatId) === called) return;
    compared.set(chatId, called);
    for (const pair of lookalikesAmong(personas)) {
      const message = 'two personas of a chat can be taken for one another; give one another name or aliases';
      log.warn({ chat: chatId, personas: pair }, message);
    }
  }

  async function get(chatId: ChatId, personaId: PersonaId): Promise<Persona | null> {
    if (!isPersonaId(personaId)) return null;
    const own = await read(join(personaFolder(groupsDir, chatId, personaId), 'PERSONA.md'));
    if (own === null && personaId !== DEFAULT_PERSONA) return null;
    return inLibrary(personaId, own ?? NOTHING);
  }

  async function find(chatId: ChatId, name: string): Promise<Persona | null> {
    const wanted = slug(name);
    if (wanted === '') return null;
    const byId = await get(chatId, wanted);
    if (byId !== null) return byId;
    const all = await list(chatId);
    return (
      all.find((persona) => slug(persona.name) === wanted) ??
      all.find((persona) => persona.aliases.some((alias) => slug(alias) === wanted)) ??
      null
    );
  }

  /** A persona that has no file in the chat. */
  async function asInLibrary(personaId: PersonaId): Promise<Persona> {
    return inLibrary(personaId, NOTHING);
  }

  async function inLibrary(personaId: PersonaId, own: Found): Promise<Persona> {
    const from = own.file.from ? slug(own.file.from) : null;
    const shared = await libraryFile(from ?? personaId);
    const missing =
      from !== null && shared === null
        ? [`${own.path}: "from" names ${JSON.stringify(from)}, which is not in the library`]
        : [];
    const faults = [...own.faults, ...missing, ...(shared?.faults ?? [])];
    return inherit(personaId, from, own.file, shared?.file ?? NO_FILE, faults);
  }

  /** The ids of the personas in the library, sorted. */
  async function library(): Promise<PersonaId[]> {
    const files = composedNames(await listed(libraryFolder, namesIn)).filter((file) => file.endsWith('.md'));
    return files
      .map((file) => file.slice(0, -'.md'.length))
      .filter(isPersonaId)
      .sort();
  }

  async function libraryFile(personaId: PersonaId): Promise<Found | null> {
    if (!isPersonaId(personaId)) return null;
    return read(join(libraryFolder, nameOnDisk(libraryFolder, `${personaId}.md`)));
  }

  /** null if the file does not exist. An unreadable one counts as empty, and a warning is logged. */
  async function read(path: string): Promise<Found | null> {
    const message = 'a persona file cannot be read; it counts as empty';
    const found = await readOr(NO_FILE, path, fileAt, log, message);
    if (found === null) return null;
    const file = usable(found, models);
    warnOf(path, file.faults);
    const shown = fromHere(path);
    return { path: shown, file, faults: file.faults.map((fault) => `${shown}: ${fault}`) };
  }

  /** Each file is read for every message, so what is wrong in it is logged when it is something else. */
  function warnOf(path: string, faults: readonly string[]): void {
    const now = faults.join('\n');
    if ((told.get(path) ?? '') === now) return;
    if (now === '') return void told.delete(path);
    told.set(path, now);
    log.warn({ path, faults }, 'unreadable parts of a persona file are ignored');
  }

  function listed(folder: string, read: (folder: string) => Promise<string[]>): Promise<string[]> {
    return readOr([], folder, read, log, 'personas cannot be listed, for their folder cannot be read');
  }
}

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
