/**
 * The real, compiled gateway process in a folder of its own. `npm test` compiles it first. Every process that a test
 * starts ends with the test, by pid, and every line of its journal is checked.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { journalBelow } from './journal-shapes.js';

export const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** A folder with a configuration, for gateways started one after another. */
export interface Home {
  folder: string;
  configure(config: object): Promise<void>;
  /** The text of a file in the folder; null if it does not exist. */
  read(path: string): Promise<string | null>;
  write(path: string, text: string): Promise<void>;
  remove(): Promise<void>;
}

export async function makeHome(config: object): Promise<Home> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-e2e-'));
  const home: Home = {
    folder,
    configure: (changed) => home.write('config.yaml', stringify(changed)),
    read: (path) => readFile(join(folder, path), 'utf8').catch(() => null),
    async write(path, text) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    },
    remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }),
  };
  await home.configure(config);
  return home;
}

export interface Running {
  readonly pid: number;
  /** Everything written to stdout and stderr so far. */
  out(): string;
  err(): string;
  /** Resolves when stderr (or stdout) contains it. */
  saw(text: string | RegExp): Promise<void>;
  write(text: string): void;
  endInput(): void;
  /** The HTTP listener's address, from its log line. */
  url(): Promise<string>;
  stop(signal?: 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGKILL'): Promise<number | null>;
  exited: Promise<number | null>;
}

/** The environment of the test run may need a proxy for other purposes. */
function withoutProxies(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !/^(https?|all|no)_proxy$/i.test(name)),
  );
}

export function run(
  home: Home,
  args: string[] = ['start'],
  environment: Record<string, string> = {},
  main = MAIN,
): Running {
  const child: ChildProcessWithoutNullStreams = spawn(process.execPath, [main, ...args], {
    cwd: home.folder,
    env: { ...withoutProxies(process.env), NO_COLOR: '1', ...environment },
  });
  let out = '';
  let err = '';
  let watchers: (() => void)[] = [];
  const grew = () => {
    const told = watchers;
    watchers = [];
    for (const tell of told) tell();
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
    grew();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
    grew();
  });
  child.stdin.on('error', () => {});
  let over = false;
  const closed = new Promise<number | null>((resolve) => {
    child.on('close', (code) => {
      over = true;
      resolve(code);
      grew();
    });
  });
  // However it ended, every complete line in its journal is a valid entry.
  const exited = closed.then(async (code) => {
    await journalBelow(home.folder);
    return code;
  });
  const has = (text: string | RegExp) =>
    typeof text === 'string' ? err.includes(text) || out.includes(text) : text.test(err) || text.test(out);

  const running: Running = {
    pid: child.pid ?? -1,
    out: () => out,
    err: () => err,
    async saw(text) {
      while (!has(text)) {
        if (over) throw new Error(`the gateway ended before it said ${text}:\n${out}\n${err}`);
        await new Promise<void>((resolve) => watchers.push(resolve));
      }
    },
    write: (text) => void child.stdin.write(text),
    endInput: () => void child.stdin.end(),
    async url() {
      await running.saw(/http listener on (http:\/\/[^\s"]+)/);
      return /http listener on (http:\/\/[^\s"]+)/.exec(err)?.[1] ?? '';
    },
    stop(signal = 'SIGTERM') {
      if (!over) child.kill(signal);
      return exited;
    },
    exited,
  };
  return running;
}

/** Resolves when the condition holds; polls on each turn of the event loop, without a fixed wait. */
export async function eventually<T>(
  look: () => T | Promise<T>,
  what: string,
  withinMs = 20_000,
): Promise<NonNullable<T>> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found) return found as NonNullable<T>;
    if (Date.now() > deadline) throw new Error(`it did not come to this within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
