/**
 * Imports a folder in OpenClaw's or MicroClaw's layout: copies each file to its place. Existing files never
 * change: the new one goes next to them, as `MEMORY.imported.md`, `MEMORY.imported-2.md`, …, but never twice
 * with the same content. Each file appears whole, so a running gateway sees all of it or nothing.
 */
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { link, lstat, mkdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { codeOf, isWithin, realAsFarAsThere } from '../core/file-access.js';
import { composed, pathOnDisk } from '../core/file-names.js';
import { splitFrontMatter } from '../core/file-text.js';
import { openTemporary } from '../core/write-whole.js';
import { planOfGroups } from './microclaw.js';
import { planOfSkills, planOfSouls, planOfWorkspace } from './openclaw.js';
import {
  contentOf,
  type FileContent,
  type ImportNames,
  type ImportSource,
  type ImportStep,
  passOver,
  passOverRest,
} from './source.js';

export interface ImportOrder {
  folder: string;
  groups: string;
  workspace: string;
  skills: string;
  names: ImportNames;
  /** Writes nothing; the result is the same. */
  isDryRun?: boolean;
}

export interface Imported {
  found: string[];
  /** The outcome for each file, by its path in the folder; several if merged. `hint`: the next step. */
  done: (Put & { from: string[]; hint?: string })[];
  passedOver: ImportSource['passedOver'];
}

export async function importFrom(order: ImportOrder): Promise<Imported> {
  const source: ImportSource = { root: await realpath(order.folder), passedOver: [] };
  const groups = await planOfGroups(source, order.names);
  const workspace = await planOfWorkspace(source, groups.found.length === 0, order.names);
  const skills = await planOfSkills(source);
  const souls = groups.found.length > 0 ? [await planOfSouls(source, order.names)] : [];
  const plans = [groups, workspace, skills, ...souls];
  const planned: Planned = order.isDryRun === true ? new Map() : null;
  const done: Imported['done'] = [];
  for (const step of plans.flatMap(({ steps }) => steps)) {
    const outcome = await take(source, order, planned, step);
    if (outcome !== null) done.push(outcome);
  }
  const taken = new Set(done.flatMap(({ from }) => from));
  const passedOver = source.passedOver.filter(
    ({ path }, n, all) => !taken.has(path) && all.findIndex((each) => each.path === path) === n,
  );
  const rest: ImportSource = { root: source.root, passedOver };
  await passOverRest(rest, taken);
  return { found: plans.flatMap(({ found }) => found), done, passedOver: rest.passedOver };
}

/** null: skipped, or nothing to report. */
async function take(
  source: ImportSource,
  order: ImportOrder,
  planned: Planned,
  step: ImportStep,
): Promise<Imported['done'][number] | null> {
  const names = await pathOnDisk(order[step.place], step.to.map(composed));
  const path = join(order[step.place], ...names);
  const before = Buffer.from(step.text ?? '');
  if (step.from === null) {
    if ((await lstat(path).catch(() => null)) !== null) return null;
    const outcome = await put(planned, path, { bytes: before, isExecutable: false }, false);
    // In a dry run an earlier step may have created the same file.
    return outcome.kind === 'new' || outcome.kind === 'impossible' ? { ...outcome, from: [] } : null;
  }
  const content = await contentOf(source, step.from);
  if (content === null) return null;
  const isOfText = step.isTextAlone === true || step.isBodyAlone === true;
  if (isOfText && !isText(content.bytes)) {
    return passOver(source, step.from, 'it is no text');
  }
  if ((await realpath(path).catch(() => null)) === join(source.root, ...step.from)) {
    return passOver(source, step.from, 'it is the very file in its place');
  }
  const from = [step.from.join('/')];
  const pieces = [before, step.isBodyAlone === true ? bodyOf(content.bytes) : content.bytes];
  for (const { from: names, heading } of step.more ?? []) {
    const more = await contentOf(source, names);
    if (more === null || !isText(more.bytes)) continue;
    const body = step.isBodyAlone === true ? bodyOf(more.bytes) : more.bytes;
    pieces.push(Buffer.from(`\n\n# ${heading}\n\n`), body);
    from.push(names.join('/'));
  }
  // Agents work in the workspace, too, so a folder in it may be a link to anywhere.
  const isOut = async () =>
    !isWithin(await realAsFarAsThere(dirname(path)), await realAsFarAsThere(order.workspace));
  if (step.place === 'workspace' && (await isOut())) {
    return { kind: 'impossible', path, why: 'a folder on the way is a link that leads out', from };
  }
  const whole = { ...content, bytes: Buffer.concat(pieces) };
  const outcome = await put(planned, path, whole, step.isAlwaysBeside === true);
  if (step.hint === undefined) return { ...outcome, from };
  const isItself = outcome.kind !== 'beside' && outcome.path === path;
  return { ...outcome, from, hint: isItself ? step.hint : BESIDE };
}

const BESIDE =
  'The library has another persona of that name: give this file a name of its own there, and it is one, too.';

function isText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}

