/** Findings of `coterie doctor` on mounts: folders that gateways share, where a write of one machine is seen late by another. */
import { randomUUID } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import { sep } from 'node:path';
import type { Config } from './config.js';
import { systemClock } from './core/clock.js';
import { type EditsSeen, SEEN_WITHIN_MS, timeEdits } from './operating/edits-seen.js';
import type { Inspected } from './store/inspect.js';

interface Mount {
  at: string;
  type: string;
  options: ReadonlyMap<string, string>;
}

/** How long a file is believed without asking: each of them is 0, or the mount is not safe. */
const TIMES = ['acregmin', 'acregmax', 'acdirmin', 'acdirmax'];
/** File systems in a process whose files are on this machine: they see every write. */
const LOCAL_IN_PROCESS = ['fuse.fuse-overlayfs', 'fuse.mergerfs', 'fuse.bindfs', 'fuse.gocryptfs'];
const NETWORK = /^(nfs4?|cifs|smb3|fuse\.sshfs)$/;

/** Problems only, and only where Linux tells how the folders are mounted. */
export async function mountsOf({ dataDir, groupsDir, store }: Config): Promise<string[]> {
  const table = await readFile('/proc/mounts', 'utf8').catch(() => '');
  const resolved = (folder: string) => realpath(folder).catch(() => folder);
  const [data, groups] = [await resolved(dataDir), await resolved(groupsDir)];
  if (store.url === null) return sqliteFindings(table, data);
  return mountFindings(table, { data_dir: data, groups_dir: groups });
}

/**
 * One sentence for each folder on a mount that may show an edit late. `table`: as in /proc/mounts; the folders: resolved,
 * by the keys that name them.
 */
export function mountFindings(table: string, folders: Readonly<Record<string, string>>): string[] {
  const mounts = mountsIn(table);
  return Object.entries(folders).flatMap(([key, folder]) => {
    const mount = mountOf(folder, mounts);
    const remedy = mount && remedyFor(mount);
    if (!remedy) return [];
    const what = `${key} (${folder}) is on ${mount.type}, where an edit on another machine may be seen late`;
    return [`${what}: personas would answer from old files. ${remedy}`];
  });
}

/** One sentence if the folder of a SQLite file is on a network: its locks do not hold there. */
export function sqliteFindings(table: string, folder: string): string[] {
  const mount = mountOf(folder, mountsIn(table));
  if (!mount || !NETWORK.test(mount.type)) return [];
  return [
    `data_dir (${folder}) is on ${mount.type}, and SQLite's locks do not hold on a network; move it to a local disk, or set store.url`,
  ];
}

/** Later than this, a persona may answer from a file that was edited before the question. */
const LATE_MS = 1_000;

/** Asks the gateways how late they see an edit in `groups_dir`; nothing where there are not several. */
export async function editFindings(found: Inspected | null, folder: string) {
  const nodes = (await found?.living()) ?? [];
  if (!found?.reads || nodes.length < 2) return [];
  const elapsed = () => performance.now();
  const timed = { folder, notices: found.reads, clock: systemClock, elapsed, newId: randomUUID };
  const { seen, late } = seenFindings(await timeEdits(nodes, timed), folder);
  const inState = <State>(state: State, texts: string[]) => texts.map((text) => ({ state, text }));
  return [...inState('ok' as const, seen), ...inState('warning' as const, late)];
}

/** Those that see an edit in time, and a sentence for each other one. `folder`: `groups_dir` here. */
export function seenFindings(
  found: readonly EditsSeen[],
  folder: string,
): { seen: string[]; late: string[] } {
  const inTime: string[] = [];
  const late: string[] = [];
  for (const one of found) {
    if (one.kind === 'silent') {
      late.push(
        `the gateway ${one.node} did not say within ${SEEN_WITHIN_MS / 1_000} s what it sees in groups_dir; it stands still, begins just now or is of an older version. Run doctor again when it is up`,
      );
    } else if (one.kind === 'no file') {
      late.push(
        `the gateway ${one.node} does not see a file that was made in ${folder}: its groups_dir is another folder, or one that it may not read. Mount the shared volume there`,
      );
    } else if (one.longestMs !== null && one.longestMs <= LATE_MS) {
      inTime.push(`${one.node} after ${inSeconds(one.longestMs)}`);
    } else {
      const after = one.longestMs === null ? 'not within' : 'only after';
      late.push(
        `the gateway ${one.node} saw an edit in groups_dir ${after} ${inSeconds(one.longestMs ?? SEEN_WITHIN_MS)}, so personas answer from old files there. Mount the volume so that it keeps nothing back: NFS with actimeo=0 (or noac), SMB with cache=none,actimeo=0`,
      );
    }
  }
  return { seen: inTime.length === 0 ? [] : [`an edit in groups_dir is seen by ${inTime.join(', ')}`], late };
}

function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}

function mountsIn(table: string): Mount[] {
  return table.split('\n').flatMap((line) => {
    const [, at, type, options] = line.split(' ');
    if (at === undefined || type === undefined || options === undefined) return [];
    const given = options.split(',').map((option): [string, string] => {
      const equals = option.indexOf('=');
      return equals < 0 ? [option, ''] : [option.slice(0, equals), option.slice(equals + 1)];
    });
    return [{ at: unescaped(at), type, options: new Map(given) }];
  });
}

/** Blanks and backslashes of a path are octal there. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}

/** The innermost; of several on one place, the last one is seen. */
function mountOf(folder: string, mounts: readonly Mount[]): Mount | undefined {
  const above = mounts.filter(({ at }) => at === sep || folder === at || folder.startsWith(`${at}${sep}`));
  const depth = Math.max(...above.map(({ at }) => at.length));
  return above.findLast(({ at }) => at.length === depth);
}

/** null: each write is seen at once, or the kind is not known to hold any back. */
function remedyFor({ type, options }: Mount): string | null {
  const zero = (names: readonly string[]) => names.every((name) => options.get(name) === '0');
  if (type === 'nfs' || type === 'nfs4') {
    const isSafe = options.has('noac') || zero(['actimeo']) || zero(TIMES);
    return isSafe ? null : 'Mount it with actimeo=0 (or noac)';
  }
  if (type === 'cifs' || type === 'smb3') {
    const asksEachTime = zero(['actimeo']) || zero(['acregmax', 'acdirmax']);
    return asksEachTime && options.get('cache') === 'none' ? null : 'Mount it with cache=none,actimeo=0';
  }
  if (type === 'fuse.sshfs') return 'Its caches cannot be seen here: use NFS with actimeo=0 instead';
  if (type.startsWith('fuse.') && !LOCAL_IN_PROCESS.includes(type)) {
    return 'Turn its caches of files and attributes off, and try it: save a persona on one machine, and read it on another';
  }
  return null;
}
