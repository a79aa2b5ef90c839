/** `glob` and `grep`: finding files by name, and lines by a regular expression. */

import { Worker } from 'node:worker_threads';
import * as z from 'zod';
import type { Clock } from '../../core/clock.js';
import type { Slots } from '../../core/concurrency.js';
import type { Tool, ToolContext, ToolResult } from '../../core/tool.js';
import { done, failed } from '../results.js';
import { type FoundFolder, findFolder, isSkills, MEDIA, openToRead, PathRefusal, shownAs } from './paths.js';
import { type Folders, type Places, SKILLS } from './roots.js';
import { inPlaces } from './run.js';
import type { Found, SearchOrder } from './search-worker.js';

export interface FindParts {
  folders: Folders;
  clock: Clock;
  /** How many searches there may be at once, of all chats. */
  slots: Slots;
  /** The compiled `search-worker.js`, if it is not beside this module. */
  worker?: URL | undefined;
  /** For one search. */
  ms?: number;
}

const SEARCH_MS = 10_000;
const MOST_ENTRIES = 20_000;
const MOST_FILES = 500;
const MOST_LINES = 200;
const MOST_CHARS = 30_000;
const LONGEST_PATTERN = 1000;

const where = z
  .string()
  .optional()
  .describe('A folder, or a file. Left out: your whole working folder, and media/.');

const globParameters = z.object({
  pattern: z.string().min(1).max(LONGEST_PATTERN).describe('Like **/*.md; relative to path.'),
  path: where,
});

export function glob(parts: FindParts): Tool<z.infer<typeof globParameters>> {
  return {
    name: 'glob',
    description:
      'Finds files of your working folder, and among what people sent here (media/…), by their names.',
    hint: 'find files by name',
    parameters: globParameters,
    risk: 'low',
    isFromOutside: true,
    execute: ({ pattern, path = '' }, context) =>
      inPlaces(parts.folders, context, async (places) => {
        const fault = await patternFault(pattern);
        if (fault !== null) return failed(`This is no pattern for files: ${fault}`);
        const most = { entries: MOST_ENTRIES, found: MOST_FILES };
        const order = { ...(await placesAt(places, path, pattern)), glob: pattern, lines: null, most };
        return search(parts, order, context, 'No file has a name like that.');
      }),
  };
}

const grepParameters = z.object({
  pattern: z
    .string()
    .min(1)
    .max(LONGEST_PATTERN)
    .describe('A regular expression of JavaScript, for one line.'),
  path: where,
  glob: z
    .string()
    .min(1)
    .max(LONGEST_PATTERN)
    .optional()
    .describe('Only in files like *.md (in any folder) or notes/*.md (relative to path).'),
});

export function grep(parts: FindParts): Tool<z.infer<typeof grepParameters>> {
  return {
    name: 'grep',
    description: 'Finds lines in text files of your working folder, and of what people sent here (media/…).',
    hint: 'find lines in files',
    parameters: grepParameters,
    risk: 'low',
    isFromOutside: true,
    execute: ({ pattern, path = '', glob: files }, context) =>
      inPlaces(parts.folders, context, async (places) => {
        const lines = expressionOf(pattern);
        if (typeof lines === 'string') return failed(`This is no regular expression: ${lines}`);
        const fault = files === undefined ? null : await patternFault(files);
        if (fault !== null) return failed(`This is no pattern for files: ${fault}`);
        const most = { entries: MOST_ENTRIES, found: MOST_LINES };
        const order = {
          ...(await placesAt(places, path, files)),
          glob: files === undefined ? null : anywhere(files),
          lines,
          most,
        };
        return search(parts, order, context, 'No line fits.');
      }),
  };
}

/**
 * Where a path leads: to one folder or file; the folder where paths begin is looked through with what people sent, and
 * with skills where the pattern names them.
 */
