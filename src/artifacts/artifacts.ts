/**
 * Files of artifacts, `data/artifacts/<task_id>/<id>.<ext>`, each with a hidden note next to it
 * (`.@<id>.json`). Agents' commands write into the same folders, so the contents are untrusted: links are not
 * followed, and a visible file without a note is still an artifact, by its name.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, lstat, mkdir, readdir, realpath, rm } from 'node:fs/promises';
import { extname, join } from 'node:path';
import * as z from 'zod';
import {
  type ArtifactRef,
  type Artifacts,
  type FoundArtifact,
  isArtifactId,
  isMimeType,
  type ListedArtifact,
  type NewArtifact,
  type WrittenArtifact,
} from '../core/artifacts.js';
import { entryOf, madeWithin, type OpenFolder, openFile, within } from '../core/beneath.js';
import type { Exclusive } from '../core/concurrency.js';
import { sizeInWords } from '../core/cut.js';
import { codeOf, unavailable } from '../core/file-access.js';
import { endingOf, typeOf } from '../core/file-types.js';
import type { ChatId } from '../core/ids.js';
import { writeWhole } from '../core/write-whole.js';

/** Per task or turn. */
const MOST_ARTIFACTS = 200;
const MOST_TITLE = 200;
/** Larger than any note next to an artifact. */
const MOST_NOTE_BYTES = 10_000;

const note = z.object({ file: z.string(), type: z.string(), title: z.string().nullable() });
type Note = z.infer<typeof note>;

/** An artifact's file in its folder. */
interface Lying {
  id: string;
  file: string;
}

interface Places {
  /** `data/artifacts` */
  folder: string;
  /** `data/media`: a file sent to a chat is kept there with the chat's other files. */
  mediaFolder: string;
  mostBytes: number;
  /** Serialises the writers of a task. */
  exclusive: Exclusive;
}

export function createArtifacts({ folder, mediaFolder, mostBytes, exclusive }: Places): Artifacts {
  return {
    async write(artifact, signal) {
      const { taskId, id, content, type } = artifact;
      if (!isTaskId(taskId) || !isArtifactId(id)) return refused(BAD_ID);
      if (type !== null && !isMimeType(type)) return refused('type must be a MIME type, like text/markdown.');
      const bytes = Buffer.byteLength(content);
      if (bytes > mostBytes) {
        return refused(`it has ${sizeInWords(bytes)}; an artifact may have ${sizeInWords(mostBytes)}.`);
      }
      const path = join(folder, taskId);
      return exclusive(path, async () => {
        try {
          await mkdir(folder, { recursive: true, mode: 0o700 });
          const root = await realpath(folder);
          return await within(root, [taskId], (task) => put(task, mediaFolder, artifact, signal), madeWithin);
        } catch (error) {
          if (LEADS_ELSEWHERE.has(codeOf(error))) return refused('its folder is no folder.');
          throw unavailable('write', path, error);
        }
      });
    },
    async find(taskId, id) {
      const opened = await open(folder, taskId, id);
      if (opened === null) return null;
      const { handle, ...found } = opened;
      await handle.close();
      return found;
    },
    open: (taskId, id) => open(folder, taskId, id),
    async list(taskId) {
      const refs = await inTask(folder, taskId, async (task) => {
        const found: ArtifactRef[] = [];
        for await (const { id, file } of currentIn(task)) {
          found.push(refTo(taskId, id, file, await noteOf(task, id, file)));
        }
        return found;
      });
      return refs ?? [];
    },
    async newest(most, taskId) {
      const found: ListedArtifact[] = [];
      for (const each of taskId === undefined ? await tasksIn(folder) : [taskId]) {
        if (found.length >= most) break;
        found.push(...((await inTask(folder, each, (task) => listedIn(task, each))) ?? []));
      }
      return found.sort((one, other) => other.at - one.at).slice(0, most);
    },
  };
}

/** Newest first: where a file is written anew, its folder's time changes, too. */
async function tasksIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    if (NOT_THERE.has(codeOf(error))) return [];
    throw unavailable('read', folder, error);
  });
  const names = entries.flatMap((entry) => (entry.isDirectory() && isTaskId(entry.name) ? [entry.name] : []));
  const dated = await Promise.all(
    // Another process may have removed it.
    names.map(async (name) => ({
      name,
      at: (await lstat(join(folder, name)).catch(() => null))?.mtimeMs ?? 0,
    })),
  );
  return dated.sort((one, other) => other.at - one.at).map(({ name }) => name);
}

