/**
 * The processes of a bench: fake servers and measured bots. Every process started here ends with the bench, by its
 * handle.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { PlatformCalls } from './platform-servers.js';
import type { ServerCalls } from './servers.js';

/** The functions of another process, as promises. */
export type Remote<All extends { [Name in keyof All]: (...values: never[]) => unknown }> = {
  [Name in keyof All]: (...values: Parameters<All[Name]>) => Promise<Awaited<ReturnType<All[Name]>>>;
};
export type Servers = Remote<ServerCalls>;
export type PlatformServers = Remote<PlatformCalls>;
export type Processes = ReturnType<typeof createProcesses>;

export interface Bot {
  pid: number;
  /** Start of its process, ms since 1970 with fractions. */
  startedAt: number;
  /** CPU time so far, all threads; null if the system does not report it. */
  cpuMs(): number | null;
  /** Memory now and at its peak, MB. */
  memory(): { now: number; peak: number } | null;
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

/** Linux counts CPU time in hundredths of a second on all common machines. */
const TICK_MS = 10;
const SERVERS = fileURLToPath(new URL('./servers.js', import.meta.url));
const PLATFORM_SERVERS = fileURLToPath(new URL('./platform-servers.js', import.meta.url));

export function createProcesses() {
  const running = new Set<ChildProcess>();

  function track(child: ChildProcess): Promise<void> {
    running.add(child);
    return new Promise((resolve) => {
      child.once('exit', () => {
        running.delete(child);
        resolve();
      });
    });
  }

  /** Starts a script that answers the calls in `Calls`. */
  async function startRemote<Calls extends object>(script: string, args: string[] = []): Promise<Calls> {
    const child = fork(script, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    void track(child);
    const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
    let lastId = 0;
    await new Promise((resolve) => child.once('message', resolve));
    child.on('message', ({ id, result, error }: { id: number; result?: unknown; error?: string }) => {
      const caller = waiting.get(id);
      waiting.delete(id);
      if (error === undefined) caller?.resolve(result);
      else caller?.reject(new Error(error));
    });
    const call = (name: string, values: unknown[]) =>
      new Promise((resolve, reject) => {
        const id = ++lastId;
        waiting.set(id, { resolve, reject });
        child.send({ id, name, values });
      });
    return new Proxy({} as Calls, {
      // `await` checks for a promise by reading `then`.
      get: (_, name: string) => (name === 'then' ? undefined : (...values: unknown[]) => call(name, values)),
    });
  }

  function startBot(order: {
    node: string;
    args: string[];
    folder: string;
    environment?: Record<string, string>;
    /** Receives the log, which is printed otherwise. */
    onLog?: (text: string) => void;
  }): Bot {
    const startedAt = performance.timeOrigin + performance.now();
    const child = spawn(order.node, order.args, {
      cwd: order.folder,
      env: { ...process.env, ...order.environment, NO_COLOR: '1' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const ended = track(child);
    // At the log levels used here, both are silent unless something is wrong.
    const { onLog = (text: string) => console.error(text.trimEnd()) } = order;
    child.stderr.setEncoding('utf8').on('data', onLog);
    return {
      pid: child.pid ?? -1,
      startedAt,
      cpuMs: () => cpuMs(child.pid),
      memory: () => memory(child.pid),
      stop(signal = 'SIGKILL') {
        child.kill(signal);
        return ended;
      },
    };
  }

  return {
    startServers: () => startRemote<Servers>(SERVERS),
    startRemote,
    startPlatform: (name: string) => startRemote<PlatformServers>(PLATFORM_SERVERS, [name]),
    startBot,
    async endAll() {
      const children = [...running];
      const ends = children.map((child) => new Promise((resolve) => child.once('exit', resolve)));
      for (const child of children) child.kill('SIGKILL');
      await Promise.all(ends);
    },
  };
}

function cpuMs(pid: number | undefined): number | null {
  const stat = proc(pid, 'stat');
  // The program's name, in brackets, may contain anything.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields ? (Number(fields[11]) + Number(fields[12])) * TICK_MS : null;
}

function memory(pid: number | undefined): { now: number; peak: number } | null {
  const status = proc(pid, 'status');
  const megabytes = (key: string) =>
    Number(new RegExp(`^${key}:\\s*(\\d+) kB`, 'm').exec(status ?? '')?.[1]) / 1024;
  return status ? { now: megabytes('VmRSS'), peak: megabytes('VmHWM') } : null;
}

function proc(pid: number | undefined, file: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return null;
  }
}
