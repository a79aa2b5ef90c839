/** MEMORY.md, daily logs, PERSONA.md and principles as whole texts, for an owner's edits; each edit leaves versions. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { EVERY_CHAT, type FilePlace, type WholeFile, type WholeFiles } from '../core/board.js';
import { isDayFile } from '../core/daily-log.js';
import { Fault } from '../core/errors.js';
import { namesIn, readIfThere, statIfThere } from '../core/file-access.js';
import { composedNames } from '../core/file-names.js';
import { BOM, decode, encode, linesOf } from '../core/file-text.js';
import { type Cause, type NewVersion, TIERS, type Version } from '../core/memory.js';
import type { RecordedChange, UpdateFile } from '../core/write-whole.js';
import { chatFolder, dailyFolder, isChatId, isPersonaId, onDisk, personaFolder } from './paths.js';
import { type ParsedMemory, parseMemory, tierText } from './tiers.js';

const NOTHING = Buffer.alloc(0);
/** Larger files cannot be edited here, in bytes. */
const MOST_BYTES = 8_000_000;
/** A page holds no larger lorebook: one line a keystroke would be as much work as all of it. */
const MOST_BOOK_BYTES = 500_000;
const BOOKS = 'lorebooks';
const OWN_BOOK = 'lorebook.yaml';
/** Without folders in it, and not hidden. */
const BOOK = /^[^./\\\p{Cc}][^/\\\p{Cc}]{0,200}\.(?:ya?ml|json)$/iu;
/** Longer texts leave no version, in characters: 200 of them are kept. */
const MOST_KEPT = 200_000;

export function wholeFiles(
  groupsDir: string,
  update: UpdateFile,
  newId: () => string,
  withVersions: (bytes: Buffer, changes: NewVersion[]) => RecordedChange,
): WholeFiles {
  return {
    chatFolders: async () => (await namesIn(groupsDir)).filter(isChatId).sort(),

    async personaFolders(chatId) {
      const folder = chatFolder(groupsDir, chatId);
      const ids = composedNames(await namesIn(folder))
        .filter(isPersonaId)
        .sort();
      const isThere = (id: string) => (name: string) => isFile(join(onDisk(folder, id), name));
      return ids.filter((id) => ['MEMORY.md', 'PERSONA.md'].some(isThere(id)));
    },

    dailyLogs: async (chatId) =>
      (await namesIn(dailyFolder(groupsDir, chatId))).filter(isDayFile).sort().reverse(),

    bookFiles: async (chatId) =>
      (await namesIn(booksFolder(groupsDir, chatId)))
        .filter((name) => BOOK.test(name))
        .sort()
        .map((name) => `${BOOKS}/${name}`),

    async readFile(place) {
      const path = pathOf(groupsDir, place);
      return shown(await readIfThere(path), path);
    },

    async editFile({ chatId, personaId, file }, { tag, at, gone, text }) {
      const path = pathOf(groupsDir, { chatId, file });
      const cause: Cause = { kind: 'owner', personaId, turnId: newId() };
      let outcome: Awaited<ReturnType<WholeFiles['editFile']>> | null = null;
      const change = (bytes: Buffer | null) => {
        const was = shown(bytes, path);
        outcome = { kind: 'changed', file: was };
        if (was.tag !== tag || at + gone > was.text.length) return null;
        const edited = was.text.slice(0, at) + text + was.text.slice(at + gone);
        const next = withText(bytes ?? NOTHING, edited);
        outcome = { kind: 'written', file: { ...was, text: edited, tag: tagOf(next) } };
        return withVersions(next, changesOf({ chatId, personaId, file, cause }, bytes ?? NOTHING, next));
      };
      const isWritten = await update(path, change);
      if (outcome === null) throw new Fault('internal', `${path} was not looked at`);
      const { kind, file: found }: Awaited<ReturnType<WholeFiles['editFile']>> = outcome;
      return { kind, file: isWritten ? { ...found, changedAt: timeOf(path) } : found };
    },
  };
}

