/** Runs one command within its limits, and kills it as a whole. Its output is kept in part. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import type { Writable } from 'node:stream';
import { type Clock, onAbort } from '../../core/clock.js';
import { usedBy } from '../files/paths.js';
import type { Quota } from '../files/roots.js';
import { FILTER_DESCRIPTOR, forbiddenCalls, STATUS_DESCRIPTOR } from './bubblewrap.js';

interface CommandOrder {
  command: string;
  /** bubblewrap and its arguments; null: no sandbox. */
  sandbox: { program: string; arguments: string[] } | null;
  /** Without a sandbox: the start folder. */
  cwd: string;
  env: Record<string, string>;
  /** The folders that it may fill, with their limits. */
  bounded: readonly { folder: string; quota: Quota }[];
  ms: number;
  /** Per process. */
  megabytes: number;
  processes: number;
  /** Per file written. */
  fileBytes: number;
  /** For all removed files that are still open, including those that never had a name. */
  removedBytes: number;
  /** Unique: without a sandbox, it marks the command's processes. */
  id: string;
}

export interface CommandOutcome {
  stdout: string;
  stderr: string;
  /** null: it was killed. */
  code: number | null;
  ended: 'by itself' | 'too long' | 'stopped' | 'too many processes' | 'too much written' | 'too much held';
  /** Nothing was run, because there was no sandbox. */
  unsafe: boolean;
}

const STDOUT_BYTES = 20_000;
const STDERR_BYTES = 8_000;
const LOOK_MS = 250;
/** Folders are measured less often; the longer it takes, the less. */
const MEASURE_MS = 1000;
const REST_PER_WORK = 10;
/** How long a killed command may take to close its output. */
const CLOSE_MS = 2_000;
/** Closes descriptors that the gateway inherited; sh knows only some, and Node has closed those. */
const CLOSES_DESCRIPTORS =
  'for f in $(cd /proc/self/fd && echo *); do case $f in 0|1|2) ;; [0-9]*) eval "exec $f<&-" ;; esac; done; ';
const SHELLS: { path: string; blockBytes: number; before: string }[] = [
  { path: '/bin/bash', blockBytes: 1024, before: CLOSES_DESCRIPTORS },
  { path: '/bin/sh', blockBytes: 512, before: '' },
];
const MARK = 'COTERIE_COMMAND';
/** Where bubblewrap reads its options. */
const ARGUMENTS_DESCRIPTOR = 4;

export async function runCommand(
  order: CommandOrder,
  clock: Clock,
  signal: AbortSignal,
): Promise<CommandOutcome> {
  const stdout = keepEnds(STDOUT_BYTES);
  const stderr = keepEnds(STDERR_BYTES);
  let status = '';
  let ended: CommandOutcome['ended'] = 'by itself';
  const child = start(order);
  const end = (why: CommandOutcome['ended']) => {
    if (ended !== 'by itself') return;
    ended = why;
    kill(child);
  };
  const stopWaiting = clock.after(order.ms, () => end('too long'));
  const stopListening = onAbort(signal, () => end('stopped'));
  const watching = new AbortController();
  const watched = watch(order, child, clock, watching.signal, end);
  child.stdout?.on('data', stdout.take);
  child.stderr?.on('data', stderr.take);
  // Without a sandbox nothing is written there, but its close event needs a reader.
  child.stdio[STATUS_DESCRIPTOR]?.on('data', (piece: Buffer) => {
    status = `${status}${piece}`.slice(-1000);
  });
  try {
    const exited = await exitOf(child);
    stopWaiting();
    // Kills processes that it left running in the background.
    kill(child);
    if (order.sandbox === null) await killMarked(order.id);
    await closed(child, clock);
    const isByItself = (ended as CommandOutcome['ended']) === 'by itself';
    const unsafe = order.sandbox !== null && isByItself && !status.includes('"exit-code"');
    const code = isByItself ? exited : null;
    return { stdout: stdout.text(), stderr: stderr.text(), ended, code, unsafe };
  } finally {
    watching.abort();
    stopWaiting();
    stopListening();
    await watched;
  }
}