/** The text below the front matter, if any. */
function bodyOf(bytes: Buffer): Buffer {
  const parts = splitFrontMatter(bytes.toString('utf8'));
  return parts === null ? bytes : Buffer.from(parts.body.trimStart());
}

type Put =
  | { kind: 'new' | 'beside' | 'same'; path: string }
  | { kind: 'impossible'; path: string; why: string };

/** In a dry run: hashes of what would be written, by path; null: the disk. */
type Planned = Map<string, string> | null;

async function put(
  planned: Planned,
  path: string,
  content: FileContent,
  isAlwaysBeside: boolean,
): Promise<Put> {
  try {
    for (let number = isAlwaysBeside ? 1 : 0; ; number++) {
      const at = besideAs(path, number);
      if (await holds(planned, at, content.bytes)) return { kind: 'same', path: at };
      if (await putIfFree(planned, at, content)) return { kind: number === 0 ? 'new' : 'beside', path: at };
      // Another import may have written the same content first.
      if (await holds(planned, at, content.bytes)) return { kind: 'same', path: at };
    }
  } catch (error) {
    return { kind: 'impossible', path, why: error instanceof Error ? error.message : String(error) };
  }
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Throws if no folder can be made, because something else is in its way. */
async function refuseUnlessFolder(path: string): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory()) return;
  if (found !== null) throw new Error(`${path} is no folder`);
  if (dirname(path) !== path) await refuseUnlessFolder(dirname(path));
}

/** 0: its own name. Archives have their own numbering, which makes them recognisable. */
function besideAs(path: string, number: number): string {
  if (number === 0) return path;
  const [, time, persona] = /^(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)-(.+\.md)$/.exec(basename(path)) ?? [];
  if (time !== undefined) return join(dirname(path), `${time}_${number + 1}-${persona}`);
  const end = extname(path);
  const stem = basename(path, end);
  return join(dirname(path), `${stem}.imported${number === 1 ? '' : `-${number}`}${end}`);
}

async function holds(planned: Planned, path: string, bytes: Buffer): Promise<boolean> {
  if (planned?.get(path) === hashOf(bytes)) return true;
  const found = await lstat(path).catch(() => null);
  if (found === null || !found.isFile() || found.size !== bytes.length) return false;
  return (await readFile(path)).equals(bytes);
}

/** False if the path exists. */
async function putIfFree(
  planned: Planned,
  path: string,
  { bytes, isExecutable }: FileContent,
): Promise<boolean> {
  if (planned === null) await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  else await refuseUnlessFolder(dirname(path));
  if (planned?.has(path) || (await lstat(path).catch(() => null)) !== null) return false;
  if (planned !== null) {
    planned.set(path, hashOf(bytes));
    return true;
  }
  const { path: temporary, file } = await openTemporary(path);
  try {
    await file.writeFile(bytes);
    if (isExecutable) await file.chmod(0o700);
    await file.sync();
    await link(temporary, path).catch((error: unknown) => {
      // Some disks have no links.
      if (!['EPERM', 'ENOTSUP', 'ENOSYS'].includes(codeOf(error))) throw error;
      return rename(temporary, path);
    });
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await file.close();
    await rm(temporary, { force: true });
  }
}
