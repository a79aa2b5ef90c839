/**
 * Archives, `groups/<chat_id>/archive/2026-11-22T10-15-00-luna.md`: front matter, then messages under headings. Histories from
 * elsewhere are archives, too, in parts that name their import: `…-luna.imported-3f2ac91b.md`.
 */
import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { isMap, stringify } from 'yaml';
import type { ArchivedMessage, ArchiveFile, ArchiveHead, Archives } from '../core/chat-record.js';
import type { Exclusive } from '../core/concurrency.js';
import { inOneLine } from '../core/cut.js';
import type { Zone } from '../core/dates.js';
import { Fault } from '../core/errors.js';
import { namesIn, readIfThere, unavailable, unhurried } from '../core/file-access.js';
import { readOr, readUnlessUnchanged } from '../core/file-cache.js';
import { composed, composedNames } from '../core/file-names.js';
import { documentOf, splitFrontMatter, withFrontMatterKey } from '../core/file-text.js';
import type { ChatId, PersonaId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { MemoryOwner } from '../core/memory.js';
import { fileUpdater, openTemporary, removeLeftOvers, syncFolder, writeWhole } from '../core/write-whole.js';
import { archiveFile, archiveFolder, fromHere, isChatId, isPersonaId, lockOf } from './paths.js';

interface ArchiveName {
  time: string;
  /** Its number among archives of the same second. */
  number: number;
  personaId: PersonaId;
  /** Of a history from elsewhere. */
  importId?: string | undefined;
}

/** Local time and persona (no underscores); the second at once is `2026-11-22T10-15-00_2-luna.md`. */
export function archiveName({ time, number, personaId, importId }: ArchiveName): string {
  const origin = importId === undefined ? '' : `.imported-${importId}`;
  return `${time}${number === 1 ? '' : `_${number}`}-${personaId}${origin}.md`;
}

/** null for any other name, including one that would lead out of the folder. */
export function parseArchiveName(file: string): ArchiveName | null {
  const parts =
    /^(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)(?:_([1-9]\d{0,8}))?-(.+?)(?:\.imported-([0-9a-f]{8}))?\.md$/u.exec(
      composed(file),
    );
  const [, time, number = '1', personaId, importId] = parts ?? [];
  if (time === undefined || personaId === undefined || !isPersonaId(personaId)) return null;
  const name = { time, number: Number(number), personaId, importId };
  return archiveName(name) === composed(file) ? name : null;
}

/** Of the messages; known only after the whole archive was written. */
interface Extent {
  messages: number;
  from: number;
  until: number;
}

type ReadHead = Omit<ArchiveFile, 'file'>;

/** The whole heading line; a person chose `name`, the rest is ours. */
export const MESSAGE_HEADING = /^(?<mark>## )(?<name>.*)(?<rest> · \d{4}-\d\d-\d\d \d\d:\d\d <!-- m\d+ -->)$/;
/** Also lines that only a lenient reader would take for a heading: indented, or with other spaces. */
const FORGED_HEADING =
  /^(?=[^\S\r\n\u2028\u2029]*\\*## .* · \d{4}-\d\d-\d\d \d\d:\d\d <!-- m\d+ -->[^\S\r\n\u2028\u2029]*$)/gm;

function headText(head: ArchiveHead, extent: Extent | null, zone: Zone): string {
  const matter = {
    chat: head.chatId,
    thread: head.threadId ?? undefined,
    persona: head.personaId,
    from: extent ? isoTime(zone, extent.from) : undefined,
    until: extent ? isoTime(zone, extent.until) : undefined,
    messages: extent?.messages ?? 0,
    reason: inOneLine(head.reason),
    flushed: head.flushed,
  };
  return `---\n${stringify(matter, { lineWidth: 0 })}---\n\n# Conversation with ${inOneLine(head.personaName) || head.personaId}\n`;
}

/** The original text; only a line that looks like one of our headings is escaped with a backslash. */
export function messageText(message: ArchivedMessage, zone: Zone): string {
  const heading = `## ${inOneLine(message.name) || '?'} · ${zone.time(message.sentAt)} <!-- m${message.id} -->`;
  return `\n${heading}\n\n${message.text.replace(FORGED_HEADING, '\\')}\n`;
}

/** null if it is not the beginning of an archive. */
function readHeadText(beginning: string): ReadHead | null {
  const parts = splitFrontMatter(beginning);
  if (parts === null) return null;
  const document = documentOf(parts.matter);
  if (document.errors.length > 0 || !isMap(document.contents)) return null;
  const idAt = (key: string) => {
    const value: unknown = document.get(key);
    return typeof value === 'string' || typeof value === 'number' ? String(value) : null;
  };
  const personaId = idAt('persona');
  const is = (key: string) => document.get(key) === true;
  if (personaId === null) return null;
  return { personaId, threadId: idAt('thread'), flushed: is('flushed'), reset: is('reset') };
}

/** `2026-11-22T10:15:00` */
function localTime(zone: Zone, at: number): string {
  return `${zone.time(at).replace(' ', 'T')}:${new Date(at).toISOString().slice(17, 19)}`;
}

/** `2026-11-22T10:15:00+01:00` */
export function isoTime(zone: Zone, at: number): string {
  const local = localTime(zone, at);
  const minutes = Math.round((Date.parse(`${local}Z`) - at) / 60_000);
  const size = Math.abs(minutes);
  const two = (number: number) => String(number).padStart(2, '0');
  return `${local}${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/** Streams the messages into a temporary file, because the head needs their number. */
async function writeArchive(
  path: string,
  head: ArchiveHead,
  pages: AsyncIterable<ArchivedMessage[]>,
  zone: Zone,
): Promise<void> {
  const body = await orFault(path, async () => {
    await mkdir(dirname(path), { recursive: true });
    return openTemporary(path);
  });
  try {
    let extent: Extent | null = null;
    for await (const page of pages) {
      extent = page.reduce(extended, extent);
      await orFault(path, () => body.file.appendFile(page.map((each) => messageText(each, zone)).join('')));
    }
    const start = headText(head, extent, zone);
    await orFault(path, async () => {
      await writeWhole(path, async (file) => {
        await file.writeFile(start);
        const said = body.file.createReadStream({ start: 0, autoClose: false });
        for await (const chunk of said) await file.writeFile(chunk);
      });
      // The folder may be new.
      await syncFolder(dirname(dirname(path)));
    });
  } finally {
    await body.file.close();
    await rm(body.path, { force: true });
  }
}

function extended(extent: Extent | null, { sentAt }: ArchivedMessage): Extent {
  const { messages, from, until } = extent ?? { messages: 0, from: sentAt, until: sentAt };
  return { messages: messages + 1, from: Math.min(from, sentAt), until: Math.max(until, sentAt) };
}

async function orFault<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw unavailable('write', path, error);
  }
}

const HEAD_BYTES = 16 * 1024;
/** Front matters read per pass of the event loop. */
const AT_ONCE = 50;
/** Size of the cache of reserved names; names of the same second are reserved close together. */
const KNOWN_NAMES = 1_000;

/** `exclusive` is shared with memory, which erases text in the same files. */
export function createArchives(groupsDir: string, zone: Zone, exclusive: Exclusive, log: Log): Archives {
  const update = fileUpdater(exclusive);
  /** Reserved paths; their files may not exist yet. */
  const reserved = new Set<string>();
  const headOf = headReader(log);
  const pathOf = (chatId: ChatId, file: string) => archivePath(groupsDir, chatId, file);

  return {
    async newName({ chatId, personaId, at }) {
      const there = new Set(composedNames(await namesIn(archiveFolder(groupsDir, chatId))));
      const time = localTime(zone, at).replaceAll(':', '-');
      for (let number = 1; ; number++) {
        const file = archiveName({ time, number, personaId });
        const path = pathOf(chatId, file);
        if (there.has(file) || reserved.has(path)) continue;
        if (reserved.size >= KNOWN_NAMES) reserved.clear();
        reserved.add(path);
        return file;
      }
    },

    async write(head, file, pages) {
      const path = pathOf(head.chatId, file);
      // Under the folder's lock, so that text erased meanwhile does not reappear in a new file.
      await exclusive(lockOf(archiveFolder(groupsDir, head.chatId)), async () => {
        // No later write would find a temporary file left by a crash, because its name is never reused.
        await removeLeftOvers(dirname(path), (name) => parseArchiveName(name) !== null);
        await writeArchive(path, head, pages, zone);
      });
    },

    async mark(chatId, file, mark) {
      const path = pathOf(chatId, file);
      await update(path, (bytes) => {
        const marked = bytes && withFrontMatterKey(bytes, mark, true);
        if (bytes !== null && marked === null)
          log.warn({ path, mark }, 'archive not marked: its front matter cannot be read');
        return marked;
      });
    },

    async remove(chatId, file) {
      const path = pathOf(chatId, file);
      await exclusive(lockOf(archiveFolder(groupsDir, chatId)), async () => {
        await removeLeftOvers(dirname(path), (name) => name === file);
        // An update must not bring it back between its comparison and its rename.
        await exclusive(path, () => orFault(path, () => rm(path, { force: true })));
      });
    },

    async list(chatId, personaId) {
      const found: ArchiveFile[] = [];
      for await (const file of unhurried(await archivesOf(groupsDir, { chatId, personaId }), AT_ONCE)) {
        const head = await headOf(pathOf(chatId, file));
        if (head?.personaId === personaId) found.push({ file, ...head });
      }
      return found;
    },

    async find(chatId, file) {
      if (!isChatId(chatId) || parseArchiveName(file) === null) return null;
      const head = await headOf(pathOf(chatId, file));
      return head && { file, ...head };
    },

    shownPath: (chatId, file) => fromHere(pathOf(chatId, file)),
  };
}

/** Rereads an archive's front matter only when the file has changed; null if there is none. */
function headReader(log: Log): (path: string) => Promise<ReadHead | null> {
  const headAt = readUnlessUnchanged<ReadHead | 'missing' | null>('missing', async (path) => {
    const bytes = await readIfThere(path, HEAD_BYTES);
    return bytes === null ? 'missing' : readHeadText(bytes.toString('utf8'));
  });
  return async (path) => {
    const head = await readOr('missing', path, headAt, log, 'archive skipped: it cannot be read');
    if (head === null) log.warn({ path }, 'archive ignored: its front matter cannot be read');
    return head === 'missing' ? null : head;
  };
}

function archivePath(groupsDir: string, chatId: ChatId, file: string): string {
  if (parseArchiveName(file) !== null) return archiveFile(groupsDir, chatId, file);
  const shown = JSON.stringify(file.slice(0, 120));
  throw new Fault('memory_unavailable', `${shown} is not the name of an archive`);
}

/** The names of one persona's archives, oldest first. */
export async function archivesOf(groupsDir: string, { chatId, personaId }: MemoryOwner): Promise<string[]> {
  return composedNames(await namesIn(archiveFolder(groupsDir, chatId)))
    .map(parseArchiveName)
    .filter((name) => name?.personaId === personaId)
    .filter((name) => name !== null)
    .sort((a, b) => (a.time === b.time ? a.number - b.number : a.time < b.time ? -1 : 1))
    .map(archiveName);
}

export interface ImportedPart {
  file: string;
  importId: string;
  personaId: PersonaId;
  /** As in its front matter. */
  messages: number;
  reset: boolean;
}

export type ImportedArchives = ReturnType<typeof createImportedArchives>;

/** Parts are written whole and never changed by an import: a kill leaves those that were done. */
export function createImportedArchives(groupsDir: string, zone: Zone) {
  const namesOf = async (chatId: ChatId) => {
    const names = composedNames(await namesIn(archiveFolder(groupsDir, chatId))).sort();
    return names.flatMap((file) => {
      const { importId, personaId } = parseArchiveName(file) ?? {};
      return importId === undefined || personaId === undefined ? [] : [{ file, importId, personaId }];
    });
  };

  return {
    folder: (chatId: ChatId) => fromHere(archiveFolder(groupsDir, chatId)),

    async list(chatId: ChatId): Promise<ImportedPart[]> {
      const parts: ImportedPart[] = [];
      for (const part of await namesOf(chatId)) {
        const head = await readIfThere(archiveFile(groupsDir, chatId, part.file), HEAD_BYTES);
        const document = documentOf(splitFrontMatter(head?.toString('utf8') ?? '')?.matter ?? '');
        const messages = Number(isMap(document.contents) ? document.get('messages') : 0) || 0;
        const reset = isMap(document.contents) && document.get('reset') === true;
        parts.push({ ...part, messages, reset });
      }
      return parts;
    },

    /** The ids of a part's messages. */
    async *idsIn(chatId: ChatId, file: string): AsyncGenerator<number> {
      const bytes = await readIfThere(archiveFile(groupsDir, chatId, file));
      for (const [, id] of bytes?.toString('utf8').matchAll(/^## .* <!-- m(\d+) -->$/gm) ?? [])
        yield Number(id);
    },

    async write(head: ArchiveHead, importId: string, messages: ArchivedMessage[]): Promise<void> {
      const { chatId, personaId } = head;
      const folder = archiveFolder(groupsDir, chatId);
      const time = localTime(zone, messages[0]?.sentAt ?? head.at).replaceAll(':', '-');
      const extent = messages.reduce(extended, null as Extent | null);
      await orFault(folder, async () => {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await removeLeftOvers(folder, (name) => parseArchiveName(name)?.importId === importId);
        const there = new Set(composedNames(await namesIn(folder)));
        const nameAt = (number: number) => archiveName({ time, number, personaId, importId });
        let number = 1;
        while (there.has(nameAt(number))) number++;
        const text = messages.map((each) => messageText(each, zone)).join('');
        await writeWhole(join(folder, nameAt(number)), headText(head, extent, zone) + text);
      });
    },

    async remove(chatId: ChatId, importId: string): Promise<void> {
      const folder = archiveFolder(groupsDir, chatId);
      const isOfIt = (name: string) => parseArchiveName(name)?.importId === importId;
      await orFault(folder, async () => {
        for (const name of await namesIn(folder))
          if (isOfIt(name)) await rm(join(folder, name), { force: true });
        await removeLeftOvers(folder, isOfIt);
        await syncFolder(folder);
      });
    },
  };
}

/** Above all ids that the store gives. */
const FIRST_ID = 2 ** 52;

export function importedId(key: string): number {
  const hash = createHash('sha256').update(key).digest();
  return FIRST_ID + hash.readUIntBE(0, 6) * 16 + ((hash[6] ?? 0) & 15);
}

/** IDs of any number of messages, in a file that the system removes: a set of millions would take hundreds of megabytes. */
export function createIdSet() {
  const db = new Database('');
  db.exec(
    'PRAGMA journal_mode = OFF; PRAGMA cache_size = -32768; CREATE TABLE seen (id INTEGER PRIMARY KEY); BEGIN',
  );
  const insert = db.prepare<[bigint]>('INSERT OR IGNORE INTO seen VALUES (?)');
  return {
    /** False: it is there already. */
    add: (id: number) => insert.run(BigInt(id)).changes > 0,
    close: () => db.close(),
  };
}
