/** The data lock, between real processes: it ends with the process that holds it, also by kill -9. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { takeLock } from '../../src/operating/lock.js';

let folder: string;
let file: string;
const children: ChildProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-lock-'));
  file = join(folder, 'data', 'gateway.lock');
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await rm(folder, { recursive: true });
});

/** Another process that takes the lock and holds it. */
async function holder(): Promise<ChildProcess> {
  const module = JSON.stringify(new URL('../../dist/modules/operating/lock.js', import.meta.url).href);
  const script = `
    const { takeLock } = await import(${module});
    const lock = await takeLock(${JSON.stringify(file)});
    console.log(lock ? 'held' : 'refused');
    setInterval(() => lock, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const [said] = await once(child.stdout, 'data');
  expect(String(said).trim()).toBe('held');
  return child;
}

describe('the data lock', () => {
  it('is held once in one process, and free after its release', async () => {
    const lock = await takeLock(file);
    expect(lock).not.toBeNull();
    expect(await takeLock(file)).toBeNull();
    lock?.release();
    const again = await takeLock(file);
    expect(again).not.toBeNull();
    again?.release();
  });

  it('keeps another process out, until that one is killed', async () => {
    const child = await holder();
    expect(await takeLock(file)).toBeNull();
    child.kill('SIGKILL');
    await once(child, 'exit');
    const lock = await takeLock(file);
    expect(lock).not.toBeNull();
    lock?.release();
  });

  it('says which file it was where it cannot be made', async () => {
    await writeFile(join(folder, 'data'), 'a file, not a folder');
    await expect(takeLock(file)).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringContaining(file),
    });
  });
});