async function placesAt(
  places: Places,
  path: string,
  pattern = '',
): Promise<Pick<SearchOrder, 'places' | 'media' | 'file' | 'closed'>> {
  const { start, media, closed } = places;
  const inside = ({ root, names, real }: FoundFolder) => {
    const shown = shownAs(places, real);
    return { root, names, before: shown === '' || shown === '/' ? shown : `${shown}/`, matched: '' };
  };
  const skillsAs = (matched: string) =>
    places.skills.map(({ folder, place }) => ({
      ...inside({ root: folder, names: [], real: folder }),
      matched: `${matched}${place}/`,
    }));
  if (isSkills(places, path)) return { places: skillsAs(''), media, file: null, closed };
  try {
    const folder = await findFolder(places, path);
    const sent =
      folder.real !== start || media === null
        ? []
        : [{ ...inside({ root: media, names: [], real: media }), matched: `${MEDIA}/` }];
    const named = places.showsSkills && folder.real === start && pattern.startsWith(`${SKILLS}/`);
    const all = [inside(folder), ...sent, ...(named ? skillsAs(`${SKILLS}/`) : [])];
    return { places: all, media, file: null, closed };
  } catch (error) {
    if (!(error instanceof PathRefusal)) throw error;
    const { handle, folder, name } = await openToRead(places, path);
    await handle.close();
    return { places: [inside(folder)], media, file: name, closed };
  }
}

async function search(
  { clock, slots, worker, ms = SEARCH_MS }: FindParts,
  order: SearchOrder,
  { signal }: ToolContext,
  nothing: string,
): Promise<ToolResult> {
  const entry = worker ?? new URL('./search-worker.js', import.meta.url);
  const leave = await slots.enter();
  const outcome = await searchInThread(order, { clock, signal, ms, entry }).finally(leave);
  if (outcome.kind === 'stopped') return failed('Stopped.');
  if (outcome.kind === 'too long') {
    return failed(
      `The search took longer than ${ms / 1000} seconds and was ended. Try a simpler pattern, or one folder.`,
    );
  }
  return done(told(outcome.found, nothing));
}

function told({ found, more, isPartial }: Found, nothing: string): string {
  const shown: string[] = [];
  let chars = 0;
  for (const line of found) {
    chars += line.length + 1;
    if (chars > MOST_CHARS) break;
    shown.push(line);
  }
  const left = found.length - shown.length + more;
  const notes = [
    ...(left > 0 ? [`(and ${left} more; narrow it down)`] : []),
    ...(isPartial ? [`(There are more than ${MOST_ENTRIES} files; not all were looked at.)`] : []),
  ];
  return [...(shown.length === 0 ? [nothing] : shown), ...notes].join('\n');
}

/** As other tools of that name take it: what names no folder is meant in all of them. */
function anywhere(pattern: string): string {
  return pattern.includes('/') ? pattern : `**/${pattern}`;
}

/** Many models write `(?i)` before it. */
function expressionOf(pattern: string): { source: string; flags: string } | string {
  const isLoose = pattern.startsWith('(?i)');
  const source = isLoose ? pattern.slice('(?i)'.length) : pattern;
  const flags = (unicode: string) => (isLoose ? `i${unicode}` : unicode);
  if (faultOf(() => new RegExp(source, flags('u'))) === null) return { source, flags: flags('u') };
  // What `u` forbids (a needless backslash) is mostly meant all the same.
  return faultOf(() => new RegExp(source, flags(''))) ?? { source, flags: flags('') };
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

export type SearchOutcome = { kind: 'found'; found: Found } | { kind: 'too long' } | { kind: 'stopped' };

const MEGABYTES = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32 };

/** `entry` is `search-worker.js`, which lies beside the compiled gateway. Throws what the thread threw. */
export async function searchInThread(
  order: SearchOrder,
  { clock, signal, ms, entry }: { clock: Clock; signal: AbortSignal; ms: number; entry: URL },
): Promise<SearchOutcome> {
  if (signal.aborted) return { kind: 'stopped' };
  const thread = new Worker(entry, { workerData: order, resourceLimits: MEGABYTES, env: {}, stdin: false });
  return new Promise<SearchOutcome>((resolve, reject) => {
    const stopWaiting = clock.after(ms, () => settle(() => resolve({ kind: 'too long' })));
    const stop = () => settle(() => resolve({ kind: 'stopped' }));
    function settle(then: () => void): void {
      stopWaiting();
      signal.removeEventListener('abort', stop);
      void thread.terminate();
      then();
    }
    thread.once('message', (found: Found) => settle(() => resolve({ kind: 'found', found })));
    thread.once('error', (error) => settle(() => reject(error)));
    // Where nothing was said, it ended itself.
    thread.once('exit', () => settle(() => reject(new Error('the thread that searches files ended'))));
    signal.addEventListener('abort', stop, { once: true });
  });
}
