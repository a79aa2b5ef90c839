/**
 * The sandbox of `shell`: what bubblewrap is asked for. A command sees the system's programs for reading, its working
 * folder, what people sent, and nothing else of the machine; nobody's processes, no network, no rights.
 */
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { lstat, readlink, realpath } from 'node:fs/promises';
import { delimiter, join, sep } from 'node:path';
import { HOME_INSIDE, MEDIA, type Places } from '../files/paths.js';

export interface SandboxOrder {
  places: Places;
  /** Folders and files that a command must not see, wherever they are: the gateway's own. */
  hidden: readonly string[];
  network: boolean;
  /** Relative to the working folder. */
  cwd: string;
}

/** Programs and what they need. Where one is a link (`/bin` to `usr/bin`), it is one inside. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store'];
/** Of the system's settings no more than programs need to start, to tell the time and to know certificates. */
const SETTINGS = [
  ...['/etc/ld.so.cache', '/etc/ld.so.conf', '/etc/ld.so.conf.d', '/etc/alternatives', '/etc/localtime'],
  ...['/etc/ssl/certs', '/etc/ssl/openssl.cnf', '/etc/ca-certificates', '/etc/pki/tls/certs'],
  ...['/etc/pki/ca-trust/extracted', '/etc/crypto-policies', '/etc/mime.types'],
];
const NETWORK_SETTINGS = ['/etc/resolv.conf', '/etc/hosts', '/etc/nsswitch.conf', '/etc/services'];
/** What lies in memory counts for no process, so it is bounded by itself. */
const TMP_BYTES = 100_000_000;
const SHARED_MEMORY_BYTES = 16_000_000;
const ISOLATION = [
  ...['--unshare-all', '--unshare-user', '--disable-userns', '--cap-drop', 'ALL'],
  ...['--new-session', '--die-with-parent', '--hostname', 'sandbox'],
];
const PROBE_MS = 10_000;

export const PATH_INSIDE = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** Where bubblewrap says how it went: without an exit code there, nothing was run. */
export const STATUS_DESCRIPTOR = 3;

/** Where the program is; null: it is not installed. */
export function findBubblewrap(path = process.env.PATH ?? ''): string | null {
  const places = [...path.split(delimiter).filter(Boolean), '/usr/bin', '/usr/local/bin'];
  return places.map((folder) => join(folder, 'bwrap')).find(isExecutable) ?? null;
}

/** What stands before the command. */
export async function bubblewrapArguments(order: SandboxOrder): Promise<string[]> {
  const { places, network, cwd } = order;
  const settings = network ? [...SETTINGS, ...NETWORK_SETTINGS] : SETTINGS;
  return [
    ...ISOLATION,
    ...(network ? ['--share-net'] : []),
    ...(await Promise.all(SYSTEM.map(asItIs))).flat(),
    ...settings.flatMap((path) => ['--ro-bind-try', path, path]),
    ...(await hiding(order.hidden)),
    ...['--proc', '/proc', '--dev', '/dev', '--size', String(SHARED_MEMORY_BYTES), '--tmpfs', '/dev/shm'],
    ...['--perms', '1777', '--size', String(TMP_BYTES), '--tmpfs', '/tmp', '--symlink', '../tmp', '/var/tmp'],
    ...['--bind', places.work, HOME_INSIDE, '--ro-bind', places.media, `${HOME_INSIDE}/${MEDIA}`],
    // Of the kernel's settings in /proc/sys the user root could change those of the whole machine.
    ...['/proc', '/dev', '/'].flatMap((path) => ['--remount-ro', path]),
    ...['--chdir', join(HOME_INSIDE, cwd), '--json-status-fd', String(STATUS_DESCRIPTOR), '--'],
  ];
}

/** Whether a sandbox can be made at all: null, or why not. */
export async function bubblewrapFault(program = findBubblewrap()): Promise<string | null> {
  if (program === null) return 'it is not installed';
  // What containers forbid first is a /proc of one's own.
  const places = ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--remount-ro', '/proc'];
  const probe = spawn(program, [...ISOLATION, ...places, 'true'], {
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

/** Only what lies among the system's folders would be seen: somebody may have installed the gateway in /usr/local. */
async function hiding(paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) {
    const real = await realpath(path).catch(() => null);
    if (real === null || !SYSTEM.some((folder) => real.startsWith(folder + sep))) continue;
    const isFolder = (await lstat(real)).isDirectory();
    found.push(...(isFolder ? ['--tmpfs', real] : ['--ro-bind', '/dev/null', real]));
  }
  return found;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