/** In a session of its own: without a terminal, and its processes can be killed together. */
function start(order: CommandOrder): ChildProcess {
  const { command, sandbox, cwd, env, id } = order;
  const found = SHELLS.find(({ path }) => existsSync(path));
  if (found === undefined) throw new Error('there is neither /bin/bash nor /bin/sh');
  const { path: shell, blockBytes, before } = found;
  const run = `${before}${limiting(order, blockBytes)} exec "$0" -c "$1"`;
  if (sandbox !== null) {
    // The command line is readable inside (/proc/1/cmdline): it must not contain the machine's paths.
    const given = ['--args', String(ARGUMENTS_DESCRIPTOR), '--', shell, '-c', run, shell, command];
    const child = spawn(sandbox.program, given, {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
    });
    give(child, ARGUMENTS_DESCRIPTOR, sandbox.arguments.map((each) => `${each}\0`).join(''));
    give(child, FILTER_DESCRIPTOR, forbiddenCalls());
    return child;
  }
  return spawn(shell, ['-c', `${ENDS_WITH_US} ${run}`, shell, command], {
    cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    env: { ...env, [MARK]: id },
  });
}

/** Input that bubblewrap reads first: if it cannot, it runs nothing, and exits with an error. */
function give(child: ChildProcess, descriptor: number, what: string | Buffer): void {
  const to = (child.stdio[descriptor] ?? null) as Writable | null;
  to?.on('error', () => {});
  to?.end(what);
}

/** Without a sandbox: kills the process group when the gateway's end of a pipe closes, even by a crash. */
const ENDS_WITH_US = `( trap '' HUP INT TERM; read -r _ <&3; kill -9 0 ) >/dev/null 2>&1 & exec 3<&-;`;

/** A lower limit of the system remains. RLIMIT_DATA: writable memory, except files. */
function limiting({ megabytes, processes, fileBytes }: CommandOrder, blockBytes: number): string {
  const quietly = (limit: string) => `ulimit ${limit} 2>/dev/null`;
  return [
    quietly('-c 0'),
    quietly(`-d ${megabytes * 1024}`),
    quietly(`-f ${Math.floor(fileBytes / blockBytes)}`),
    // Without a sandbox, all processes of the user would count.
    `[ -n "\${${MARK}-}" ] || ${quietly(`-u ${processes}`)} || ${quietly(`-p ${processes}`)};`,
  ].join('; ');
}

/** Enforces limits that the system does not: root's processes, a folder's size. Ends with its signal. */
async function watch(
  { bounded, processes, removedBytes }: CommandOrder,
  { pid }: ChildProcess,
  clock: Clock,
  signal: AbortSignal,
  end: (why: 'too many processes' | 'too much written' | 'too much held') => void,
): Promise<void> {
  if (pid === undefined) return;
  let measureAt = clock.now() + MEASURE_MS;
  while (!signal.aborted) {
    await clock.sleep(LOOK_MS, signal);
    if (signal.aborted) return;
    if ((await descendants(pid, processes + 1)).length > processes) end('too many processes');
    const began = clock.now();
    if (began < measureAt) continue;
    if ((await heldInRemovedFiles(pid, processes)) > removedBytes) end('too much held');
    for (const { folder, quota } of bounded) {
      const used = await usedBy(folder, quota).catch(() => null);
      if (used?.isOver) end('too much written');
    }
    measureAt = clock.now() + Math.max(MEASURE_MS, (clock.now() - began) * REST_PER_WORK);
  }
}

/** The group; in a sandbox everything ends with its first process, which ends with this one. */
function kill({ pid }: ChildProcess): void {
  if (pid !== undefined) killIfThere(-pid);
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already exited.
  }
}

/** Without a sandbox, finds processes that left the group by their environment, until none are left. */
async function killMarked(id: string): Promise<void> {
  for (let rounds = 0; rounds < 20; rounds++) {
    const found = await processesWith(`${MARK}=${id}`);
    if (found.length === 0) return;
    for (const pid of found) killIfThere(pid);
  }
}

