/** Brings in a folder that OpenClaw or MicroClaw laid out: finds what it is, then puts file after file in its place. */
import { isUtf8 } from 'node:buffer';
import { lstat, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { composed, pathOnDisk } from '../core/names-on-disk.js';
import { type Names, planOfGroups } from './microclaw.js';
import { planOfSkills, planOfWorkspace } from './openclaw.js';
import type { Step } from './plan.js';
import { type Put, put } from './put.js';
import { contentOf, type Source } from './source.js';

export interface ImportOrder {
  folder: string;
  /** Where things go. */
  groups: string;
  workspace: string;
  skills: string;
  names: Names;
}

export interface Imported {
  /** What was recognised; empty: nothing. */
  found: string[];
  /** What became of each file, by its path in the folder. */
  done: (Put & { from: string })[];
  passedOver: Source['passedOver'];
}

export async function importFrom(order: ImportOrder): Promise<Imported> {
  const source: Source = { root: await realpath(order.folder), passedOver: [] };
  const groups = await planOfGroups(source, order.names);
  const workspace = await planOfWorkspace(source, groups.found.length === 0);
  const skills = await planOfSkills(source);
  const plans = [groups, workspace, skills];
  const done: Imported['done'] = [];
  for (const step of plans.flatMap(({ steps }) => steps)) {
    const outcome = await take(source, order, step);
    if (outcome !== null) done.push({ ...outcome, from: step.from?.join('/') ?? '' });
  }
  return { found: plans.flatMap(({ found }) => found), done, passedOver: source.passedOver };
}

/** null: passed over, or nothing to tell. */
async function take(source: Source, order: ImportOrder, step: Step): Promise<Put | null> {
  const names = await pathOnDisk(order[step.place], step.to.map(composed));
  const target = join(order[step.place], ...names);
  const before = Buffer.from(step.text ?? '');
  if (step.from === null) {
    if ((await lstat(target).catch(() => null)) !== null) return null;
    return put(target, { bytes: before, isExecutable: false }, false);
  }
  const content = await contentOf(source, step.from);
  if (content === null) return null;
  if (step.isTextAlone && !isText(content.bytes)) {
    source.passedOver.push({ path: step.from.join('/'), why: 'it is no text' });
    return null;
  }
  if ((await realpath(target).catch(() => null)) === join(source.root, ...step.from)) {
    source.passedOver.push({ path: step.from.join('/'), why: 'it is the very file in its place' });
    return null;
  }
  if (step.place === 'workspace' && (await leadsOut(order.workspace, names))) {
    return { kind: 'impossible', path: target, why: 'a folder on the way is a link that leads out' };
  }
  const whole = { ...content, bytes: Buffer.concat([before, content.bytes]) };
  return put(target, whole, step.isAlwaysBeside === true);
}

function isText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}

/** Agents work in the workspace, too, so a folder in it may be a link to anywhere. */
async function leadsOut(folder: string, names: readonly string[]): Promise<boolean> {
  const root = await realpath(folder).catch(() => folder);
  for (let depth = 1; depth < names.length; depth++) {
    const above = await realpath(join(root, ...names.slice(0, depth))).catch(() => root);
    if (above !== root && !above.startsWith(root + sep)) return true;
  }
  return false;
}
