/** A folder to import: only regular files, without following links, never changed. And the plan for it. */
import { lstat } from 'node:fs/promises';
import { DEEPEST, entriesBelow, entryOf, type FolderEntry, openFile, within } from '../core/beneath.js';
import { sizeInWords } from '../core/cut.js';
import { codeOf } from '../core/file-access.js';

export type ImportPlace = 'groups' | 'workspace' | 'skills';

export interface ImportStep {
  /** Path from the source's root, as names; null: created from `text` alone, if nothing exists there. */
  from: readonly string[] | null;
  /** Below `groups/`, `data/workspace` or `data/skills`. */
  place: ImportPlace;
  to: readonly string[];
  /** Never under its own name, even if that is free. */
  isAlwaysBeside?: true;
  /** Skipped if it is not text. */
  isTextAlone?: true;
  /** Text to put before the content. */
  text?: string;
  /** Other files of the source to append, each below a heading of its own. */
  more?: { from: readonly string[]; heading: string }[];
  /** Without its front matter, which has no meaning here. */
  isBodyAlone?: true;
  /** The next step: a sentence for the operator. */
  hint?: string;
}

export interface ImportPlan {
  steps: ImportStep[];
  /** The recognised layouts, for people: `an OpenClaw workspace`. */
  found: string[];
}

/** Valid names for chats and personas in `groups/`, and the existing channels. */
export interface ImportNames {
  isChatId(name: string): boolean;
  isPersonaId(name: string): boolean;
  /** The id of a persona of that name; empty if the name yields none. */
  idOf(name: string): string;
  channels: readonly string[];
}

export interface ImportSource {
  /** The folder, links resolved. */
  root: string;
  /** Skipped files, by their paths in the folder, with the reason. */
  passedOver: { path: string; why: string }[];
}

export function passOver(source: ImportSource, at: string | readonly string[], why = NO_PLACE): null {
  source.passedOver.push({ path: typeof at === 'string' ? at : at.join('/'), why });
  return null;
}

const NO_PLACE = 'nothing here has a place for it';

/** Far more than files of memory, notes and skills have. */
const MOST_BYTES = 20_000_000;
const MOST_FILES = 50_000;
/** Folders that other programs maintain themselves. */
export const NOT_ENTERED: ReadonlySet<string> = new Set(['.git', 'node_modules', '__pycache__', '.venv']);

/** As names from the source's root, sorted; empty without the folder. `leaves`: another plan covers this path. */
export async function filesBelow(
  source: ImportSource,
  names: readonly string[],
  isHiddenTaken = true,
  leaves: (path: string) => boolean = () => false,
): Promise<string[][]> {
  const found: string[][] = [];
  const isHidden = (name: string) => !isHiddenTaken && name.startsWith('.') && !NOT_ENTERED.has(name);
  const walk = within(source.root, names, async (folder) => {
    const enter = ({ name, path }: FolderEntry) => !NOT_ENTERED.has(name) && !isHidden(name) && !leaves(path);
    for await (const { kind, path, isClosed, name } of entriesBelow(folder, enter)) {
      if (leaves(path)) continue;
      const full = [...names, ...path.split('/')];
      if (isHidden(name)) {
        passOver(source, full, 'it is hidden');
        continue;
      }
      if (found.length >= MOST_FILES) {
        passOver(source, full, `and all after it: there are more than ${MOST_FILES} files`);
        return;
      }
      if (kind === 'file') found.push(full);
      else if (kind === 'other') passOver(source, full, 'it is a link, or no file');
      else if (isClosed) passOver(source, full, `it cannot be read, or lies deeper than ${DEEPEST} folders`);
      else if (NOT_ENTERED.has(name)) passOver(source, full, 'folders of that name are not brought in');
    }
  });
  await walk.catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') passOver(source, names, reasonOf(error));
  });
  return found.sort((one, other) => (one.join('/') < other.join('/') ? -1 : 1));
}

export async function isThere({ root }: ImportSource, names: readonly string[]): Promise<boolean> {
  const name = names.at(-1);
  if (name === undefined) return true;
  return within(root, names.slice(0, -1), (folder) => lstat(entryOf(folder, name))).then(
    () => true,
    () => false,
  );
}

