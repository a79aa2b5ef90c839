/**
 * What lies in a folder that is brought in: regular files alone, found and read without following a link, and never
 * changed. Whatever else stands there is passed over, with a reason.
 */
import { lstat } from 'node:fs/promises';
import { DEEPEST, type Entry, entriesBelow, entryOf, openFile, within } from '../core/beneath.js';
import { sizeInWords } from '../core/bytes.js';

export interface Source {
  /** The folder, links followed. */
  root: string;
  /** What was passed over, by its path in the folder, and why. */
  passedOver: { path: string; why: string }[];
}

/** Files of memory, notes and skills have a small part of that. */
const MOST_BYTES = 20_000_000;
const MOST_FILES = 50_000;
/** What other programs keep, and nobody wants twice. */
export const NOT_ENTERED: ReadonlySet<string> = new Set(['.git', 'node_modules', '__pycache__', '.venv']);

interface Wanted {
  isHiddenTaken: boolean;
  /** Of a path below the folder: somebody else looks after it. */
  leaves(path: string): boolean;
}

const ALL: Wanted = { isHiddenTaken: true, leaves: () => false };

/** All files below a folder of the source, as names from its root, sorted. None if there is no such folder. */
export async function filesBelow(
  source: Source,
  names: readonly string[],
  { isHiddenTaken, leaves }: Wanted = ALL,
): Promise<string[][]> {
  const found: string[][] = [];
  const note = (path: string, why: string) => source.passedOver.push({ path, why });
  const isHidden = (name: string) => !isHiddenTaken && name.startsWith('.') && !NOT_ENTERED.has(name);
  const walk = within(source.root, names, async (folder) => {
    const enter = ({ name, path }: Entry) => !NOT_ENTERED.has(name) && !isHidden(name) && !leaves(path);
    for await (const { kind, path, isClosed, name } of entriesBelow(folder, enter)) {
      if (leaves(path)) continue;
      const full = [...names, ...path.split('/')];
      if (isHidden(name)) {
        note(full.join('/'), 'it is hidden');
        continue;
      }
      if (found.length >= MOST_FILES) {
        note(full.join('/'), `and all after it: there are more than ${MOST_FILES} files`);
        return;
      }
      if (kind === 'file') found.push(full);
      else if (kind === 'other') note(full.join('/'), 'it is a link, or no file');
      else if (isClosed) note(full.join('/'), `it cannot be read, or lies deeper than ${DEEPEST} folders`);
      else if (NOT_ENTERED.has(name)) note(full.join('/'), 'folders of that name are not brought in');
    }
  });
  await walk.catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') note(names.join('/'), reasonOf(error));
  });
  return found.sort((one, other) => (one.join('/') < other.join('/') ? -1 : 1));
}

/** Whether something of that name is there, whatever it is. */
export async function isThere({ root }: Source, names: readonly string[]): Promise<boolean> {
  const name = names.at(-1);
  if (name === undefined) return true;
  return within(root, names.slice(0, -1), (folder) => lstat(entryOf(folder, name))).then(
    () => true,
    () => false,
  );
}

export interface Content {
  bytes: Buffer;
  isExecutable: boolean;
}

/** null: it was passed over. */
export async function contentOf(source: Source, names: readonly string[]): Promise<Content | null> {
  const name = names.at(-1) ?? '';
  const note = (why: string) => {
    source.passedOver.push({ path: names.join('/'), why });
    return null;
  };
  const reading = within(source.root, names.slice(0, -1), async (folder) => {
    const handle = await openFile(folder, name);
    if (handle === null) return note('it is no file');
    try {
      const { size, mode } = await handle.stat();
      if (size > MOST_BYTES) {
        return note(
          `it is too large: ${sizeInWords(size)}, and at most ${sizeInWords(MOST_BYTES)} are taken`,
        );
      }
      return { bytes: await handle.readFile(), isExecutable: (mode & 0o100) !== 0 };
    } finally {
      await handle.close();
    }
  });
  return reading.catch((error: unknown) => note(reasonOf(error)));
}

function reasonOf(error: unknown): string {
  switch (codeOf(error)) {
    case 'ELOOP':
    case 'ENOTDIR':
      return 'it is a link, or no folder';
    case 'EACCES':
    case 'EPERM':
      return 'its rights forbid to read it';
    case 'ENOENT':
      return 'it went away meanwhile';
    default:
      return `it cannot be read (${codeOf(error) ?? 'unknown'})`;
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
