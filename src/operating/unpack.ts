/**
 * Unpacks a backup into its stages, entry by entry, and refuses as soon as it shows what is no backup of ours, what
 * leads elsewhere, and what would fill the disk. What is written is private, whatever modes and owners the archive
 * tells of. Writes synchronously: a restore has nothing else to do meanwhile.
 */
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { Parser, type ReadEntry } from 'tar';
import { describe, Fault } from '../core/errors.js';
import { ARCHIVE, IN_DATA, INSIDE, type Manifest } from './backup.js';

/** A million files are more than anybody has here, and still end within minutes. */
const MOST_ENTRIES = 1_000_000;
const MANIFEST_BYTES = 64_000;
/** Headers and padding of an archive beside what is in it: in all, and for each entry. */
const OVERHEAD_BYTES = 16_000_000;
const OVERHEAD_PER_ENTRY = 4096;
/** A file takes whole blocks. */
const BLOCK = 4096;

/** How much may still be written to one disk, bytes. Places on one disk share it. */
export interface Room {
  left: number;
}

/** The parts of an archive that are folders. */
export const FOLDERS = ['groups', 'media', 'work', ...IN_DATA] as const;
export type Folder = (typeof FOLDERS)[number];

/** Where the parts of the archive go: the database is a file, the others are folders. */
export type Stages = Record<'database' | Folder, { at: string; room: Room }>;

export interface Unpacked {
  manifest: Manifest;
  /** The folders of which there is something in it. */
  folders: ReadonlySet<Folder>;
}

export function refusal(file: string, why: string): Fault {
  return new Fault('configuration', `${file} cannot be restored: ${why}`);
}

/** `archive` is what it is called; `bytes` is what it holds, decrypted. */
export async function unpack(
  archive: string,
  bytes: AsyncIterable<Uint8Array>,
  stages: Stages,
  mostEntries = MOST_ENTRIES,
): Promise<Unpacked> {
  const found = {
    ...{ manifest: null as Manifest | null, database: false, folders: new Set<Folder>() },
    ...{ entries: 0, declared: 0 },
  };
  let trouble: unknown = null;
  const parser = new Parser({ strict: true, onReadEntry: (entry) => void attempt(() => take(entry)) });
  parser.on('error', (error) => {
    trouble ??= noArchive(archive, error);
  });
  // Of a name that is too long for any file.
  parser.on('ignoredEntry', () => {
    trouble ??= refusal(archive, 'it holds a name that is too long');
  });

  /** Nothing may be thrown through the parser: it would go on in a state of its own. */
  function attempt(work: () => void): void {
    if (trouble !== null) return;
    try {
      work();
    } catch (error) {
      trouble = error;
    }
  }

  function take(entry: ReadEntry): void {
    const path = entry.path.replace(/\/$/, '');
    const isFolder = entry.type === 'Directory';
    const isPlain = isFolder || entry.type === 'File' || entry.type === 'OldFile';
    if (!isPlain || !isOurs(path, isFolder)) {
      throw refusal(archive, `it holds what no backup of ours does: ${shown(path)}`);
    }
    found.entries++;
    if (found.entries > mostEntries) throw refusal(archive, `it holds more than ${mostEntries} files`);
    if (!Number.isSafeInteger(entry.size) || entry.size < 0) throw noArchive(archive, 'a size that is none');
    found.declared += entry.size;
    if (path === ARCHIVE.manifest) takeManifest(entry);
    else takeFile(entry, path, isFolder);
  }

  function takeManifest(entry: ReadEntry): void {
    if (entry.size > MANIFEST_BYTES || found.manifest !== null) {
      throw refusal(archive, 'it is no backup made by coterie');
    }
    const pieces: Uint8Array[] = [];
    entry.on('data', (piece) => pieces.push(piece));
    entry.on('end', () =>
      attempt(() => {
        found.manifest = readManifest(archive, Buffer.concat(pieces).toString());
      }),
    );
  }

  function takeFile(entry: ReadEntry, path: string, isFolder: boolean): void {
    const { at, room } = placeOf(path, stages);
    found.database ||= path === ARCHIVE.database;
    const folder = folderOf(path.split('/')[0]);
    if (folder !== null) found.folders.add(folder);
    const needed = Math.ceil(entry.size / BLOCK) * BLOCK + BLOCK;
    if (needed > room.left) {
      throw refusal(
        archive,
        `unpacked it needs more room than there is on the disk of ${dirname(at)}; make room there first`,
      );
    }
    room.left -= needed;
    const file = make(archive, path, at, isFolder);
    if (file === null) {
      entry.resume();
      return;
    }
    entry.on('data', (piece) => attempt(() => writeFileSync(file, piece)));
    entry.on('end', () => closeSync(file));
  }

  try {
    await pipeline(Readable.from(bytes), createGunzip(), async (plain: AsyncIterable<Buffer>) => {
      let read = 0;
      for await (const piece of plain) {
        read += piece.length;
        parser.write(piece);
        const most = found.declared + OVERHEAD_BYTES + found.entries * OVERHEAD_PER_ENTRY;
        if (read > most) trouble = noArchive(archive, 'it unpacks to far more than the files in it');
        if (trouble !== null) throw trouble;
      }
      parser.end();
      if (trouble !== null) throw trouble;
    });
  } catch (error) {
    // What was refused here comes back as the abortion of what was being read.
    const why = trouble ?? error;
    throw isOfArchive(why) ? noArchive(archive, why) : why;
  }
  const { manifest, database, folders } = found;
  if (manifest === null || !database) throw refusal(archive, 'it is no backup made by coterie');
  return { manifest, folders };
}