export interface FileContent {
  bytes: Buffer;
  isExecutable: boolean;
}

/** null if it was skipped. */
export async function contentOf(source: ImportSource, names: readonly string[]): Promise<FileContent | null> {
  const name = names.at(-1) ?? '';
  const note = (why: string) => passOver(source, names, why);
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

const FAILURES: Record<string, string> = {
  ELOOP: 'it is a link, or no folder',
  ENOTDIR: 'it is a link, or no folder',
  EACCES: 'its rights forbid to read it',
  EPERM: 'its rights forbid to read it',
  ENOENT: 'it went away meanwhile',
};

function reasonOf(error: unknown): string {
  const code = codeOf(error);
  return FAILURES[code] ?? `it cannot be read (${code || 'unknown'})`;
}

const MOST_ENTRIES = 100_000;
/** A folder with more files, none of them imported, is reported as one. */
const MOST_IN_FOLDER = 200;

/** `taken`: paths from the source's root. */
export async function passOverRest(source: ImportSource, taken: ReadonlySet<string>): Promise<void> {
  const told = new Set(source.passedOver.map(({ path }) => path));
  const rest: string[] = [];
  const folders = new Set<string>();
  const filled = new Set<string>();
  let looked = 0;
  await within(source.root, [], async (root) => {
    const enter = ({ name, path }: FolderEntry) => !NOT_ENTERED.has(name) && !told.has(path);
    for await (const { kind, name, path, isClosed } of entriesBelow(root, enter)) {
      filled.add(folderOf(path));
      if (++looked > MOST_ENTRIES) {
        passOver(source, path, `and all after it: there are more than ${MOST_ENTRIES} files`);
        return;
      }
      if (told.has(path) || taken.has(path)) continue;
      if (kind !== 'folder') rest.push(path);
      else if (NOT_ENTERED.has(name)) passOver(source, path, 'folders of that name are not brought in');
      else if (isClosed) passOver(source, path, 'it cannot be read, or lies too deep');
      else folders.add(path);
    }
  });
  for (const path of folders) if (!filled.has(path)) passOver(source, path, 'it is empty');
  const touched = new Set([...taken, ...told].flatMap(foldersAround));
  const inFolders = new Map<string, string[]>();
  for (const path of rest.sort()) {
    const folder = foldersAround(path).find((each) => !touched.has(each)) ?? '';
    inFolders.set(folder, [...(inFolders.get(folder) ?? []), path]);
  }
  for (const [folder, files] of inFolders) {
    const isOne = folder !== '' && files.length > MOST_IN_FOLDER;
    if (isOne) passOver(source, folder, `${files.length} files: ${reasonFor(folder)}`);
    else for (const path of files) passOver(source, path, reasonFor(path));
  }
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/** Outermost first. */
function foldersAround(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, n) => names.slice(0, n + 1).join('/'));
}

/** Files of OpenClaw and MicroClaw that have no place here. */
const REASONS: readonly [RegExp, string][] = [
  [
    /^workspace-[^/]+(?:\/|$)/,
    'it is the workspace of another agent: bring that folder in by itself, if you want it in the place of this one',
  ],
  [/(?:^|\/)cron(?:\/|$)/, 'schedules are not brought in: ask a persona for each anew (docs/schedules.md)'],
  [
    /(?:^|\/)sessions(?:\/|\.json|$)|\.jsonl$/,
    'records of sessions are not brought in: what counts of them is in memory',
  ],
  [/^agents(?:\/|$)/, 'settings and state of an agent are not brought in (docs/agents.md)'],
  [/\.(?:db|sqlite3?)(?:-wal|-shm)?$/, 'databases are not brought in'],
  [
    /(?:^|\/)(?:credentials|identity|devices|openclaw\.json|clawdbot\.json|config\.ya?ml|mcp\.json|\.env)/,
    'settings and keys are not brought in: they belong into config.yaml',
  ],
  [/(?:^|\/)\.[^/]/, 'it is hidden'],
];

function reasonFor(path: string): string {
  return REASONS.find(([pattern]) => pattern.test(path))?.[1] ?? NO_PLACE;
}
