/** Personas on disk. PERSONA.md is authoritative: reading uses the valid parts, and logs each problem once. */
import { existsSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Exclusive, locks } from '../core/concurrency.js';
import { cutAt } from '../core/cut.js';
import { codeOf, namesIn, readIfThere, unavailable } from '../core/file-access.js';
import { readOr, readUnlessUnchanged } from '../core/file-cache.js';
import { composedNames } from '../core/file-names.js';
import { type ChatId, DEFAULT_PERSONA, type PersonaId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { Persona, Personas } from '../core/persona.js';
import { chatFolder, fromHere, isPersonaId, onDisk, personaFolder, slug } from './paths.js';
import { DELETED, lookalikesAmong, type MakePersona, namesOf, personaChanges } from './persona-changes.js';
import { freshPersonaFile, NO_FILE, type PersonaFile, readPersonaFile } from './persona-file.js';
import { NEW_MEMORY } from './tiers.js';

interface PersonasOptions {
  groupsDir: string;
  log: Log;
  clock: { now(): number };
  /** Limit for creating another. */
  mostInChat?: number | undefined;
  /** Those that a file for another program may name; null: any. */
  models?: readonly string[] | null | undefined;
  exclusive?: Exclusive;
}

/** Beside PERSONA.md, or in the folder of the library. */
export const PORTRAIT = 'portrait.png';

export function createPersonas({
  groupsDir,
  log,
  clock,
  mostInChat,
  models = null,
  exclusive = locks(),
}: PersonasOptions): Personas {
  const reader = personaReader(groupsDir, log, models);
  const fileOf = (chatId: ChatId, personaId: PersonaId, name: string) =>
    join(personaFolder(groupsDir, chatId, personaId), name);
  const make: MakePersona = (chatId, id, name, from, character) =>
    writeIfMissing(fileOf(chatId, id, 'PERSONA.md'), () => freshPersonaFile(name, from, character));

  async function ensure(chatId: ChatId, personaId: PersonaId): Promise<void> {
    if (personaId === DEFAULT_PERSONA) await make(chatId, personaId, personaId, null);
    await writeIfMissing(fileOf(chatId, personaId, 'MEMORY.md'), () => NEW_MEMORY);
  }

  return {
    list: reader.list,
    get: reader.get,
    find: reader.find,
    ensure,
    async meet(chatId, personaId) {
      if (personaId === DEFAULT_PERSONA || !isPersonaId(personaId)) return false;
      const there = await namesIn(personaFolder(groupsDir, chatId, personaId));
      if (there.some((name) => name.startsWith(DELETED))) return false;
      const isMade = await make(chatId, personaId, (await reader.asInLibrary(personaId)).name, null);
      if (isMade) await ensure(chatId, personaId);
      return isMade;
    },
    ...personaChanges(
      reader,
      fileOf,
      async (chatId, id, ...how) => {
        const isMade = await make(chatId, id, ...how);
        if (isMade) await ensure(chatId, id);
        return isMade;
      },
      { now: () => clock.now(), mostInChat, models, exclusive },
    ),
  };
}

/** `models`: those that a file for another program may name; null: any. */
export function personaReader(groupsDir: string, log: Log, models: readonly string[] | null) {
  const libraryFolder = join(groupsDir, 'personas');
  /** Logged last: by path, and by chat. Files are read for every message. */
  const faultsOf = new Map<string, string>();
  const compared = new Map<ChatId, string>();
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
    if (found.length > 1) warnOfLookalikes(chatId, found);
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
    const exact = await get(chatId, wanted);
    if (exact !== null) return exact;
    const personas = await list(chatId);
    const isAlias = (alias: string) => slug(alias) === wanted;
    return (
      personas.find((each) => isAlias(each.name)) ??
      personas.find((each) => each.aliases.some(isAlias)) ??
      null
    );
  }

  /** The library gives absent values, and the name where ours only repeats the id. */
  async function withLibrary(id: PersonaId, path: string, own: PersonaFile): Promise<Persona> {
    const from = own.from ? slug(own.from) : null;
    const inLibrary = from ?? id;
    const found = isPersonaId(inLibrary) ? await read(onDisk(libraryFolder, `${inLibrary}.md`)) : null;
    const shared = found ?? NO_FILE;
    const missing = `${fromHere(path)}: "from" names ${JSON.stringify(from)}, which is not in the library`;
    const isMissing = from !== null && found === null;
    const faults = [...own.faults, ...(isMissing ? [missing] : []), ...shared.faults];
    return {
      id,
      name: (own.name === id && from === null ? null : own.name) ?? shared.name ?? id,
      model: own.model ?? shared.model,
      temperature: own.temperature ?? shared.temperature,
      avatar: own.avatar ?? shared.avatar,
      voice: own.voice ?? shared.voice,
      aliases: own.aliases ?? shared.aliases ?? [],
      tools: own.tools ?? shared.tools,
      from,
      character: own.character || shared.character,
      parts: {
        personality: own.parts.personality || shared.parts.personality,
        scenario: own.parts.scenario || shared.parts.scenario,
        instructions: own.parts.instructions || shared.parts.instructions,
        examples: own.parts.examples || shared.parts.examples,
        reminder: own.parts.reminder || shared.parts.reminder,
        note: own.parts.note || shared.parts.note,
      },
      ...cardOf(own, shared),
      guard: own.guard ?? shared.guard,
      greeting: own.greeting ?? shared.greeting,
      greetings: own.greetings.length > 0 ? own.greetings : shared.greetings,
      groupGreetings: own.groupGreetings.length > 0 ? own.groupGreetings : shared.groupGreetings,
      talkativeness: own.talkativeness ?? shared.talkativeness,
      portrait:
        [path && join(dirname(path), PORTRAIT), onDisk(libraryFolder, join(inLibrary, PORTRAIT))].find(
          existsSync,
        ) ?? null,
      ...(faults.length > 0 && { faults }),
    };
  }

  async function library(): Promise<PersonaId[]> {
    const files = composedNames(await listed(libraryFolder, namesIn)).filter((file) => file.endsWith('.md'));
    const ids = files.map((file) => file.slice(0, -'.md'.length));
    return ids.filter(isPersonaId).sort();
  }

  /** null: the file does not exist; an unreadable one is empty. */
  async function read(path: string): Promise<PersonaFile | null> {
    const file = await readOr(NO_FILE, path, fileAt, log, 'persona file cannot be read; it counts as empty');
    if (file === null) return null;
    const isOthers = file.isForeign && file.model !== null && models !== null && !models.includes(file.model);
    const faults = isOthers ? [...file.faults, unlistedModel(file.model ?? '')] : file.faults;
    warnOfFaults(path, faults);
    const model = isOthers ? null : file.model;
    return { ...file, model, faults: faults.map((fault) => `${fromHere(path)}: ${fault}`) };
  }

  function warnOfFaults(path: string, faults: readonly string[]): void {
    const now = faults.join('\n');
    if ((faultsOf.get(path) ?? '') === now) return;
    faultsOf.set(path, now);
    if (now === '') faultsOf.delete(path);
    else log.warn({ path, faults }, 'unreadable parts of a persona file are ignored');
  }

  function warnOfLookalikes(chatId: ChatId, personas: Persona[]): void {
    const names = JSON.stringify(personas.map(namesOf));
    if (compared.get(chatId) === names) return;
    compared.set(chatId, names);
    for (const pair of lookalikesAmong(personas)) {
      const message = 'two personas of a chat can be taken for one another; give one another name or aliases';
      log.warn({ chat: chatId, personas: pair }, message);
    }
  }

  const asInLibrary = (id: PersonaId) => withLibrary(id, '', NO_FILE);
  return { list, get, find, library, asInLibrary };
}

/** The trust of the file that names the card: a chat's own file makes no library card trusted. */
function cardOf(own: PersonaFile, shared: PersonaFile) {
  const { card, trusted } = own.card === null && shared.card !== null ? shared : own;
  return { card, trusted };
}

function unlistedModel(model: string): string {
  return (
    `"model" names ${JSON.stringify(cutAt(model, 80))}, which is not among model.choices, so the gateway’s is used; ` +
    'add it there, or any_model: true here'
  );
}

/**
 * False if it exists. It usually does, so the text is only built if it is missing. Opened and written without a pause
 * between, so that nothing that an operator saves at that moment is written over.
 */
async function writeIfMissing(path: string, text: () => string): Promise<boolean> {
  if (existsSync(path)) return false;
  try {
    await mkdir(dirname(path), { recursive: true });
    writeFileSync(path, text(), { flag: 'wx' });
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw unavailable('write', path, error);
  }
}