async function listedIn(task: OpenFolder, taskId: string): Promise<ListedArtifact[]> {
  const found: ListedArtifact[] = [];
  for await (const { id, file } of currentIn(task)) {
    const { type, title } = await noteOf(task, id, file);
    const standing = await lstat(entryOf(task, file)).catch(() => null);
    if (!standing?.isFile()) continue;
    const name = shownName(id, extname(file).toLowerCase());
    found.push({ taskId, id, name, type, title, bytes: standing.size, at: Math.round(standing.mtimeMs) });
  }
  return found;
}

/** null: the folder does not exist, or is something else. */
async function inTask<T>(
  folder: string,
  taskId: string,
  use: (task: OpenFolder) => Promise<T>,
): Promise<T | null> {
  if (!isTaskId(taskId)) return null;
  try {
    return await within(await realpath(folder), [taskId], use);
  } catch (error) {
    if (NOT_THERE.has(codeOf(error))) return null;
    throw unavailable('read', join(folder, taskId), error);
  }
}

async function open(
  folder: string,
  taskId: string,
  id: string,
): Promise<(FoundArtifact & { handle: FileHandle }) | null> {
  if (!isArtifactId(id)) return null;
  return inTask(folder, taskId, async (task) => {
    const file = await currentOf(task, id, await lyingIn(task));
    if (file === null) return null;
    const { type, title } = await noteOf(task, id, file);
    const path = join(await realpath(folder), taskId, file);
    const handle = await openPlainly(task, file);
    if (handle === null) return null;
    const { size: bytes } = await handle.stat();
    return { path, name: shownName(id, extname(file).toLowerCase()), type, title, bytes, handle };
  });
}

async function put(
  task: OpenFolder,
  mediaFolder: string,
  artifact: NewArtifact,
  signal: AbortSignal,
): Promise<WrittenArtifact> {
  const { taskId, id, content } = artifact;
  const lying = await lyingIn(task);
  const before = lying.filter((each) => each.id === id);
  const alike = lying.find((each) => each.id !== id && each.id.toLowerCase() === id.toLowerCase());
  if (alike !== undefined) {
    return refused(`there is an artifact ${alike.id}, and two ids may not differ in capitals alone.`);
  }
  if (before.length === 0 && lying.length >= MOST_ARTIFACTS) {
    return refused(`there are ${MOST_ARTIFACTS} artifacts already; give the id of one to replace it.`);
  }
  // Without one, it is that of the id's own ending: `plan.csv`.
  const type = artifact.type ?? typeOf(id) ?? 'text/markdown';
  const title = artifact.title?.trim().slice(0, MOST_TITLE) || null;
  const extension = `.${endingOf(type)}`;
  const file = id + extension;
  const standing = await lstat(entryOf(task, file)).catch(() => null);
  if (standing !== null && !standing.isFile()) return refused(`something that is no file is called ${file}.`);
  if (signal.aborted) return refused(STOPPED);
  await writeWhole(entryOf(task, file), content);
  const kept: Note = { file, type, title };
  await writeWhole(entryOf(task, noteName(id)), `${JSON.stringify(kept)}\n`);
  // Removes versions of another type.
  for (const old of before) if (old.file !== file) await rm(entryOf(task, old.file), { force: true });
  const ref = refTo(taskId, id, file, kept);
  if (artifact.chatId === undefined) return { ok: true, ref, file: null };
  const path = await copyFor(mediaFolder, artifact.chatId, artifact, extension);
  return { ok: true, ref, file: { path, name: shownName(id, extension) } };
}

/** Uses a name that no file of a message has; the same for the same artifact. */
async function copyFor(
  mediaFolder: string,
  chatId: ChatId,
  from: NewArtifact,
  extension: string,
): Promise<string> {
  const { taskId, id, content } = from;
  const key = createHash('sha256')
    .update(JSON.stringify([taskId, id, content]))
    .digest('hex');
  const name = `sent-${key.slice(0, 24)}${extension}`;
  await mkdir(mediaFolder, { recursive: true, mode: 0o700 });
  const root = await realpath(mediaFolder);
  await within(root, [chatId], (chat) => writeWhole(entryOf(chat, name), content), madeWithin);
  return join(root, chatId, name);
}

