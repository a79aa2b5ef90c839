/** A real Redis: a process of its own on a free port, without files. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const REDIS_PROGRAM = 'redis-server';

export function redisIsInstalled(): boolean {
  return spawnSync(REDIS_PROGRAM, ['--version']).status === 0;
}

export interface RedisServer {
  url: string;
  /** As if its machine had gone. What it held is lost. */
  stop(): Promise<void>;
  /** On the same port again. */
  start(): Promise<void>;
  /** Stops it and removes its folder. */
  close(): Promise<void>;
}

export async function startRedis(): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-redis-'));
  const port = await freePort();
  let running: ChildProcess | null = null;

  async function start(): Promise<void> {
    const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    const child = spawn(REDIS_PROGRAM, [...args, '--dir', folder], { stdio: ['ignore', 'pipe', 'pipe'] });
    running = child;
    let said = '';
    await new Promise<void>((resolve, reject) => {
      const listen = (text: string) => {
        said += text;
        if (said.includes('Ready to accept connections')) resolve();
      };
      child.stdout.setEncoding('utf8').on('data', listen);
      child.stderr.setEncoding('utf8').on('data', listen);
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`${REDIS_PROGRAM} ended with ${code}: ${said}`)));
    });
  }

  async function stop(): Promise<void> {
    const child = running;
    running = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    start,
    stop,
    async close() {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
