/** Lorebooks on disk: beside a persona, in a chat, and for all chats. Edits apply to the next answer; each problem is logged once. */
import { stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { markedEncoding } from '../core/cut.js';
import { describe } from '../core/errors.js';
import { namesIn, readIfThere } from '../core/file-access.js';
import { readUnlessUnchanged } from '../core/file-cache.js';
import { dataOf, LARGE } from '../core/file-text.js';
import type { ChatId, PersonaId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import { type Lorebook, type Lorebooks, readLorebook } from '../core/lorebook.js';
import { chatFolder, fromHere, isPersonaId, onDisk, personaFolder } from './paths.js';

const FOLDER = 'lorebooks';
const OWN = ['lorebook.yaml', 'lorebook.json'];
const MOST_BYTES = 16_000_000;
/** Of files: a chat's books are scanned in each of its turns. */
const CACHE_BYTES = 48_000_000;
const MOST_BOOKS = 100;

export function createLorebooks(groupsDir: string, log: Log): Lorebooks {
  const told = new Map<string, string>();
  const bookAt = readUnlessUnchanged<Lorebook | null>(null, load, Date.now, CACHE_BYTES);
  const listed = readUnlessUnchanged<string[]>([], async (folder) =>
    (await namesIn(folder)).filter((name) => /^[^.].*\.(?:ya?ml|json)$/i.test(name)).sort(),
  );

  async function load(path: string): Promise<Lorebook | null> {
    const { size } = await stat(path);
    if (size > MOST_BYTES) return fault(path, `it is larger than ${MOST_BYTES / 1_000_000} MB`);
    const bytes = await readIfThere(path);
    if (bytes === null) return null;
    let data: unknown;
    try {
      data = dataIn(bytes, extname(path).toLowerCase() === '.json');
    } catch (error) {
      return fault(path, describe(error));
    }
    const read = readLorebook(data, nameOf(path));
    if (read === null) return fault(path, 'it has no "entries"');
    told.delete(path);
    return read.book;
  }

  function fault(path: string, why: string): null {
    if (told.get(path) !== why)
      log.warn({ path: fromHere(path), why }, 'a lorebook cannot be read; it is left out');
    told.set(path, why);
    return null;
  }

  async function read(path: string): Promise<Lorebook | null> {
    return bookAt(path).catch((error: unknown) => fault(path, describe(error)));
  }

  async function inFolder(folder: string): Promise<Lorebook[]> {
    const names = await listed(folder).catch((error: unknown) => fault(folder, describe(error)) ?? []);
    const books = await Promise.all(names.slice(0, MOST_BOOKS).map((name) => read(join(folder, name))));
    return books.filter((book) => book !== null);
  }

  async function first(folder: string): Promise<Lorebook | null> {
    for (const name of OWN) {
      const book = await read(join(folder, name));
      if (book !== null) return book;
    }
    return null;
  }

  async function ofPersona(chatId: ChatId, { id, from }: { id: PersonaId; from: string | null }) {
    if (!isPersonaId(id)) return null;
    const own = await first(personaFolder(groupsDir, chatId, id));
    const shared = from ?? id;
    if (own !== null || !isPersonaId(shared)) return own;
    return first(onDisk(join(groupsDir, 'personas'), shared));
  }

  return {
    async booksFor(chatId, persona) {
      const [own, ofChat, ofAll] = await Promise.all([
        ofPersona(chatId, persona),
        inFolder(join(chatFolder(groupsDir, chatId), FOLDER)),
        inFolder(join(groupsDir, FOLDER)),
      ]);
      return { own, others: [...ofChat, ...ofAll] };
    },
  };
}

/** The file's, or that of the persona beside which it lies. */
function nameOf(path: string): string {
  const isOwn = OWN.includes(basename(path)) && basename(dirname(path)) !== FOLDER;
  return isOwn ? basename(dirname(path)) : basename(path, extname(path));
}

/** YAML may be JSON, too, which is read a hundred times as fast. */
function dataIn(bytes: Buffer, isJson: boolean): unknown {
  const text = bytes.toString('utf8', markedEncoding(bytes) === 'utf-8' ? 3 : 0);
  if (isJson) return JSON.parse(text);
  try {
    if (text.trimStart().startsWith('{')) return JSON.parse(text);
  } catch {
    // Flow style, which is YAML alone.
  }
  return dataOf(text, LARGE);
}
