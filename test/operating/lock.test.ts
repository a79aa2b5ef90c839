/** The data lock, between real processes: it ends with the process that holds it, also by kill -9. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { takeLock, watchLocks } from '../../src/operating/lock.js';
import { manualClock } from '../fakes/clock.js';
import { quietLog } from '../harness/quiet.js';

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

  it('is taken anew where its file was removed, and keeps others out again', async () => {
    const lock = await takeLock(file);
    if (lock === null) throw new Error('it is free');
    const clock = manualClock();
    const lost: string[] = [];
    const end = watchLocks([lock], clock, quietLog, (reason) => lost.push(reason));
    await rm(file);
    expect(lock.isInPlace()).toBe(false);
    await clock.advance(2_000);
    // Once it is there again, it is locked: until then, a look would take it itself.
    await expect.poll(() => existsSync(file)).toBe(true);
    await clock.advance(10_000);
    expect(await takeLock(file)).toBeNull();
    expect(lost).toEqual([]);
    end();
    lock.release();
    const free = await takeLock(file);
    expect(free).not.toBeNull();
    free?.release();
  });

  it.each(['another process', 'a removed folder'])('is lost to %s, which is told once', async (to) => {
    const lock = await takeLock(file);
    if (lock === null) throw new Error('it is free');
    const clock = manualClock();
    const lost: string[] = [];
    const end = watchLocks([lock], clock, quietLog, (reason) => lost.push(reason));
    await rm(join(folder, 'data'), { recursive: true });
    if (to === 'another process') await holder();
    await clock.advance(2_000);
    await expect.poll(() => lost).toEqual([expect.stringContaining(file)]);
    await clock.advance(10_000);
    expect(lost).toHaveLength(1);
    end();
    lock.release();
  });

  it('says which file it was where it cannot be made', async () => {
    await writeFile(join(folder, 'data'), 'a file, not a folder');
    await expect(takeLock(file)).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringContaining(file),
    });
  });
});