/** Throws Fault `memory_unavailable` for all but the files that an owner edits. */
export function pathOf(groupsDir: string, { chatId, file }: FilePlace): string {
  const [folder = '', name = '', ...rest] = file.split('/');
  if (rest.length === 0 && chatId === EVERY_CHAT) {
    if (file === 'AGENTS.md') return join(groupsDir, file);
    const id = name.replace(/\.md$/, '');
    if (folder === 'personas' && name.endsWith('.md') && isPersonaId(id))
      return onDisk(join(groupsDir, folder), name);
    if (folder === BOOKS && BOOK.test(name)) return join(booksFolder(groupsDir, chatId), name);
  } else if (chatId === EVERY_CHAT) {
    const isBook = folder === 'personas' && isPersonaId(name) && rest.join('/') === OWN_BOOK;
    if (isBook) return join(onDisk(join(groupsDir, folder), name), OWN_BOOK);
  } else if (rest.length === 0) {
    if (folder === BOOKS && BOOK.test(name)) return join(booksFolder(groupsDir, chatId), name);
    if (folder === 'memory' && isDayFile(name)) return join(dailyFolder(groupsDir, chatId), name);
    if (name === 'MEMORY.md' || name === 'PERSONA.md' || name === OWN_BOOK)
      return join(personaFolder(groupsDir, chatId, folder), name);
  }
  throw new Fault('memory_unavailable', `${JSON.stringify(file.slice(0, 80))} is not a file of memory`);
}

function booksFolder(groupsDir: string, chatId: string): string {
  return join(chatId === EVERY_CHAT ? groupsDir : chatFolder(groupsDir, chatId), BOOKS);
}

/** An unreadable one is a file, too: reading it says why it cannot be read. */
function isFile(path: string): boolean {
  try {
    return statIfThere(path)?.isFile() ?? false;
  } catch {
    return true;
  }
}

function shown(bytes: Buffer | null, path: string): WholeFile {
  const most = /\.(?:ya?ml|json)$/i.test(path) ? MOST_BOOK_BYTES : MOST_BYTES;
  if ((bytes?.length ?? 0) > most)
    throw new Fault(
      'memory_unavailable',
      `${path} is larger than ${most / 1_000_000} MB, too large to edit here; edit it with an editor, or shorten it`,
    );
  const isCrlf = bytes?.includes('\r\n') ?? false;
  return { text: textIn(bytes ?? NOTHING), tag: tagOf(bytes), changedAt: bytes && timeOf(path), isCrlf };
}

function timeOf(path: string): number | null {
  return statIfThere(path)?.mtimeMs ?? null;
}

export function tagOf(bytes: Buffer | null): string {
  return bytes === null ? 'none' : createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
}

// ── Text and bytes ──────────────────────────────────────────────────────────────────────────────────────────

/** A character of UTF-8, in a string of bytes. */
const UTF8 = [
  '[\\0-\\x7f]',
  '[\\xc2-\\xdf][\\x80-\\xbf]',
  '\\xe0[\\xa0-\\xbf][\\x80-\\xbf]',
  '\\xed[\\x80-\\x9f][\\x80-\\xbf]',
  '[\\xe1-\\xec\\xee\\xef][\\x80-\\xbf]{2}',
  '\\xf0[\\x90-\\xbf][\\x80-\\xbf]{2}',
  '[\\xf1-\\xf3][\\x80-\\xbf]{3}',
  '\\xf4[\\x80-\\x8f][\\x80-\\xbf]{2}',
].join('|');
const CHARACTERS = new RegExp(`((?:${UTF8})+)|([\\x80-\\xff])`, 'g');
/** Plus a byte that is no UTF-8: no text has such a character. */
const ESCAPED = 0xdc00;
const ESCAPES = /([\udc80-\udcff]+)/u;

/** As it is edited (`WholeFile`). */
export function textIn(bytes: Buffer): string {
  return exactly(bytes)
    .replace(/^\ufeff/, '')
    .replace(/\r\n?/g, '\n');
}

function exactly(bytes: Buffer): string {
  const text = bytes.toString('utf8');
  if (!text.includes('\ufffd')) return text;
  const escaped = (_: string, good: string | undefined, bad: string) =>
    good === undefined ? String.fromCharCode(ESCAPED + bad.charCodeAt(0)) : decode(good);
  return bytes.toString('latin1').replace(CHARACTERS, escaped);
}

/** The file with another text: lines keep their own ends, new ones get those of the line before. */
export function withText(file: Buffer, text: string): Buffer {
  const bom = file.toString('latin1', 0, 3) === BOM ? BOM : '';
  const whole = exactly(file).replace(/^\ufeff/, '');
  const pieces = withEndsOf(whole, text).split(ESCAPES);
  const bytes = pieces.map((piece, n) => (n % 2 === 0 ? encode(piece) : unescapedBytes(piece)));
  return Buffer.from(bom + bytes.join(''), 'latin1');
}