function noArchive(archive: string, why: unknown): Fault {
  return refusal(archive, `it is no whole .tar.gz archive (${describe(why)})`);
}

/** What zlib says of bytes that are none of its own. */
function isOfArchive(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^Z_/.test(String(error.code));
}

/** A name that somebody else chose, for one line of text. */
function shown(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}

function isOurs(path: string, isFolder: boolean): boolean {
  const [first, ...rest] = path.split('/');
  const leadsElsewhere = rest.some(
    (part) => part === '' || part === '.' || part === '..' || /[\\\0]/.test(part) || part.startsWith(INSIDE),
  );
  if (leadsElsewhere) return false;
  if (folderOf(first) !== null) return isFolder || rest.length > 0;
  return (first === ARCHIVE.manifest || first === ARCHIVE.database) && rest.length === 0 && !isFolder;
}

function folderOf(name: string | undefined): Folder | null {
  return FOLDERS.find((folder) => folder === name) ?? null;
}

function placeOf(path: string, stages: Stages): { at: string; room: Room } {
  const [first, ...rest] = path.split('/');
  const { at, room } = stages[folderOf(first) ?? 'database'];
  return { at: join(at, ...rest), room };
}

/** A new file, to be written to and closed; null for a folder. Private, and never one that is there already. */
function make(archive: string, path: string, at: string, isFolder: boolean): number | null {
  try {
    mkdirSync(isFolder ? at : dirname(at), { recursive: true, mode: 0o700 });
    return isFolder ? null : openSync(at, 'wx', 0o600);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'EEXIST' && code !== 'ENOTDIR') throw error;
    throw refusal(archive, `it holds ${shown(path)} twice, or a name that is the same on this disk`);
  }
}

function readManifest(archive: string, text: string): Manifest {
  const manifest = parsed(text);
  if (manifest?.format !== ARCHIVE.format || typeof manifest.version !== 'number') {
    throw refusal(archive, 'it is no backup made by coterie');
  }
  const { format, version, madeBy, madeAt, logins = false } = manifest;
  if (version > ARCHIVE.version) {
    throw new Fault(
      'store_newer',
      `${archive} was made by a newer coterie (${madeBy}); update this one first`,
    );
  }
  return { format, version, madeBy: String(madeBy), madeAt: String(madeAt), logins: logins === true };
}

function parsed(text: string): Partial<Manifest> | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
