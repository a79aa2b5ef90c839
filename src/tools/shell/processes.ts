/**
 * Processes by `/proc`, where there is one: how many descend from one, what they hold in files that are removed, and which of
 * them carry a mark.
 */
import { readdir, readFile, readlink, stat } from 'node:fs/promises';

/** Counts no further than `most`; 0 where the system does not tell. */
export async function countProcesses(pid: number, most: number): Promise<number> {
  return (await descendants(pid, most)).length;
}

/**
 * The bytes in files that these processes hold open or mapped although nobody can find them any more, each counted once. No
 * folder shows them, and no limit of the system's bounds them together. Where a process cannot be looked into, its files count for nothing.
 */
export async function heldInRemovedFiles(pid: number, mostProcesses: number): Promise<number> {
  const held = new Map<string, number>();
  const note = (file: string, bytes: number) => held.set(file, Math.max(held.get(file) ?? 0, bytes));
  for (const each of await descendants(pid, mostProcesses)) {
    for (const name of await readdir(`/proc/${each}/fd`).catch(() => [])) {
      const path = `/proc/${each}/fd/${name}`;
      if (!(await readlink(path).catch(() => '')).endsWith(REMOVED)) continue;
      const found = await stat(path).catch(() => null);
      // What was written; a file may have holes.
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

/** With the process itself; no more than `most`. */
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

/** The processes that were started with this variable in their environment, themselves or by what started them. */
export async function processesWith(variable: string): Promise<number[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const found: number[] = [];
  for (const pid of pids) {
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    if (environment.split('\0').includes(variable)) found.push(Number(pid));
  }
  return found;
}