function unescapedBytes(escapes: string): string {
  return Array.from(escapes, (sign) => String.fromCharCode(sign.charCodeAt(0) - ESCAPED)).join('');
}

function withEndsOf(whole: string, text: string): string {
  const ends = [...new Set(whole.match(/\r\n|\n|\r/g))];
  if (ends.length < 2) return text.replaceAll('\n', ends[0] ?? '\n');
  const old = linesOf(whole).map((line) => {
    const [end = ''] = /\r\n$|[\r\n]$/.exec(line) ?? [];
    return { words: line.slice(0, line.length - end.length), end };
  });
  const lines = text.split('\n');
  const found: (string | undefined)[] = [];
  for (let n = 0; lines[n] === old[n]?.words && n < lines.length; n++) found[n] = old[n]?.end;
  const start = found.length;
  for (let n = 1; lines.length - n >= start && old.length - n >= start; n++) {
    if (lines[lines.length - n] !== old[old.length - n]?.words) break;
    found[lines.length - n] = old[old.length - n]?.end;
  }
  // Between the two, a line that was moved is known by its words.
  const others = new Map(old.map(({ words, end }) => [words, end]));
  let last = ends[0] ?? '\n';
  const ended = lines.map((line, n) => {
    last = (found[n] ?? others.get(line)) || last;
    return n === lines.length - 1 ? line : line + last;
  });
  return ended.join('');
}

// ── Versions ────────────────────────────────────────────────────────────────────────────────────────────────

/** As the store keeps it: without zero bytes and broken characters. */
function kept(text: string): string {
  return text.replaceAll('\0', '').toWellFormed();
}

/** Of each tier that changed, and of the whole file where anything else did. */
function changesOf(of: Omit<NewVersion, 'tier' | 'before' | 'after'>, was: Buffer, is: Buffer): NewVersion[] {
  const whole: NewVersion = { ...of, tier: null, before: kept(textIn(was)), after: kept(textIn(is)) };
  const changes = of.file.endsWith('/MEMORY.md') ? [...tiersOf(of, was, is), whole] : [whole];
  const isKept = changes.filter(
    ({ before, after }) => before !== after && Math.max(before.length, after.length) <= MOST_KEPT,
  );
  const isOfTiers = changes.length > 1 && frameOf(parseMemory(was)) === frameOf(parseMemory(is));
  return isOfTiers ? isKept.filter((change) => change !== whole) : isKept;
}

function tiersOf(of: Omit<NewVersion, 'tier' | 'before' | 'after'>, was: Buffer, is: Buffer): NewVersion[] {
  const [before, after] = [parseMemory(was), parseMemory(is)];
  return TIERS.map((tier) => ({
    ...of,
    tier,
    before: kept(tierText(before, tier)),
    after: kept(tierText(after, tier)),
  }));
}

/** All but the text of the tiers and white space. */
function frameOf({ source, preamble, sections }: ParsedMemory): string {
  const parts = sections.map(({ tier, start, bodyStart, end }) =>
    source.slice(start, tier === null ? end : bodyStart),
  );
  return [preamble, ...parts].map((part) => part.replace(/\s+/g, ' ').trim()).join('\n');
}

/** Takes back an owner's change of a whole file, if that is still its text. */
export async function takeBackWhole(
  groupsDir: string,
  update: UpdateFile,
  version: Version,
): Promise<'done' | 'already' | 'changed'> {
  let outcome: 'done' | 'already' | 'changed' = 'already';
  await update(pathOf(groupsDir, version), (bytes) => {
    const now = textIn(bytes ?? NOTHING);
    outcome = 'already';
    if (kept(now) === version.before) return null;
    outcome = kept(now) === version.after ? 'done' : 'changed';
    if (outcome === 'changed') return null;
    // Of a line with bytes that the store cannot keep, the file may still have them.
    const whole = new Map(now.split('\n').map((line) => [kept(line), line]));
    const lines = version.before.split('\n').map((line) => whole.get(line) ?? line);
    return withText(bytes ?? NOTHING, lines.join('\n'));
  });
  return outcome;
}
