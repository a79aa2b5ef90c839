/**
 * Personas on disk. PERSONA.md is authoritative: reading uses the valid parts, and logs each problem once.
 */
import { existsSync } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { composedNames, nameOnDisk } from '../core/beneath.js';
import { codeOf, isMissing, namesIn, readIfThere, unavailable } from '../core/file-access.js';
import { readOr, readUnlessUnchanged } from '../core/file-cache.js';
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

/** `models`: those that a persona may have as its own; null: any. */
export function personaReader(groupsDir: string, log: Log, models: readonly string[] | null) {
  const libraryFolder = join(groupsDir, 'personas');
  const warnings = createWarnings(log);
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
  const listed = (folder: string, read: (folder: string) => Promise<string[]>) =>
    readOr([], folder, read, log, 'personas not listed: their folder cannot be read');

  async function list(chatId: ChatId): Promise<Persona[]> {
    const found: Persona[] = [];
    for (const id of [DEFAULT_PERSONA, ...(await listed(chatFolder(groupsDir, chatId), idsIn))]) {
      const persona = await get(chatId, id);
      if (persona !== null) found.push(persona);
    }
    warnings.ofLookalikes(chatId, found);
    return found;
  }

  async function get(chatId: ChatId, personaId: PersonaId): Promise<Persona | null> {
    if (!isPersonaId(personaId)) return null;
    const path = join(personaFolder(groupsDir, chatId, personaId), 'PERSONA.md');
    const own = await read(path);
    if (own === null && personaId !== DEFAULT_PERSONA) return null;
    return withLibrary(personaId, path, own ?? NO_FILE);
  }

  async function find(chatId: ChatId, name: string): Promise<Persona | null> {
    const wanted = slug(name);
    if (wanted === '') return null;
    return (await get(chatId, wanted)) ?? calledSo(await list(chatId), wanted);
  }

  async function withLibrary(personaId: PersonaId, path: string, own: PersonaFile): Promise<Persona> {
    const from = own.from ? slug(own.from) : null;
    const id = from ?? personaId;
    const shared = isPersonaId(id)
      ? await read(join(libraryFolder, nameOnDisk(libraryFolder, `${id}.md`)))
      : null;
    const missing =
      from !== null && shared === null
        ? [`${fromHere(path)}: "from" names ${JSON.stringify(from)}, which is not in the library`]
        : [];
    const faults = [...own.faults, ...missing, ...(shared?.faults ?? [])];
    return inherit(personaId, from, own, shared ?? NO_FILE, faults);
  }

  /** The ids of the library's personas, sorted. */
  async function library(): Promise<PersonaId[]> {
    const files = composedNames(await listed(libraryFolder, namesIn)).filter((file) => file.endsWith('.md'));
    const ids = files.map((file) => file.slice(0, -'.md'.length));
    return ids.filter(isPersonaId).sort();
  }

  /** Prefixes each fault with the path. null: the file does not exist; an unreadable one is empty. */
  async function read(path: string): Promise<PersonaFile | null> {
    const found = await readOr(NO_FILE, path, fileAt, log, 'persona file cannot be read; it counts as empty');
    if (found === null) return null;
    const file = usable(found, models);
    warnings.ofFaults(path, file.faults);
    const shown = fromHere(path);
    return { ...file, faults: file.faults.map((fault) => `${shown}: ${fault}`) };
  }

  const asInLibrary = (id: PersonaId) => withLibrary(id, '', NO_FILE);
  return { list, get, find, library, asInLibrary };
}

function calledSo(personas: Persona[], wanted: string): Persona | null {
  const byAlias = ({ aliases }: Persona) => aliases.some((alias) => slug(alias) === wanted);
  return personas.find(({ name }) => slug(name) === wanted) ?? personas.find(byAlias) ?? null;
}

/** Files are read for every message; a problem is logged only when it has changed. */
function createWarnings(log: Log) {
  const faultsOf = new Map<string, string>();
  /** A chat's persona names at the last comparison. */
  const compared = new Map<ChatId, string>();

  return {
    ofFaults(path: string, faults: readonly string[]): void {
      const now = faults.join('\n');
      if ((faultsOf.get(path) ?? '') === now) return;
      faultsOf.set(path, now);
      if (now === '') faultsOf.delete(path);
      else log.warn({ path, faults }, 'unreadable parts of a persona file are ignored');
    },
    ofLookalikes(chatId: ChatId, personas: Persona[]): void {
      const names = JSON.stringify(personas.map(namesOf));
      if (personas.length < 2 || compared.get(chatId) === names) return;
      compared.set(chatId, names);
      for (const pair of lookalikesAmong(personas)) {
        const message =
          'two personas of a chat can be taken for one another; give one another name or aliases';
        log.warn({ chat: chatId, personas: pair }, message);
      }
    },
  };
}

