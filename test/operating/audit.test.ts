/** The audit log as it is written: chained, in files of a size, whatever a crash or a full disk leaves. */
import {
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { describe as describeFault, type Fault } from '../../src/core/errors.js';
import type { Log } from '../../src/core/log.js';
import { NEW_HEAD } from '../../src/operating/audit-files.js';
import { verifyAudit } from '../../src/operating/audit-read.js';
import { takeLock } from '../../src/operating/lock.js';
import { createRedactor } from '../../src/operating/redact.js';
import { manualClock } from '../fakes/clock.js';
import { quietLog } from '../harness/quiet.js';
import { auditIn, enter, entriesIn, entry, leave, linesIn, olderIn, saidIn } from './audit-support.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-audit-'));
});
afterEach(async () => {
  await chmod(folder, 0o700);
  await rm(folder, { recursive: true });
});

function listening(): { log: Log; said: string[] } {
  const said: string[] = [];
  return {
    said,
    log: { ...quietLog, error: (fields, message) => said.push(`${message} ${JSON.stringify(fields)}`) },
  };
}

describe('what is entered', () => {
  it('stands there when it is acknowledged, in order, chained, for its owner alone', async () => {
    const audit = auditIn(folder);
    await Promise.all(['a', 'b', 'c', 'd'].map((what) => audit.record(entry(what))));
    await audit.note(entry('e'));
    expect(await saidIn(folder)).toEqual(['a', 'b', 'c', 'd', 'e']);
    const [first, second] = await entriesIn(folder);
    expect(first).toMatchObject({ n: 1, ...entry('a') });
    expect(second?.before).toBe(first?.hash);
    expect((await stat(join(folder, 'audit.jsonl'))).mode & 0o777).toBe(0o600);
    expect(await verifyAudit(folder)).toMatchObject({ entries: 5, first: 1, broken: null });
  });

  it('is one line of plain words, whatever somebody is called', async () => {
    const name = 'Eve\n{"n":9}\u001b[31m\u202e\u2028\u0007\ud800';
    await auditIn(folder).record(entry(name, { who: name, where: name, details: { [name]: name } }));
    const [line = '', ...more] = await linesIn(folder);
    expect(more).toEqual([]);
    expect(line).not.toMatch(/\\n|\\u|[\p{Cc}\p{Cf}]/u);
    expect(await entriesIn(folder)).toMatchObject([{ who: 'Eve {"n":9} [31m', what: 'Eve {"n":9} [31m' }]);
    expect((await verifyAudit(folder)).broken).toBeNull();
  });

  it('keeps the joiners of emoji and scripts', async () => {
    await auditIn(folder).record(entry('👩\u200d🚀 می\u200cرود'));
    expect(await saidIn(folder)).toEqual(['👩\u200d🚀 می\u200cرود']);
  });

  it('holds no secret, and is cut where it is endless', async () => {
    const audit = auditIn(folder, { redact: createRedactor(['hunter2']) });
    await audit.record(entry('with hunter2', { details: { key: 'hunter2' } }));
    await audit.record(entry('x'.repeat(1e6)));
    const text = await readFile(join(folder, 'audit.jsonl'), 'utf8');
    expect(text).not.toContain('hunter2');
    expect(text.length).toBeLessThan(5_000);
    expect(text).toContain('(1000000 characters)');
  });

  it('keeps its order where the clock jumps back', async () => {
    const clock = manualClock();
    let now = Date.UTC(2026, 5, 1);
    const audit = auditIn(folder, { clock: { ...clock, now: () => now } });
    await enter(audit, 'june');
    now = Date.UTC(2025, 0, 1);
    await enter(audit, 'before');
    expect((await entriesIn(folder)).map(({ n, at }) => [n, at.slice(0, 4)])).toEqual([
      [1, '2026'],
      [2, '2025'],
    ]);
    expect((await verifyAudit(folder)).broken).toBeNull();
  });

  it('waits for another process that writes, and gives up in the end', async () => {
    const held = await takeLock(join(folder, 'audit.lock'));
    const waited = enter(auditIn(folder), 'patience');
    await new Promise((resolve) => setTimeout(resolve, 50));
    held?.release();
    await waited;
    const again = await takeLock(join(folder, 'audit.lock'));
    const hasty = { now: Date.now, sleep: async () => {}, after: () => () => {} };
    await expect(enter(auditIn(folder, { clock: hasty }), 'never')).rejects.toSatisfy(
      (fault: Fault) =>
        fault.code === 'audit_unavailable' && describeFault(fault).includes('does not let go'),
    );
    again?.release();
    expect(await saidIn(folder)).toEqual(['patience']);
  });
});

