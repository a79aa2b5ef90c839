/** The thread that searches for `glob` and `grep`: a model's pattern may take forever. Built as a separate file. */
import { join } from 'node:path';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import picomatch from 'picomatch';
import { entriesBelow, type FolderEntry, type OpenFolder, openFile, within } from '../../core/beneath.js';
import { cutAt } from '../../core/cut.js';
import { codeOf } from '../../core/file-access.js';
import { composed } from '../../core/file-names.js';
import { isNoMessages, readUpTo } from './paths.js';
import { linesOf, MOST_BYTES, textOf } from './read-write.js';

export interface SearchOrder {
  /** Where to search: one folder, or a working folder with others mapped into it. */
  folders: SearchFolder[];
  /** Real paths of folders and files to skip. */
  closed: readonly string[];
  /** The folder of received files, in which the gateway's own copies are skipped. */
  media: string | null;
  /** Path of the only file to search. */
  file: string | null;
  /** Which files; null: all but hidden ones. */
  glob: string | null;
  /** Which lines; null: only file names. */
  lines: { source: string; flags: string } | null;
  /** Maximum number of entries examined, and of results. */
  most: { entries: number; found: number };
}

interface SearchFolder {
  root: string;
  /** Path below the root, as names of real folders. */
  names: string[];
  /** Prefix of its paths, both for matching and in results. */
  before: string;
  matched: string;
}

export interface SearchResult {
  /** Paths, or `path:line: text`, sorted by path. */
  found: string[];
  /** Number of further matches, as far as the search went. */
  more: number;
  /** The search ended before it had examined all files. */
  isPartial: boolean;
}

/** Folders that other programs keep among people's work. */
const PASSED_OVER = new Set(['node_modules', '.git']);
const LONGEST_LINE = 300;
const GONE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP']);

export async function searchIn(order: SearchOrder): Promise<SearchResult> {
  const { folders, closed, media, file, glob, lines, most } = order;
  const matches = picomatch(composed(glob ?? '**/*'));
  const fits = (path: string) => matches(composed(path));
  const expression = lines && new RegExp(lines.source, lines.flags);
  const found: SearchResult = { found: [], more: 0, isPartial: false };
  let looked = 0;
  for (const { root, names, before, matched } of folders) {
    const look = async (folder: OpenFolder) => {
      const isClosed = ({ path }: FolderEntry) => closed.includes(join(root, ...names, path));
      const isCopy = ({ name, path }: FolderEntry) =>
        media !== null && isNoMessages(name) && join(root, ...names, path) === join(media, name);
      const enter = (entry: FolderEntry) =>
        file === null &&
        !PASSED_OVER.has(entry.name) &&
        // Another searched folder may replace this one.
        !(before === '' && folders.some((each) => each.before === `${entry.path}/`)) &&
        !isClosed(entry);
      const hits: { path: string; lines: string[] }[] = [];
      for await (const entry of entriesBelow(folder, enter)) {
        looked++;
        if (looked > most.entries) {
          found.isPartial = true;
          break;
        }
        if (
          entry.kind !== 'file' ||
          isClosed(entry) ||
          isCopy(entry) ||
          !(file === null ? fits(matched + entry.path) : entry.path === file)
        )
          continue;
        const path = before + entry.path;
        const held = expression === null ? [path] : await linesIn(entry, path, expression, most.found);
        if (held.length > 0) hits.push({ path, lines: held });
      }
      hits.sort((one, other) => (one.path < other.path ? -1 : 1));
      for (const line of hits.flatMap((hit) => hit.lines)) {
        if (found.found.length < most.found) found.found.push(line);
        else found.more++;
      }
    };
    await within(root, names, look).catch((error: unknown) => {
      // A folder that has gone, or is a link by now, counts as empty.
      if (!GONE.has(codeOf(error))) throw error;
    });
  }
  return found;
}

async function linesIn(
  { folder, name }: FolderEntry,
  path: string,
  expression: RegExp,
  most: number,
): Promise<string[]> {
  // A file that has gone, or is unreadable, counts as empty.
  const handle = await openFile(folder, name).catch(() => null);
  if (handle === null) return [];
  try {
    const { size } = await handle.stat();
    const text = size > MOST_BYTES ? null : textOf(await readUpTo(handle, MOST_BYTES));
    if (text === null) return [];
    const found: string[] = [];
    for (const [n, line] of linesOf(text.text).entries()) {
      if (!expression.test(line)) continue;
      if (found.length === most) break;
      found.push(`${path}:${n + 1}: ${line.length > LONGEST_LINE ? `${cutAt(line, LONGEST_LINE)}…` : line}`);
    }
    return found;
  } finally {
    await handle.close();
  }
}

if (!isMainThread) void searchIn(workerData as SearchOrder).then((found) => parentPort?.postMessage(found));
