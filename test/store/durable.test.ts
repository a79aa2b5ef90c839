import { open, stat } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { connect } from '../../src/store/sqlite/connection.js';
import { createFlush } from '../../src/store/sqlite/durable.js';
import { openHere, type Place } from './place.js';

let place: Place;
beforeEach(async () => {
  place = await openHere();
});
afterEach(() => place.remove());

/** A disk that takes its time: each sync ends when the test says so. */
function slowDisk() {
  const calls: { kind: 'sync' | 'rewrite'; end(error?: Error): void }[] = [];
  const call = (kind: 'sync' | 'rewrite') => () =>
    new Promise<void>((resolve, reject) => {
      calls.push({ kind, end: (error) => (error ? reject(error) : resolve()) });
    });
  return { calls, flush: createFlush(call('sync'), call('rewrite')) };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

it('is done when what began before has ended, and not earlier', async () => {
  const { calls, flush } = slowDisk();
  await flush.done();
  flush.begin();
  let done = false;
  const ended = flush.done().then(() => (done = true));
  await settled();
  expect({ calls: calls.length, done }).toEqual({ calls: 1, done: false });
  calls[0]?.end();
  await ended;
});

it('syncs once more for all that was committed during a sync', async () => {
  const { calls, flush } = slowDisk();
  flush.begin();
  await settled();
  for (let commit = 0; commit < 3; commit++) flush.begin();
  const ended = flush.done();
  await settled();
  expect(calls).toHaveLength(1);
  calls[0]?.end();
  await settled();
  expect(calls).toHaveLength(2);
  calls[1]?.end();
  await ended;
});

it('tells of a sync that failed, and then writes what may be lost elsewhere', async () => {
  const { calls, flush } = slowDisk();
  flush.begin();
  const first = expect(flush.done()).rejects.toThrow('EIO');
  await settled();
  calls[0]?.end(new Error('EIO'));
  await first;
  const again = flush.done();
  await settled();
  calls[1]?.end();
  await again;
  flush.begin();
  await settled();
  calls[2]?.end();
  await flush.done();
  expect(calls.map(({ kind }) => kind)).toEqual(['sync', 'rewrite', 'sync']);
});

it('syncs the log that SQLite writes, also after it was emptied', async () => {
  const connection = await connect({ file: place.file, clock: systemClock, busyTimeoutMs: 0 });
  connection.raw.exec('create table t (x)');
  connection.flush.begin();
  await connection.flush.done();
  const before = await stat(`${place.file}-wal`);
  await connection.retry(() => connection.raw.exec('PRAGMA wal_checkpoint(TRUNCATE)'));
  connection.raw.exec('insert into t values (1)');
  connection.flush.begin();
  await connection.flush.done();
  const after = await stat(`${place.file}-wal`);
  expect(after.ino, 'the very file that is kept open').toBe(before.ino);
  expect(after.size).toBeGreaterThan(0);
  await connection.close();
  await expect(open(`${place.file}-wal`)).rejects.toMatchObject({ code: 'ENOENT' });
});
