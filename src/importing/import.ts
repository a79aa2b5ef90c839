/** Brings in a folder that OpenClaw or MicroClaw laid out: finds what it is, then puts file after file in its place. */
import { isUtf8 } from 'node:buffer';
import { lstat, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { splitFrontMatter } from '../core/front-matter.js';
import { composed, pathOnDisk } from '../core/names-on-disk.js';
import { planOfGroups } from './microclaw.js';
import { planOfSkills, planOfWorkspace } from './openclaw.js';
import { planOfSouls } from './persona.js';
import type { Names, Step } from './plan.js';
import { createPlanned, DISK, type Put, put, type Target } from './put.js';
import { passOverRest } from './rest.js';
import { contentOf, type Source } from './source.js';

export interface ImportOrder {
  folder: string;
  /** Where things go. */
  groups: string;
  workspace: string;
  skills: string;
  names: Names;
  /** Nothing is written; the result is the same. */
  isDryRun?: boolean;
}

export interface Imported {
  /** What was recognised; empty: nothing. */
  found: string[];
  /** What became of each file, by its path in the folder; several where they became one. `hint`: what to do with it. */
  done: (Put & { from: string[]; hint?: string })[];
  passedOver: Source['passedOver'];
}

export async function importFrom(order: ImportOrder): Promise<Imported> {
  const source: Source = { root: await realpath(order.folder), passedOver: [] };
  const groups = await planOfGroups(source, order.names);
  const workspace = await planOfWorkspace(source, groups.found.length === 0, order.names);
  const skills = await planOfSkills(source);
  const souls = groups.found.length > 0 ? [await planOfSouls(source, order.names)] : [];
  const plans = [groups, workspace, skills, ...souls];
  const target = order.isDryRun === true ? createPlanned() : DISK;
  const done: Imported['done'] = [];
  for (const step of plans.flatMap(({ steps }) => steps)) {
    const outcome = await take(source, order, target, step);
    if (outcome !== null) done.push(outcome);
  }
  const taken = new Set(done.flatMap(({ from }) => from));
  const passedOver = source.passedOver.filter(
    ({ path }, n, all) => !taken.has(path) && all.findIndex((each) => each.path === path) === n,
  );
  const rest: Source = { root: source.root, passedOver };
  await passOverRest(rest, taken);
  return { found: plans.flatMap(({ found }) => found), done, passedOver: rest.passedOver };
}

/** null: passed over, or nothing to tell. */
async function take(
  source: Source,
  order: ImportOrder,
  target: Target,
  step: Step,
): Promise<Imported['done'][number] | null> {
  const names = await pathOnDisk(order[step.place], step.to.map(composed));
  const path = join(order[step.place], ...names);
  const before = Buffer.from(step.text ?? '');
  if (step.from === null) {
    if ((await lstat(path).catch(() => null)) !== null) return null;
    const outcome = await put(target, path, { bytes: before, isExecutable: false }, false);
    // In a dry run an earlier step may have made the very same.
    return outcome.kind === 'new' || outcome.kind === 'impossible' ? { ...outcome, from: [] } : null;
  }
  const content = await contentOf(source, step.from);
  if (content === null) return null;
  const isOfText = step.isTextAlone === true || step.isBodyAlone === true;
  if (isOfText && !isText(content.bytes)) {
    source.passedOver.push({ path: step.from.join('/'), why: 'it is no text' });
    return null;
  }
  if ((await realpath(path).catch(() => null)) === join(source.root, ...step.from)) {
    source.passedOver.push({ path: step.from.join('/'), why: 'it is the very file in its place' });
    return null;
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
  if (step.place === 'workspace' && (await leadsOut(order.workspace, names))) {
    return { kind: 'impossible', path, why: 'a folder on the way is a link that leads out', from };
  }
  const whole = { ...content, bytes: Buffer.concat(pieces) };
  const outcome = await put(target, path, whole, step.isAlwaysBeside === true);
  if (step.hint === undefined) return { ...outcome, from };
  const isItself = outcome.kind !== 'beside' && outcome.path === path;
  return { ...outcome, from, hint: isItself ? step.hint : BESIDE };
}

const BESIDE =
  'The library has another persona of that name: give this file a name of its own there, and it is one, too.';

function isText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}

/** What stands below the front matter, if there is one. */
function bodyOf(bytes: Buffer): Buffer {
  const parts = splitFrontMatter(bytes.toString('utf8'));
  return parts === null ? bytes : Buffer.from(parts.body.trimStart());
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
