/** `/memory forget` on disk: removes lines with a phrase; from archives and transcripts only the words. */
import { lstatSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { setImmediate as nextPass } from 'node:timers/promises';
import type { Exclusive } from '../core/concurrency.js';
import { describe, Fault } from '../core/errors.js';
import { isFolder, namesIn, readIfThere } from '../core/file-access.js';
import { BOM, decode, encode, linesOf, splitFrontMatter } from '../core/file-text.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { FoundLine, KeptByAgents, Memory, MemoryFile } from '../core/memory.js';
import { FORGOTTEN, type Phrase } from '../core/phrase.js';
import { isAgentId } from '../core/task.js';
import { followLinks, removeLeftOvers, type UpdateFile } from '../core/write-whole.js';
import { MESSAGE_HEADING } from './archives.js';
import { agentClipboards, archiveFolder, chatFolder, dailyFolder, isReserved, lockOf } from './paths.js';
import { parseMemory } from './tiers.js';

export type Kind = 'memory' | 'daily' | 'archive' | 'clipboard' | 'transcript';

interface Forgotten {
  /** The removed lines, trimmed, for display. */
  lines: string[];
  /** The same buffer if the phrase does not occur. */
  left: Buffer;
}

export function forgetIn(file: Buffer, kind: Kind, phrase: Phrase): Forgotten {
  if (!phrase.isIn(file.toString('utf8'))) return { lines: [], left: file };
  if (kind === 'transcript') return forgetSaid(file.toString('utf8'), phrase);
  const whole = file.toString('latin1');
  const { lines, left } =
    kind === 'archive'
      ? forgetWords(whole, phrase)
      : forgetLines(whole, phrase, kind === 'memory' ? tierHeadings(file) : new Set());
  return { lines: lines.map((line) => decode(line).trim()), left: Buffer.from(left, 'latin1') };
}

/** `headings`: numbers of lines that are always kept. */
function forgetLines(
  whole: string,
  phrase: Phrase,
  headings: Set<number>,
): { lines: string[]; left: string } {
  const bom = whole.startsWith(BOM) ? BOM : '';
  const all = linesOf(whole.slice(bom.length));
  const gone = new Set<number>();
  // Removing lines may join others into a new occurrence, so this repeats until none is left.
  for (let before = -1; gone.size > before; ) {
    before = gone.size;
    const left = [...all.entries()].filter(([n]) => !gone.has(n));
    const found = linesWith(
      left.map(([, line]) => line),
      phrase,
    );
    for (const [n] of found.flatMap((at) => left.slice(at, at + 1))) if (!headings.has(n)) gone.add(n);
  }
  const lines = all.filter((_, n) => gone.has(n));
  return { lines, left: bom + all.filter((_, n) => !gone.has(n)).join('') };
}

/** Line numbers of the tier headings: without its heading, a tier would join the one above. */
function tierHeadings(file: Buffer): Set<number> {
  const numbers = new Set<number>();
  const { source, sections } = parseMemory(file);
  const headings = sections.filter((section) => section.tier !== null);
  let at = 0;
  for (const [n, line] of linesOf(source).entries()) {
    while (at >= (headings[0]?.bodyStart ?? Infinity)) headings.shift();
    if (at >= (headings[0]?.start ?? Infinity)) numbers.add(n);
    at += line.length;
  }
  return numbers;
}

/** Numbers of the lines with the phrase, or with a part of it where it spans lines. */
function linesWith(lines: string[], phrase: Phrase): number[] {
  const texts = lines.map(decode);
  const found = new Set<number>();
  let n = 0;
  let end = texts[0]?.length ?? 0;
  for (const range of phrase.rangesIn(texts.join(''))) {
    while (end <= range.start) end += texts[++n]?.length ?? Infinity;
    found.add(n);
    while (end < range.end) {
      end += texts[++n]?.length ?? Infinity;
      found.add(n);
    }
  }
  return [...found];
}

function forgetWords(whole: string, phrase: Phrase): { lines: string[]; left: string } {
  const lines: string[] = [];
  let left = '';
  for (const { bytes, ours } of archivePieces(whole)) {
    const text = decode(bytes);
    if (ours || !phrase.isIn(text)) {
      left += bytes;
      continue;
    }
    const all = linesOf(bytes);
    lines.push(...linesWith(all, phrase).map((n) => all[n] ?? ''));
    left += encode(phrase.replacedIn(text, FORGOTTEN));
  }
  return { lines, left };
}

/** One line of JSON per message; any other line with the phrase is removed. */
function forgetSaid(whole: string, phrase: Phrase): Forgotten {
  const lines: string[] = [];
  const left = whole.split('\n').flatMap((line) => {
    const said = saidIn(line);
    if (said === null) {
      if (!phrase.isIn(line)) return [line];
      lines.push(line);
      return [];
    }
    const without = phrase.replacedIn(said.content, FORGOTTEN);
    if (without === said.content) return [line];
    lines.push(said.content.trim());
    return [JSON.stringify({ ...said, content: without })];
  });
  return { lines, left: Buffer.from(left.join('\n')) };
}

function saidIn(line: string): { content: string } | null {
  try {
    const said: unknown = JSON.parse(line);
    const content = (said as { content?: unknown } | null)?.content;
    return typeof content === 'string' ? (said as { content: string }) : null;
  } catch {
    return null;
  }
}

/** Splits an archive into people's words and names, and our own parts, which must remain parseable. */
function archivePieces(whole: string): { bytes: string; ours: boolean }[] {
  const body = splitFrontMatter(whole)?.body ?? whole;
  const pieces = [{ bytes: whole.slice(0, whole.length - body.length), ours: true }];
  let said = '';
  for (const line of linesOf(body)) {
    const bare = line.replace(/(?<![\r\n])[\r\n]+$/, '');
    const heading = line.startsWith('## ') ? MESSAGE_HEADING.exec(decode(bare))?.groups : undefined;
    if (heading === undefined) {
      said += line;
      continue;
    }
    const nameEnd = bare.length - encode(heading.rest ?? '').length;
    pieces.push({ bytes: said, ours: false }, { bytes: '## ', ours: true });
    pieces.push({ bytes: line.slice(3, nameEnd), ours: false }, { bytes: line.slice(nameEnd), ours: true });
    said = '';
  }
  return [...pieces, { bytes: said, ours: false }];
}

/** A folder of files to remove a phrase from; `name` is relative to the chat's folder. */
interface MemoryFolder {
  path: string;
  name: string;
  kind: Kind;
  holds(file: string): boolean;
}

/** The folders of all personas, including deleted ones, then those of daily log, archives and clipboards. */
async function memoryFolders(
  groupsDir: string,
  chatId: ChatId,
  clipboardDir: string | null,
): Promise<MemoryFolder[]> {
  const chat = chatFolder(groupsDir, chatId);
  const names = (await namesIn(chat)).filter((name) => !name.startsWith('.') && !isReserved(name)).sort();
  const isText = (file: string) => file.endsWith('.md') && !file.startsWith('.');
  const texts = (path: string, name: string, kind: Kind) => ({ path, name, kind, holds: isText });
  const isMemory = (file: string) => file === 'MEMORY.md';
  return [
    ...names
      .map((name): MemoryFolder => ({ path: join(chat, name), name, kind: 'memory', holds: isMemory }))
      // In doubt it counts as a folder: reading it reports the problem.
      .filter(({ path }) => isFolder(path, true)),
    texts(dailyFolder(groupsDir, chatId), 'memory', 'daily'),
    texts(archiveFolder(groupsDir, chatId), 'archive', 'archive'),
    ...(clipboardDir === null
      ? []
      : [
          texts(chatFolder(clipboardDir, chatId), 'clipboard', 'clipboard'),
          texts(agentClipboards(clipboardDir, chatId), 'clipboard/agents', 'clipboard'),
        ]),
  ];
}

/** Agents' files for a chat. Agents may have put links and folders there, so only plain files count. */
async function agentFolders(
  agentsDir: string,
  chatId: ChatId,
  { isOthers, shared }: KeptByAgents,
): Promise<MemoryFolder[]> {
  const own = join('chats', basename(chatFolder(agentsDir, chatId)));
  const spaces = [own, ...(shared ? ['internal_space'] : [])];
  const folders: MemoryFolder[] = [];
  const add = (path: string, kind: Kind, ending: string, isMeant: (file: string) => boolean = () => true) => {
    const isPlain = (file: string) =>
      lstatSync(join(path, file), { throwIfNoEntry: false })?.isFile() === true;
    const holds = (file: string) => file.endsWith(ending) && isMeant(file) && isPlain(file);
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory())
      folders.push({ path, name: relative(dirname(agentsDir), path), kind, holds });
  };
  for (const agent of (await namesIn(agentsDir)).filter(isAgentId).sort()) {
    for (const space of spaces) {
      add(join(agentsDir, agent, space), 'clipboard', '.md');
      add(join(agentsDir, agent, space, 'memories'), 'clipboard', '.md');
    }
    add(join(agentsDir, agent, 'sessions'), 'transcript', '.jsonl', (file) => !isOthers(file));
  }
  return folders;
}

