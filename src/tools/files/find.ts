/** `glob` and `grep`: find files by name, and lines by a regular expression. */
import * as z from 'zod';
import type { Clock } from '../../core/clock.js';
import type { Slots } from '../../core/concurrency.js';
import type { ToolResult } from '../../core/tool.js';
import { done, failed } from '../results.js';
import { inThread } from '../thread.js';
import { type FoundFolder, findFolder, isSkills, MEDIA, openToRead, PathRefusal, shownAs } from './paths.js';
import { type FileRoots, SKILLS, type ToolFolders } from './roots.js';
import { fileTool } from './run.js';
import type { SearchOrder, SearchResult } from './search-worker.js';

interface FindParts {
  folders: ToolFolders;
  clock: Clock;
  /** Limits concurrent searches over all chats. */
  slots: Slots;
  /** The compiled `search-worker.js`, if it is not next to this module. */
  worker?: URL;
  ms?: number;
}

const SEARCH_MS = 10_000;
const MEMORY_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32 };
const MOST_ENTRIES = 20_000;
const MOST_FILES = 500;
const MOST_LINES = 200;
const MOST_CHARS = 30_000;

const text = z.string().min(1).max(1000);
const where = z
  .string()
  .optional()
  .describe('A folder, or a file. Left out: your whole working folder, and media/.');

export function glob(parts: FindParts) {
  return fileTool(parts.folders, {
    name: 'glob',
    description:
      'Finds files of your working folder, and among what people sent here (media/…), by their names.',
    hint: 'find files by name',
    parameters: z.object({ pattern: text.describe('Like **/*.md; relative to path.'), path: where }),
    risk: 'low',
    isFromOutside: true,
    async execute({ pattern, path = '' }, allowed, { signal }) {
      const fault = await patternFault(pattern);
      if (fault !== null) return failed(`This is no pattern for files: ${fault}`);
      const most = { entries: MOST_ENTRIES, found: MOST_FILES };
      const order = { ...(await foldersAt(allowed, path, pattern)), glob: pattern, lines: null, most };
      return search(parts, order, signal, 'No file has a name like that.');
    },
  });
}

export function grep(parts: FindParts) {
  return fileTool(parts.folders, {
    name: 'grep',
    description: 'Finds lines in text files of your working folder, and of what people sent here (media/…).',
    hint: 'find lines in files',
    parameters: z.object({
      pattern: text.describe('A regular expression of JavaScript, for one line.'),
      path: where,
      glob: text
        .optional()
        .describe('Only in files like *.md (in any folder) or notes/*.md (relative to path).'),
    }),
    risk: 'low',
    isFromOutside: true,
    async execute({ pattern, path = '', glob: files }, allowed, { signal }) {
      const lines = expressionOf(pattern);
      if (typeof lines === 'string') return failed(`This is no regular expression: ${lines}`);
      const fault = files === undefined ? null : await patternFault(files);
      if (fault !== null) return failed(`This is no pattern for files: ${fault}`);
      const most = { entries: MOST_ENTRIES, found: MOST_LINES };
      // As in other tools of that name, a pattern without a folder applies to all folders.
      const glob = files === undefined || files.includes('/') ? (files ?? null) : `**/${files}`;
      const order = { ...(await foldersAt(allowed, path, files)), glob, lines, most };
      return search(parts, order, signal, 'No line fits.');
    },
  });
}

/** One folder or file; the start folder includes received files, and skills if the pattern names them. */
async function foldersAt(
  allowed: FileRoots,
  path: string,
  pattern = '',
): Promise<Pick<SearchOrder, 'folders' | 'media' | 'file' | 'closed'>> {
  const { start, media, closed, skills, showsSkills } = allowed;
  const inside = ({ root, names, real }: FoundFolder, matched = '') => {
    const shown = shownAs(allowed, real);
    return { root, names, before: shown === '' || shown === '/' ? shown : `${shown}/`, matched };
  };
  const rootAt = (root: string, matched: string) => inside({ root, names: [], real: root }, matched);
  const ofSkills = (under: string) => skills.map(({ folder, place }) => rootAt(folder, `${under}${place}/`));
  if (isSkills(allowed, path)) return { folders: ofSkills(''), media, file: null, closed };
  try {
    const folder = await findFolder(allowed, path);
    const folders = [inside(folder)];
    if (folder.real === start && media !== null) folders.push(rootAt(media, `${MEDIA}/`));
    if (folder.real === start && showsSkills && pattern.startsWith(`${SKILLS}/`)) {
      folders.push(...ofSkills(`${SKILLS}/`));
    }
    return { folders, media, file: null, closed };
  } catch (error) {
    if (!(error instanceof PathRefusal)) throw error;
    const { handle, folder, name } = await openToRead(allowed, path);
    await handle.close();
    return { folders: [inside(folder)], media, file: name, closed };
  }
}

async function search(
  { clock, slots, worker, ms = SEARCH_MS }: FindParts,
  order: SearchOrder,
  signal: AbortSignal,
  nothing: string,
): Promise<ToolResult> {
  const entry = worker ?? new URL('./search-worker.js', import.meta.url);
  const limits = { ms, resourceLimits: MEMORY_LIMITS };
  const leave = await slots.enter();
  const outcome = await inThread<SearchResult>(entry, order, limits, clock, signal).finally(leave);
  if (outcome === 'stopped') return failed('Stopped.');
  if (outcome === 'too long') {
    return failed(
      `The search took longer than ${ms / 1000} seconds and was ended. Try a simpler pattern, or one folder.`,
    );
  }
  return done(told(outcome, nothing));
}

function told({ found, more, isPartial }: SearchResult, nothing: string): string {
  const shown: string[] = [];
  let chars = 0;
  for (const line of found) {
    chars += line.length + 1;
    if (chars > MOST_CHARS) break;
    shown.push(line);
  }
  const left = found.length - shown.length + more;
  const lines = shown.length === 0 ? [nothing] : shown;
  if (left > 0) lines.push(`(and ${left} more; narrow it down)`);
  if (isPartial) lines.push(`(There are more than ${MOST_ENTRIES} files; not all were looked at.)`);
  return lines.join('\n');
}

/** Many models prefix `(?i)`. */
function expressionOf(pattern: string): { source: string; flags: string } | string {
  const isLoose = pattern.startsWith('(?i)');
  const source = isLoose ? pattern.slice('(?i)'.length) : pattern;
  const flags = isLoose ? 'i' : '';
  if (faultOf(() => new RegExp(source, `${flags}u`)) === null) return { source, flags: `${flags}u` };
  // A pattern that `u` forbids (an unnecessary backslash) usually means the same without it.
  return faultOf(() => new RegExp(source, flags)) ?? { source, flags };
}

/** The library is loaded for the first search. */
async function patternFault(pattern: string): Promise<string | null> {
  const { default: picomatch } = await import('picomatch');
  return faultOf(() => picomatch.makeRe(pattern));
}

function faultOf(attempt: () => unknown): string | null {
  try {
    attempt();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