const BAD_ID = 'an id has 1 to 64 letters, digits, dots, underscores and hyphens, and is neither . nor ..';
const STOPPED = 'stopped before anything was written.';

function refused(reason: string): WrittenArtifact {
  return { ok: false, reason };
}

function isTaskId(id: string): boolean {
  return /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/.test(id);
}

function refTo(taskId: string, id: string, file: string, { type, title }: Omit<Note, 'file'>) {
  const ref = { id, type, ref: `artifacts/${taskId}/${file}` };
  return title === null ? ref : { ...ref, title };
}

function noteName(id: string): string {
  return `.@${id}.json`;
}

/** The plain files of a folder with an artifact's name, sorted by name. */
async function lyingIn(task: OpenFolder): Promise<Lying[]> {
  const found = await readdir(entryOf(task, '.'), { withFileTypes: true });
  const names = new Set(found.map(({ name }) => name));
  return found
    .flatMap((entry) => {
      const [, id = ''] = entry.isFile() ? (/^(.+)\.[A-Za-z0-9]+$/.exec(entry.name) ?? []) : [];
      // A hidden file counts only if it was written here: others are notes or unfinished.
      const isOne = isArtifactId(id) && (!id.startsWith('.') || names.has(noteName(id)));
      return isOne ? [{ id, file: entry.name }] : [];
    })
    .sort((one, other) => (one.file < other.file ? -1 : 1));
}

/** A command may have filled the folder: it is read once, and at most a task's maximum is reported. */
async function* currentIn(task: OpenFolder): AsyncGenerator<Lying> {
  const lying = await lyingIn(task);
  for (const id of [...new Set(lying.map((each) => each.id))].slice(0, MOST_ARTIFACTS)) {
    const file = await currentOf(task, id, lying);
    if (file !== null) yield { id, file };
  }
}

/** The artifact's current file: the one written last through here, else the first with its name. */
async function currentOf(task: OpenFolder, id: string, lying: readonly Lying[]): Promise<string | null> {
  const files = lying.filter((each) => each.id === id).map(({ file }) => file);
  const known = files.length < 2 ? null : await readNote(task, id);
  return files.find((file) => file === known?.file) ?? files[0] ?? null;
}

async function noteOf(task: OpenFolder, id: string, file: string): Promise<Omit<Note, 'file'>> {
  const known = await readNote(task, id);
  return known?.file === file && isMimeType(known.type)
    ? known
    : { type: typeOf(file) ?? 'application/octet-stream', title: null };
}

/** null if no note was written here. */
async function readNote(task: OpenFolder, id: string): Promise<Note | null> {
  // The former name, from when artifact ids could not begin with a dot.
  const former = id.startsWith('.') ? null : `.${id}.json`;
  const written = await openPlainly(task, noteName(id));
  const handle = written ?? (former === null ? null : await openPlainly(task, former));
  if (handle === null) return null;
  try {
    const { size } = await handle.stat();
    if (size > MOST_NOTE_BYTES) return null;
    const read = note.safeParse(JSON.parse(await handle.readFile('utf8')));
    return read.success ? { ...read.data, title: read.data.title?.slice(0, MOST_TITLE) ?? null } : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  } finally {
    await handle.close();
  }
}

/** null for anything but a plain file. */
async function openPlainly(task: OpenFolder, name: string): Promise<FileHandle | null> {
  try {
    const found = await lstat(entryOf(task, name));
    return found.isFile() ? await openFile(task, name) : null;
  } catch (error) {
    if (NOT_THERE.has(codeOf(error))) return null;
    throw error;
  }
}

const LEADS_ELSEWHERE = new Set(['ENOTDIR', 'ELOOP']);
const NOT_THERE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO']);

/** Display name: `plan.csv.csv` would look like a mistake. */
function shownName(id: string, extension: string): string {
  return id.toLowerCase().endsWith(extension) ? id : id + extension;
}