/** The prefix of a PERSONA.md that was moved aside. */
const DELETED = 'PERSONA.deleted-';

type Outcome = { ok: true; persona: Persona } | PersonaRefusal;

export function createPersonas({
  groupsDir,
  log,
  clock,
  mostInChat = Number.POSITIVE_INFINITY,
  models = null,
}: {
  groupsDir: string;
  log: Log;
  clock: { now(): number };
  /** Limit on a chat's personas, for creating another. */
  mostInChat?: number | undefined;
  /** Models that a persona's file for another program may name; null: any. */
  models?: readonly string[] | null | undefined;
}): Personas {
  const update = fileUpdater();
  const { list, get, find, library, asInLibrary } = personaReader(groupsDir, log, models);
  const fileOf = (chatId: ChatId, personaId: PersonaId, name: string) =>
    join(personaFolder(groupsDir, chatId, personaId), name);
  const makeFile = (chatId: ChatId, id: PersonaId, name: string, from: string | null) =>
    writeIfMissing(fileOf(chatId, id, 'PERSONA.md'), () => freshPersonaFile(name, from));

  async function ensure(chatId: ChatId, personaId: PersonaId): Promise<void> {
    if (personaId === DEFAULT_PERSONA) await makeFile(chatId, personaId, personaId, null);
    await writeIfMissing(fileOf(chatId, personaId, 'MEMORY.md'), () => NEW_MEMORY);
  }

  async function meet(chatId: ChatId, personaId: PersonaId): Promise<boolean> {
    if (personaId === DEFAULT_PERSONA || !isPersonaId(personaId)) return false;
    const there = await namesIn(personaFolder(groupsDir, chatId, personaId));
    if (there.some((name) => name.startsWith(DELETED))) return false;
    const { name } = await asInLibrary(personaId);
    const isMade = await makeFile(chatId, personaId, name, null);
    if (isMade) await ensure(chatId, personaId);
    return isMade;
  }

  async function create(chatId: ChatId, typed: string, from: string | null): Promise<Outcome> {
    const name = typedName(typed);
    const id = slug(name);
    const source = from === null ? null : slug(from);
    const here = await list(chatId);
    const held = await library();
    // It may share the name of the library persona that it becomes, or is based on.
    const others = () => Promise.all(held.filter((each) => each !== id && each !== source).map(asInLibrary));
    const fault =
      faultOf(name) ??
      (await faultBeside(name, from, here, held, others)) ??
      tooMany(here.length, mostInChat);
    if (fault !== null) return refuse(fault);
    if (!(await makeFile(chatId, id, name, source))) return refuse(taken(id));
    await ensure(chatId, id);
    return accept(chatId, id);
  }

  async function remove(chatId: ChatId, name: string): Promise<Outcome> {
    const persona = await find(chatId, name);
    if (persona === null) return unknown(name);
    if (persona.id === DEFAULT_PERSONA) {
      return refuse('The persona "default" is always here and cannot be deleted.');
    }
    const path = fileOf(chatId, persona.id, 'PERSONA.md');
    const time = new Date(clock.now()).toISOString().replaceAll(':', '-');
    await rename(path, fileOf(chatId, persona.id, `${DELETED}${time}.md`)).catch((error) => {
      // If missing, it was deleted meanwhile.
      if (!isMissing(error)) throw unavailable('write', path, error);
    });
    return { ok: true, persona };
  }

  async function setModel(chatId: ChatId, name: string, model: string): Promise<Outcome> {
    const persona = await find(chatId, name);
    if (persona === null) return unknown(name);
    const wanted = typedName(model);
    if (wanted === '') return refuse('Please name the model, too.');
    let isEditable = false;
    await update(fileOf(chatId, persona.id, 'PERSONA.md'), (bytes) => {
      const before = bytes ?? Buffer.from(freshPersonaFile(persona.id, null));
      const edited = withModel(before, wanted, models);
      isEditable = edited !== null;
      return edited;
    });
    if (isEditable) return accept(chatId, persona.id);
    return refuse(
      `The front matter of the PERSONA.md of ${quoted(persona.id)} cannot be read, so nothing was changed; please mend it first.`,
    );
  }

  async function accept(chatId: ChatId, personaId: PersonaId): Promise<Outcome> {
    const persona = (await get(chatId, personaId)) ?? inherit(personaId, null, NO_FILE, NO_FILE);
    return { ok: true, persona };
  }

  return { list, get, find, ensure, meet, create, remove, setModel };
}

