/** Reads personas from the disk: one, all of a chat, or by name. */
import { join } from 'node:path';
import { namesIn, readIfThere, readOr } from '../core/file-access.js';
import { readUnlessUnchanged } from '../core/file-cache.js';
import { type ChatId, DEFAULT_PERSONA, type PersonaId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import { composedNames, nameOnDisk } from '../core/names-on-disk.js';
import type { Persona } from '../core/persona.js';
import { chatFolder, fromHere, personaFolder } from './paths.js';
import { inherit, NO_FILE, type PersonaFile, readPersonaFile, usable } from './persona-file.js';
import { lookalikesAmong } from './persona-names.js';
import { isPersonaId, slug } from './slug.js';

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