/** Newest first if names start with a date. */
async function filesIn({ path, name, holds }: MemoryFolder): Promise<MemoryFile[]> {
  const files = (await namesIn(path)).filter(holds).sort().reverse();
  return files.map((file) => ({ file: `${name}/${file}`, path: join(path, file) }));
}

/** Files examined per pass of the event loop. */
const AT_ONCE = 50;
const MOST_SHOWN = 20;

/** `data/clipboard` and `data/agents`: null if there are none. */
export function forgetting(
  groupsDir: string,
  clipboardDir: string | null,
  agentsDir: string | null,
  update: UpdateFile,
  exclusive: Exclusive,
  log: Log,
): Pick<Memory, 'find' | 'erase'> {
  async function foldersOf(chatId: ChatId, kept: KeptByAgents | undefined): Promise<MemoryFolder[]> {
    const own = await memoryFolders(groupsDir, chatId, clipboardDir);
    return kept === undefined || agentsDir === null
      ? own
      : [...own, ...(await agentFolders(agentsDir, chatId, kept))];
  }

  return {
    async find(chatId, phrase, most, kept) {
      const found: FoundLine[] = [];
      const failures: unknown[] = [];
      const failed = (error: unknown): undefined => void failures.push(error);
      let looked = 0;
      for (const folder of await foldersOf(chatId, kept)) {
        for (const { file, path } of (await filesIn(folder).catch(failed)) ?? []) {
          if (found.length >= most) break;
          if (++looked % AT_ONCE === 0) await nextPass();
          const bytes = await readIfThere(path).catch(failed);
          const lines = bytes ? forgetIn(bytes, folder.kind, phrase).lines : [];
          found.push(...lines.slice(0, most - found.length).map((text) => ({ file, text })));
        }
      }
      // If nothing was found, an unreadable file may still contain the phrase.
      if (found.length === 0) failIfAny('look for words to be forgotten', failures);
      for (const error of failures)
        log.warn({ error: describe(error) }, 'file skipped while searching for words to forget');
      return found;
    },

    async erase(chatId, phrase, kept) {
      const changed: string[] = [];
      const failures: unknown[] = [];
      const failed = (error: unknown): undefined => void failures.push(error);
      async function eraseIn({ file, path }: MemoryFile, kind: Kind): Promise<void> {
        if (await update(path, (bytes) => bytes && forgetIn(bytes, kind, phrase).left)) changed.push(file);
        // A file written through a link has its temporary files where the link leads; they stay.
        if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
        const target = await followLinks(path);
        await removeLeftOvers(dirname(target), (name) => name === basename(target));
      }
      // Under the archives' lock, so that no archive with the phrase appears after the search.
      await exclusive(lockOf(archiveFolder(groupsDir, chatId)), async () => {
        for (const folder of await foldersOf(chatId, kept)) {
          for (const each of (await filesIn(folder).catch(failed)) ?? [])
            await eraseIn(each, folder.kind).catch(failed);
          await removeLeftOvers(folder.path, folder.holds).catch(failed);
        }
      });
      failIfAny('forget', failures);
      return changed;
    },
  };
}

function failIfAny(what: string, failures: unknown[]): void {
  if (failures.length === 0) return;
  const shown = failures.slice(0, MOST_SHOWN).map(describe).join('; ');
  const more = failures.length > MOST_SHOWN ? `; and ${failures.length - MOST_SHOWN} more` : '';
  throw new Fault('memory_unavailable', `Cannot ${what} in every file. The others are done. ${shown}${more}`);
}
