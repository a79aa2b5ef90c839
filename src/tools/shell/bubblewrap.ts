/** bubblewrap's options: a command sees programs, its folders and received files; no other process, no privileges. */
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { delimiter, dirname, join, relative } from 'node:path';
import { isBelow, isWithin, realOnes } from '../../core/file-access.js';
import { AGENTS_MEDIA_INSIDE, HOME_INSIDE, MEDIA } from '../files/paths.js';
import { type FileRoots, SKILLS } from '../files/roots.js';

interface SandboxOrder {
  allowed: FileRoots;
  /** The gateway's own folders and files: hidden from commands, wherever they are. */
  hidden: readonly string[];
  network: boolean;
  /** Start folder: a real path in one of the roots. */
  cwd: string;
}

/** Programs and their libraries. A link (`/bin` to `usr/bin`) is a link inside, too. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store'];
/** Only the settings that programs need to start, to tell the time and to know certificates. */
const SETTINGS = [
  ...['/etc/ld.so.cache', '/etc/ld.so.conf', '/etc/ld.so.conf.d', '/etc/alternatives', '/etc/localtime'],
  ...['/etc/ssl/certs', '/etc/ssl/openssl.cnf', '/etc/ca-certificates', '/etc/pki/tls/certs'],
  ...['/etc/pki/ca-trust/extracted', '/etc/crypto-policies', '/etc/mime.types'],
];
const NETWORK_SETTINGS = ['/etc/resolv.conf', '/etc/hosts', '/etc/nsswitch.conf', '/etc/services'];
/** Files in memory count for no process, so they have a limit of their own. */
const TMP_BYTES = 100_000_000;
const SHARED_MEMORY_BYTES = 16_000_000;
const ISOLATION = [
  ...['--unshare-all', '--unshare-user', '--disable-userns', '--cap-drop', 'ALL'],
  ...['--new-session', '--die-with-parent', '--hostname', 'sandbox'],
];
const PROBE_MS = 10_000;

export const PATH_INSIDE = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const SKILLS_INSIDE = join(HOME_INSIDE, SKILLS);
/** bubblewrap's status output: without an exit code in it, nothing was run. */
export const STATUS_DESCRIPTOR = 3;
/** Where it reads `forbiddenCalls`. */
export const FILTER_DESCRIPTOR = 5;

/** Path of the program; null if not installed. */
export function findBubblewrap(path = process.env.PATH ?? ''): string | null {
  const folders = [...path.split(delimiter).filter(Boolean), '/usr/bin', '/usr/local/bin'];
  return folders.map((folder) => join(folder, 'bwrap')).find(isExecutable) ?? null;
}

export async function bubblewrapArguments(order: SandboxOrder): Promise<string[]> {
  const { allowed, network, cwd } = order;
  const hidden = await found(order.hidden);
  const amongPrograms = hidden.filter(({ path }) => SYSTEM.some((folder) => isBelow(path, folder)));
  const settings = network ? [...SETTINGS, ...NETWORK_SETTINGS] : SETTINGS;
  return [
    ...ISOLATION,
    ...(network ? ['--share-net'] : []),
    ...(await Promise.all(SYSTEM.map(asItIs))).flat(),
    ...settings.flatMap((path) => ['--ro-bind-try', path, path]),
    ...masking(amongPrograms),
    ...['--proc', '/proc', '--dev', '/dev', '--size', String(SHARED_MEMORY_BYTES), '--tmpfs', '/dev/shm'],
    ...['--perms', '1777', '--size', String(TMP_BYTES), '--tmpfs', '/tmp', '--symlink', '../tmp', '/var/tmp'],
    ...binding(allowed, hidden),
    // In /proc/sys the root user could change kernel settings of the whole machine.
    ...['/proc', '/dev', '/'].flatMap((path) => ['--remount-ro', path]),
    // The mount over a hidden folder is in memory, without a limit.
    ...amongPrograms.flatMap(({ path, isFolder }) => (isFolder ? ['--remount-ro', path] : [])),
    ...['--chdir', insideAs(allowed, cwd), '--json-status-fd', String(STATUS_DESCRIPTOR)],
    ...['--seccomp', String(FILTER_DESCRIPTOR)],
  ];
}

/** Checks whether a sandbox can be made: null, or why not. */
export async function bubblewrapFault(program = findBubblewrap()): Promise<string | null> {
  if (program === null) return 'it is not installed';
  // The first thing that containers forbid is a /proc of one's own.
  const mounts = ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--remount-ro', '/proc'];
  const probe = spawn(program, [...ISOLATION, ...mounts, 'true'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: PROBE_MS,
    killSignal: 'SIGKILL',
  });
  let said = '';
  probe.stderr.on('data', (piece: Buffer) => {
    said = `${said}${piece}`.slice(0, 500);
  });
  return new Promise((resolve) => {
    probe.once('error', (error) => resolve(error.message));
    probe.once('close', (code) => resolve(code === 0 ? null : said.trim() || `it ended with code ${code}`));
  });
}

async function asItIs(path: string): Promise<string[]> {
  const found = await lstat(path).catch(() => null);
  if (found === null) return [];
  return found.isSymbolicLink() ? ['--symlink', await readlink(path), path] : ['--ro-bind', path, path];
}

/** The name of a real path inside. */
export function insideAs({ kind, start, media, skills }: FileRoots, path: string): string {
  const skill = kind === 'persona' ? skills.find(({ folder }) => isWithin(path, folder)) : undefined;
  if (skill !== undefined) return join(SKILLS_INSIDE, skill.place, relative(skill.folder, path));
  const sent = kind === 'agent' ? AGENTS_MEDIA_INSIDE : join(HOME_INSIDE, MEDIA);
  if (media !== null && isWithin(path, media)) return join(sent, relative(media, path));
  return kind !== 'agent' && isWithin(path, start) ? join(HOME_INSIDE, relative(start, path)) : path;
}

