/** Processes by `/proc`, where there is one: how many descend from one, and which of them carry a mark. */
import { readdir, readFile } from 'node:fs/promises';

/** Counts no further than `most`; 0 where the system does not tell. */
export async function countProcesses(pid: number, most: number): Promise<number> {
  const waiting = [pid];
  let count = 0;
  for (let next = waiting.pop(); next !== undefined && count < most; next = waiting.pop()) {
    const threads = await readdir(`/proc/${next}/task`).catch(() => []);
    if (threads.length > 0) count++;
    for (const thread of threads) {
      // It may have ended meanwhile.
      const children = await readFile(`/proc/${next}/task/${thread}/children`, 'utf8').catch(() => '');
      waiting.push(...children.split(' ').filter(Boolean).map(Number));
    }
  }
  return count;
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
