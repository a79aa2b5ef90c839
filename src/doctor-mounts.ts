/** Findings of `coterie doctor` on mounts: folders that gateways share, where a write of one machine is seen late by another. */
import { sep } from 'node:path';

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