/**
 * Mounts the roots, inner after outer, with hidden folders in between, so that each covers the one around it.
 * Folders on the path to a hidden one are bound to themselves: a bind mount cannot be renamed, so nobody can
 * move the hidden one to where it is visible.
 */
function binding(allowed: FileRoots, hidden: Hidden[]): string[] {
  const { roots } = allowed;
  const bound = (path: string, isReadOnly: boolean) => {
    const inside = insideAs(allowed, path);
    return { inside, mounts: [isReadOnly ? '--ro-bind' : '--bind', path, inside] };
  };
  const covered = hidden.flatMap(({ path, isFolder }) => {
    const around = roots.filter(({ folder }) => isBelow(path, folder));
    const root = around.sort((a, b) => b.folder.length - a.folder.length)[0];
    if (root === undefined) return [];
    const inside = insideAs(allowed, path);
    const way = foldersBetween(root.folder, path).map((each) => bound(each, root.isReadOnly));
    return [...way, { inside, mounts: masking([{ path: inside, isFolder }]) }];
  });
  const shown = roots.map(({ folder, isReadOnly }) => bound(folder, isReadOnly));
  const ofSkills = placeOfSkills(allowed);
  const inOrder = [...covered, ...shown, ...ofSkills].sort(
    (one, other) => one.inside.length - other.inside.length,
  );
  // The workspace's link leads to the folder next to it.
  const skills =
    allowed.kind === 'workspace'
      ? roots.find(({ folder, isReadOnly }) => isReadOnly && folder !== allowed.media)
      : undefined;
  return [
    ...inOrder.flatMap(({ mounts }) => mounts),
    ...(skills === undefined ? [] : ['--symlink', skills.folder, join(dirname(HOME_INSIDE), SKILLS)]),
    ...[...covered, ...ofSkills].flatMap(({ mounts }) =>
      mounts[0] === '--tmpfs' ? ['--remount-ro', mounts[1] ?? ''] : [],
    ),
  ];
}

/** An empty folder over the persona's own one, in which its skills are shown; also by their names. */
function placeOfSkills({ kind, showsSkills, skills }: FileRoots) {
  if (kind !== 'persona' || !showsSkills) return [];
  const isTaken = (name: string) => skills.some(({ place }) => isWithin(place, name));
  const links = skills.flatMap(({ name, place }) =>
    isTaken(name) || name.includes('/') ? [] : ['--symlink', place, join(SKILLS_INSIDE, name)],
  );
  return [{ inside: SKILLS_INSIDE, mounts: ['--tmpfs', SKILLS_INSIDE, ...links] }];
}

function foldersBetween(root: string, path: string): string[] {
  const above = dirname(path);
  return above === root || !isBelow(above, root) ? [] : [...foldersBetween(root, above), above];
}

interface Hidden {
  path: string;
  isFolder: boolean;
}

async function found(paths: readonly string[]): Promise<Hidden[]> {
  const all = await realOnes(paths);
  return Promise.all(all.map(async (path) => ({ path, isFolder: (await lstat(path)).isDirectory() })));
}

function masking(hidden: Hidden[]): string[] {
  return hidden.flatMap(({ path, isFolder }) =>
    isFolder ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path],
  );
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * System V memory and messages (`shmget`, `msgget`) belong to no process, so no limit covers them. `AUDIT_ARCH_…` of
 * linux/audit.h, and these calls' numbers there; 117 is `ipc`, which has them all.
 */
const FORBIDDEN: readonly { arch: number; calls: readonly number[] }[] = [
  { arch: 0xc000003e, calls: [29, 68] }, // x86_64
  { arch: 0x40000003, calls: [117, 395, 399] }, // i386
  { arch: 0xc00000b7, calls: [186, 194] }, // aarch64
  { arch: 0x40000028, calls: [303, 307] }, // arm
  { arch: 0xc00000f3, calls: [186, 194] }, // riscv64
  { arch: 0xc0000015, calls: [117, 395, 399] }, // ppc64le
  { arch: 0x80000016, calls: [117, 395, 399] }, // s390x
];

const LOAD = 0x20;
const AND = 0x54;
const IF_EQUAL = 0x15;
const RETURN = 0x06;
const CALL_AT = 0;
const ARCH_AT = 4;
/** Clears the mark of x32, x86_64's calls with narrow pointers. */
const WITHOUT_X32 = 0xbfffffff;
const ALLOW = 0x7fff0000;
/** Fails with ENOSYS, as in a kernel without the call: programs that can do without, do. */
const REFUSE = 0x00050000 | 38;

/** A filter for bubblewrap (seccomp(2), classic BPF), in the kernel's form: 8 bytes per instruction, native byte order. */
export function forbiddenCalls(): Buffer {
  const program = [
    [LOAD, 0, 0, ARCH_AT],
    ...FORBIDDEN.flatMap(({ arch, calls }) => [
      [IF_EQUAL, 0, calls.length + 4, arch],
      [LOAD, 0, 0, CALL_AT],
      [AND, 0, 0, WITHOUT_X32],
      ...calls.map((call, n) => [IF_EQUAL, calls.length - n, 0, call]),
      [RETURN, 0, 0, ALLOW],
      [RETURN, 0, 0, REFUSE],
    ]),
    [RETURN, 0, 0, ALLOW],
  ];
  return Buffer.concat(
    program.map(([code = 0, then = 0, otherwise = 0, value = 0]) =>
      Buffer.concat([
        Buffer.from(Uint16Array.of(code).buffer),
        Buffer.of(then, otherwise),
        Buffer.from(Uint32Array.of(value).buffer),
      ]),
    ),
  );
}