/** False if it exists. It usually does, so the text is only built if it is missing. */
async function writeIfMissing(path: string, text: () => string): Promise<boolean> {
  if (existsSync(path)) return false;
  try {
    await mkdir(dirname(path), { recursive: true });
    const file = await open(path, 'wx');
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
    if (codeOf(error) === 'EEXIST') return false;
    throw unavailable('write', path, error);
  }
}

function refuse(reason: string): PersonaRefusal {
  return { ok: false, reason };
}

function taken(id: PersonaId): string {
  return `There is a persona named "${id}" here already; please choose another name.`;
}

function tooMany(count: number, most: number): string | null {
  if (count < most) return null;
  return `There are ${count} personas here, which is as many as a chat may have; /persona delete NAME makes room.`;
}

/** Why this name clashes with a persona in the chat or the library; null if it does not. */
async function faultBeside(
  name: string,
  from: string | null,
  here: Persona[],
  held: PersonaId[],
  others: () => Promise<Persona[]>,
): Promise<string | null> {
  if (from !== null && !held.includes(slug(from))) {
    const holds = held.length === 0 ? 'It is empty.' : `It holds: ${held.join(', ')}.`;
    return `There is no persona ${quoted(from)} in the library. ${holds}`;
  }
  const id = slug(name);
  if (here.some((persona) => persona.id === id)) return taken(id);
  const alike = lookalike(name, here) ?? lookalike(name, await others());
  if (alike === null) return null;
  return `${quoted(name)} reads like the name ${quoted(alike)}; please choose another name.`;
}

function unknown(name: string): PersonaRefusal {
  return refuse(`There is no persona named ${quoted(name)} here; /persona lists those there are.`);
}

/** In code points; the name appears in sentences, lists and on buttons. */
const MOST_NAME_CHARS = 60;

/** Characters that join the adjacent letter or emoji: joiners, variation selectors, flag tags. */
const JOINS = /\u200c|\u200d|\p{Variation_Selector}|[\u{e0020}-\u{e007f}]/u;

/** A typed name on one line, without invisible characters. */
function typedName(name: string): string {
  return name
    .replace(/[\p{DI}\p{Bidi_C}]/gu, (sign) => (JOINS.test(sign) ? sign : ''))
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}

/** Why no persona may have this name; null if it is valid. */
function faultOf(name: string): string | null {
  const id = slug(name);
  if (id === '') {
    return `${quoted(name)} has no letter or digit to name a persona by; please choose another name.`;
  }
  if (Array.from(name).length > MOST_NAME_CHARS) {
    return `${quoted(name)} is longer than ${MOST_NAME_CHARS} characters; please choose a shorter name.`;
  }
  return isReserved(id) ? `"${id}" is the name of a folder of mine; please choose another name.` : null;
}

/** A name in a sentence; a long one is cut. */
function quoted(name: string): string {
  const characters = Array.from(typedName(name));
  return `"${characters.slice(0, MOST_NAME_CHARS).join('')}${characters.length > MOST_NAME_CHARS ? '…' : ''}"`;
}

/** Name of a persona that could be confused with this one; null if there is none. */
function lookalike(name: string, personas: readonly Persona[]): string | null {
  const readings = new Set(readingsOf(name));
  const isTaken = (other: string) => readingsOf(other).some((reading) => readings.has(reading));
  return personas.flatMap(namesOf).find(isTaken) ?? null;
}

/** Pairs of a chat's personas that could be confused. */
function lookalikesAmong(personas: readonly Persona[]): [PersonaId, PersonaId][] {
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

function namesOf({ id, name, aliases }: Persona): string[] {
  return [name, id, ...aliases];
}