describe('older files', () => {
  it('begin with the number of their first entry, and the chain goes on over them', async () => {
    const audit = auditIn(folder, { fileBytes: 1_000 });
    for (let i = 1; i <= 10; i++) await enter(audit, `entry ${i}`);
    const older = await olderIn(folder);
    expect(older.length).toBeGreaterThan(2);
    expect(await verifyAudit(folder)).toMatchObject({ entries: 10, first: 1, broken: null });
    expect(await saidIn(folder)).toEqual(Array.from({ length: 10 }, (_, i) => `entry ${i + 1}`));
    for (const name of older) expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600);
  });

  it('go, oldest first, beyond what may be kept; the chain then begins later, and says so', async () => {
    const audit = auditIn(folder, { fileBytes: 1_000, keepBytes: 4_000 });
    for (let i = 1; i <= 30; i++) await enter(audit, `entry ${i}`);
    const verdict = await verifyAudit(folder);
    expect(verdict).toMatchObject({ broken: null });
    expect(verdict.first).toBeGreaterThan(10);
    expect((await olderIn(folder)).length).toBeLessThan(5);
    expect(
      (await saidIn(folder)).filter((what) => what.includes('the oldest file went')).length,
    ).toBeGreaterThan(0);
  });

  it('go on whole after audit.head was lost and those before had gone', async () => {
    const audit = auditIn(folder, { fileBytes: 1_000, keepBytes: 4_000 });
    for (let i = 1; i <= 20; i++) await enter(audit, `entry ${i}`);
    for (const name of [...(await olderIn(folder)), 'audit.head']) await unlink(join(folder, name));
    for (let i = 1; i <= 5; i++) await enter(audit, `later ${i}`);
    expect((await olderIn(folder)).length).toBeGreaterThan(0);
    expect((await verifyAudit(folder)).broken?.what).toContain('audit.head is gone');
    expect(await olderIn(folder)).not.toContain('audit.1.jsonl');
  });

  it('that should be gone, or were renamed when the process ended, break nothing', async () => {
    const audit = auditIn(folder, { fileBytes: 1_000, keepBytes: 3_000 });
    await enter(audit, 'first');
    const firstFile = await readFile(join(folder, 'audit.jsonl'));
    for (let i = 2; i <= 20; i++) await enter(audit, `entry ${i}`);
    await writeFile(join(folder, 'audit.1.jsonl'), firstFile);
    expect((await verifyAudit(folder)).broken).toBeNull();
    const head = JSON.parse(await readFile(join(folder, 'audit.head'), 'utf8')) as { from: number };
    await rename(join(folder, 'audit.jsonl'), join(folder, `audit.${head.from}.jsonl`));
    expect((await verifyAudit(folder)).broken).toBeNull();
    await enter(audit, 'after');
    expect((await verifyAudit(folder)).broken).toBeNull();
  });
});

