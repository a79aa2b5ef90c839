/** The pictures of personas (`portrait.png`), read anew when they change. Anybody's card may have brought one. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { LRUCache } from 'lru-cache';
import { CARD_LIMITS } from '../core/cards.js';
import { sizeInWords } from '../core/cut.js';
import { describe } from '../core/errors.js';
import { isBelow, readIfThere, realOrNull, statIfThere } from '../core/file-access.js';
import { readUnlessUnchanged } from '../core/file-cache.js';
import type { Log } from '../core/log.js';
import type { Portrait, Portraits } from '../core/persona.js';
import { fromHere, isPersonaId, onDisk } from './paths.js';
import { PORTRAIT } from './personas.js';

interface PortraitsOptions {
  groupsDir: string;
  /** The face, or the reason why there is none. */
  toFace(picture: Buffer): Promise<Buffer | string>;
  log: Log;
}

/** Of the files; their faces are smaller. */
const CACHE_BYTES = 4 * CARD_LIMITS.portraitBytes;
const MOST_TOLD = 1_000;

export function createPortraits({ groupsDir, toFace, log }: PortraitsOptions): Portraits {
  /** The last fault of a file, by path. */
  const told = new LRUCache<string, string>({ max: MOST_TOLD });
  const read = readUnlessUnchanged<Portrait | string | null>(null, load, Date.now, CACHE_BYTES);

  async function load(path: string): Promise<Portrait | string | null> {
    const [file, root] = await Promise.all([realOrNull(path), realOrNull(groupsDir)]);
    if (file === null || root === null) return null;
    if (!isBelow(file, root)) return 'it is a link to a file outside of the folder groups';
    const size = statIfThere(file)?.size ?? 0;
    if (size > CARD_LIMITS.portraitBytes) {
      return `it has ${sizeInWords(size)}, and may have ${sizeInWords(CARD_LIMITS.portraitBytes)}`;
    }
    const picture = await readIfThere(file);
    if (picture === null) return null;
    const bytes = await toFace(picture);
    if (typeof bytes === 'string') return bytes;
    return { hash: createHash('sha256').update(picture).digest('hex'), bytes, path: file };
  }

  async function at(path: string): Promise<Portrait | null> {
    const found = await read(path).catch((error: unknown) => describe(error));
    if (typeof found !== 'string') {
      told.delete(path);
      return found;
    }
    if (told.get(path) !== found) {
      log.warn({ path: fromHere(path), reason: found }, 'portrait cannot be shown; the persona has no face');
      told.set(path, found);
    }
    return null;
  }

  return {
    of: async ({ avatar, portrait }) => (portrait === null || isAddress(avatar) ? null : at(portrait)),
    async shared(personaId) {
      if (!isPersonaId(personaId)) return null;
      return at(onDisk(join(groupsDir, 'personas'), join(personaId, PORTRAIT)));
    },
  };
}

function isAddress(avatar: string | null): boolean {
  return avatar !== null && /^https?:\/\//i.test(avatar.trim());
}