/** As in a shell: 128 plus the number of a signal. Rejects if it could not be started. */
async function exitOf(child: ChildProcess): Promise<number> {
  const [code, signal]: (number | NodeJS.Signals | null)[] = await once(child, 'exit');
  return typeof code === 'number' ? code : 128 + (signal ? constants.signals[signal as NodeJS.Signals] : 0);
}

async function closed(child: ChildProcess, clock: Clock): Promise<void> {
  const streams = child.stdio.filter((each) => each !== null && each !== undefined);
  if (streams.every((each) => each.destroyed)) return;
  const stopWaiting = clock.after(CLOSE_MS, () => {
    for (const stream of streams) stream.destroy();
  });
  await once(child, 'close');
  stopWaiting();
}

/** Keeps the beginning and the end of an output; the text says how much is left out between them. */
function keepEnds(most: number) {
  const half = Math.floor(most / 2);
  let bytes = 0;
  const head: Buffer[] = [];
  let room = most - half;
  let tail = Buffer.alloc(0);
  return {
    take(piece: Buffer): void {
      bytes += piece.length;
      const first = piece.subarray(0, room);
      if (first.length > 0) head.push(Buffer.from(first));
      room -= first.length;
      const rest = piece.subarray(first.length);
      if (rest.length > 0) tail = Buffer.concat([tail, rest.subarray(-half)]).subarray(-half);
    },
    text(): string {
      const kept = Buffer.concat(head);
      const left = bytes - kept.length - tail.length;
      if (left === 0) return plain(Buffer.concat([kept, tail]));
      return `${plain(kept)}\n[… ${left} bytes are left out …]\n${plain(tail)}`;
    },
  };
}

/** Replaces a truncated character; some readers stop at a zero byte. */
function plain(bytes: Buffer): string {
  return new TextDecoder().decode(bytes).replaceAll('\0', '\ufffd');
}

/** Bytes in removed files that are still open or mapped, each counted once: no folder or system limit counts them. */
async function heldInRemovedFiles(pid: number, mostProcesses: number): Promise<number> {
  const held = new Map<string, number>();
  const note = (file: string, bytes: number) => held.set(file, Math.max(held.get(file) ?? 0, bytes));
  for (const each of await descendants(pid, mostProcesses)) {
    for (const name of await readdir(`/proc/${each}/fd`).catch(() => [])) {
      const path = `/proc/${each}/fd/${name}`;
      if (!(await readlink(path).catch(() => '')).endsWith(REMOVED)) continue;
      const found = await stat(path).catch(() => null);
      // Allocated size; a file may have holes.
      if (found?.isFile()) note(`${found.ino}`, found.blocks * 512);
    }
    for (const line of (await readFile(`/proc/${each}/maps`, 'utf8').catch(() => '')).split('\n')) {
      const [, from = '0', to = '0', inode = '0'] = MAPPED.exec(line) ?? [];
      if (inode !== '0' && line.endsWith(REMOVED))
        note(inode, Number.parseInt(to, 16) - Number.parseInt(from, 16));
    }
  }
  return [...held.values()].reduce((sum, bytes) => sum + bytes, 0);
}

const REMOVED = ' (deleted)';
/** `7f..-7f.. rw-s 00000000 00:01 1026 /memfd:x (deleted)` (proc_pid_maps(5)). */
const MAPPED = /^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ (\d+)/;

/** Including the process itself; at most `most`. None if the system does not tell. */
async function descendants(pid: number, most: number): Promise<number[]> {
  const waiting = [pid];
  const found: number[] = [];
  for (let next = waiting.pop(); next !== undefined && found.length < most; next = waiting.pop()) {
    const threads = await readdir(`/proc/${next}/task`).catch(() => []);
    if (threads.length > 0) found.push(next);
    for (const thread of threads) {
      // It may have ended meanwhile.
      const children = await readFile(`/proc/${next}/task/${thread}/children`, 'utf8').catch(() => '');
      waiting.push(...children.split(' ').filter(Boolean).map(Number));
    }
  }
  return found;
}

/** Processes with this variable in their environment, their own or inherited. */
async function processesWith(variable: string): Promise<number[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const found: number[] = [];
  for (const pid of pids) {
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    if (environment.split('\0').includes(variable)) found.push(Number(pid));
  }
  return found;
}