describe('what a crash leaves', () => {
  it('a line that the head does not know yet is taken up', async () => {
    const audit = auditIn(folder);
    await enter(audit, 'a', 'b');
    const head = await readFile(join(folder, 'audit.head'));
    await enter(audit, 'c');
    await writeFile(join(folder, 'audit.head'), head);
    expect((await verifyAudit(folder)).broken).toBeNull();
    await enter(audit, 'd');
    expect(await saidIn(folder)).toEqual(['a', 'b', 'c', 'd']);
    expect(await verifyAudit(folder)).toMatchObject({ entries: 4, broken: null });
  });

  it.each([
    ['half a line', '{"n":3,"at":"2026'],
    ['a block of zeros', Buffer.alloc(5_000)],
    ['rubbish of several lines', 'a\nb\n\n{"n":3}\n'],
    ['a line end', '\n'],
  ])('%s is kept and named, and the chain goes on', async (_, rubbish) => {
    const audit = auditIn(folder);
    await enter(audit, 'a', 'b');
    await leave(folder, rubbish);
    await enter(audit, 'c');
    const text = await readFile(join(folder, 'audit.jsonl'));
    expect(text.includes(Buffer.from(rubbish))).toBe(true);
    expect((await entriesIn(folder)).map(({ n, kind }) => [n, kind])).toEqual([
      [1, 'command'],
      [2, 'command'],
      [3, 'torn'],
      [4, 'command'],
    ]);
    expect(await verifyAudit(folder)).toMatchObject({ entries: 4, broken: null });
  });

  it('what it left cannot be changed afterwards', async () => {
    const audit = auditIn(folder);
    await enter(audit, 'a');
    await leave(folder, 'half a li');
    await enter(audit, 'b');
    const text = await readFile(join(folder, 'audit.jsonl'), 'utf8');
    await writeFile(join(folder, 'audit.jsonl'), text.replace('half a li', 'half a LI'));
    expect((await verifyAudit(folder)).broken).toMatchObject({ line: 2, what: 'this is no entry' });
  });
});

describe('where it cannot be written', () => {
  /** Every write fails. */
  async function spoil(): Promise<void> {
    await writeFile(join(folder, 'audit.head'), JSON.stringify(NEW_HEAD));
    await symlink('/dev/full', join(folder, 'audit.jsonl'));
  }

  it('what needs an entry is refused with a plain sentence, and what goes on is said once a minute', async () => {
    const { log, said } = listening();
    const clock = manualClock();
    const audit = auditIn(folder, { log, clock });
    await spoil();
    const fault = await audit.record(entry('an approval')).catch((error: unknown) => error as Fault);
    expect(fault).toMatchObject({
      code: 'audit_unavailable',
      sentence: expect.stringContaining('I did not do it'),
    });
    expect(describeFault(fault)).toMatch(
      /audit\.jsonl cannot be written; make room.*audit\.jsonl is no file/,
    );
    expect(said).toEqual([]);
    for (let i = 0; i < 5; i++) await audit.note(entry('a command'));
    expect(said).toHaveLength(1);
    await clock.advance(61_000);
    await audit.note(entry('a command'));
    expect(said).toHaveLength(2);
    await unlink(join(folder, 'audit.jsonl'));
    await enter(audit, 'again');
    expect(await saidIn(folder)).toEqual([
      expect.stringMatching(/^6 things were done since .* could not be entered$/),
      'again',
    ]);
  });

  it('nothing stays of what was refused', async () => {
    const audit = auditIn(folder);
    await enter(audit, 'a');
    await mkdir(join(folder, 'audit.head.new'));
    await expect(enter(audit, 'b')).rejects.toMatchObject({ code: 'audit_unavailable' });
    await rm(join(folder, 'audit.head.new'), { recursive: true });
    await enter(audit, 'c');
    expect(await saidIn(folder)).toEqual(['a', 'c']);
    expect((await verifyAudit(folder)).broken).toBeNull();
  });

  it('a folder in its place, and a folder that is a file, are told', async () => {
    await mkdir(join(folder, 'audit.jsonl'));
    await expect(enter(auditIn(folder), 'a')).rejects.toMatchObject({ code: 'audit_unavailable' });
    await writeFile(join(folder, 'file'), '');
    await expect(enter(auditIn(join(folder, 'file')), 'a')).rejects.toMatchObject({
      code: 'audit_unavailable',
    });
  });

  it.skipIf(process.getuid?.() === 0)('a folder that may only be read is told', async () => {
    await chmod(folder, 0o500);
    await expect(enter(auditIn(folder), 'a')).rejects.toMatchObject({ code: 'audit_unavailable' });
  });

  it('goes on where the file was cut meanwhile, and the cut is found', async () => {
    const audit = auditIn(folder);
    await enter(audit, 'a', 'b');
    await truncate(join(folder, 'audit.jsonl'), 10);
    await enter(audit, 'c');
    expect(await saidIn(folder)).toEqual(['c']);
    expect((await verifyAudit(folder)).broken).toMatchObject({ line: 1, what: 'this is no entry' });
  });
});
