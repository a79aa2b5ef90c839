/** What somebody does to the audit log who can write to its folder, and what is noticed of it. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink, truncate, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Audit } from '../../src/core/journal.js';
import { type Verdict, verifyAudit } from '../../src/operating/audit-read.js';
import {
  auditIn,
  enter,
  entriesIn,
  entry,
  leave,
  linesIn,
  olderIn,
  rechained,
  rewrite,
} from './audit-support.js';

let folder: string;
let audit: Audit;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-audit-'));
  audit = auditIn(folder);
  await enter(audit, 'one', 'two', 'three', 'four', 'five');
});
afterEach(() => rm(folder, { recursive: true }));

const broken = async (): Promise<Verdict['broken']> => (await verifyAudit(folder)).broken;

/** It is found at once, and still when the gateway has gone on writing. */
async function expectBreak(line: number, what: RegExp, file = 'audit.jsonl'): Promise<void> {
  const found = { file, line, what: expect.stringMatching(what) };
  expect(await broken()).toEqual(found);
  await enter(audit, 'six', 'seven');
  expect(await broken()).not.toBeNull();
}

describe('it is noticed', () => {
  it('that a line was changed', async () => {
    await rewrite(folder, (lines) => lines.map((line) => line.replace('three', 'free!')));
    await expectBreak(3, /entry 3 is not as it was written/);
  });

  it('that a line was changed to what reads the same', async () => {
    await rewrite(folder, (lines) => lines.map((line) => line.replace('three', '\\u0074hree')));
    await expectBreak(3, /entry 3 is not as it was written/);
  });

  it('that a line was taken out, the first too', async () => {
    await rewrite(folder, (lines) => lines.filter((_, i) => i !== 2));
    expect(await broken()).toEqual({ file: 'audit.jsonl', line: 3, what: 'entry 3 is missing before this' });
    await rewrite(folder, (lines) => lines.slice(1));
    await expectBreak(1, /entry 1 is missing before this/);
  });

  it('that two lines changed places', async () => {
    await rewrite(folder, ([a = '', b = '', c = '', ...rest]) => [a, c, b, ...rest]);
    await expectBreak(2, /entry 2 is missing before this/);
  });

  it('that a line was put in, a copy too', async () => {
    await rewrite(folder, ([a = '', ...rest]) => [a, a, ...rest]);
    expect(await broken()).toMatchObject({ line: 2, what: 'entry 1 stands here again, or was moved here' });
    await rewrite(folder, ([a = '', , ...rest]) => [a, 'nothing to see', ...rest]);
    await expectBreak(2, /this is no entry/);
  });

  it('that the end was cut off, at a line or in one', async () => {
    await rewrite(folder, (lines) => lines.slice(0, 3));
    expect(await broken()).toMatchObject({ line: 0, what: 'the entries 4 to 5 are missing at the end' });
    await truncate(join(folder, 'audit.jsonl'), 700);
    await expectBreak(3, /this is no entry/);
  });

  it('that the file was removed, emptied, or replaced by that of another machine', async () => {
    const other = await mkdtemp(join(tmpdir(), 'coterie-audit-'));
    await enter(auditIn(other), 'other 1', 'other 2', 'other 3', 'other 4', 'other 5');
    await writeFile(join(folder, 'audit.jsonl'), await readFile(join(other, 'audit.jsonl')));
    await rm(other, { recursive: true });
    expect(await broken()).toMatchObject({ line: 5, what: expect.stringContaining('was written anew') });
    await writeFile(join(folder, 'audit.jsonl'), '');
    expect(await broken()).toMatchObject({ line: 0, what: 'the entries 1 to 5 are missing at the end' });
    await unlink(join(folder, 'audit.jsonl'));
    await expectBreak(0, /the entries 1 to 5 are missing at the end/);
  });

  it('that the chain was made anew from the middle, however well', async () => {
    await rewrite(folder, (lines) => rechained(lines, 2, (what) => what.replace('three', 'tea')));
    await expectBreak(5, /entry 5 is not the one that was written/);
  });

  it('that the head was taken away with the end, or written anew to nothing', async () => {
    await rewrite(folder, (lines) => lines.slice(0, 2));
    await unlink(join(folder, 'audit.head'));
    await expectBreak(0, /is gone/, 'audit.head');
    expect(await broken()).toMatchObject({ line: 3, what: expect.stringContaining('audit.head is gone') });
  });

  it('that the head says nothing any more', async () => {
    await writeFile(join(folder, 'audit.head'), '{"n": "a"}');
    await expectBreak(0, /cannot be read/, 'audit.head');
  });

  it('that something was added which does not go on from the end', async () => {
    await leave(folder, `${(await linesIn(folder))[0]}\n`);
    expect(await broken()).toMatchObject({ line: 6 });
    await enter(audit, 'six');
    // As what a crash left it stands there for good, and says so.
    expect((await linesIn(folder))[6]).toContain('"kind":"torn"');
  });

  it('that an older file was removed, or changed', async () => {
    audit = auditIn(folder, { fileBytes: 800 });
    await enter(audit, ...Array.from({ length: 10 }, (_, i) => `later ${i}`));
    const [first = '', second = '', third = ''] = await olderIn(folder);
    expect(await broken()).toBeNull();
    const kept = await readFile(join(folder, second));
    await unlink(join(folder, second));
    expect(await broken()).toMatchObject({
      file: third,
      line: 1,
      what: expect.stringContaining('missing before this'),
    });
    await writeFile(join(folder, second), kept);
    await rewrite(folder, (lines) => lines.map((line) => line.replace('two', 'too')), first);
    await expectBreak(2, /entry 2 is not as it was written/, first);
  });
});

describe('it is not taken for an attack', () => {
  it('that there is nothing yet', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'coterie-audit-'));
    expect(await verifyAudit(empty)).toEqual({ entries: 0, first: null, last: null, broken: null });
    expect(await verifyAudit(join(empty, 'not there'))).toMatchObject({ entries: 0, broken: null });
    await rm(empty, { recursive: true });
  });

  it('that somebody writes while it is looked at', async () => {
    const writing = auditIn(folder, { fileBytes: 2_000, keepBytes: 20_000 });
    let isOver = false;
    const all = Promise.all(Array.from({ length: 300 }, (_, i) => enter(writing, `busy ${i}`))).then(() => {
      isOver = true;
    });
    while (!isOver) expect(await broken()).toBeNull();
    await all;
    expect(await broken()).toBeNull();
  });
});

/** Whoever opens a pipe waits for its other end; a device never ends. */
describe.skipIf(process.platform === 'win32')('what is no file keeps nobody waiting', () => {
  for (const name of ['audit.jsonl', 'audit.head', 'audit.head.new', 'audit.7.jsonl']) {
    it(`a pipe as ${name}`, async () => {
      await rm(join(folder, name), { force: true });
      execFileSync('mkfifo', [join(folder, name)]);
      if (name !== 'audit.7.jsonl') {
        await expect(audit.record(entry('six'))).rejects.toMatchObject({ code: 'audit_unavailable' });
      }
      if (name === 'audit.head.new') return;
      await expect(verifyAudit(folder)).rejects.toThrow(`${name} is no file`);
      if (name !== 'audit.head') await expect(entriesIn(folder)).rejects.toThrow(`${name} is no file`);
    });
  }

  it('a device as audit.jsonl', async () => {
    await unlink(join(folder, 'audit.jsonl'));
    await symlink('/dev/zero', join(folder, 'audit.jsonl'));
    await expect(audit.record(entry('six'))).rejects.toMatchObject({ code: 'audit_unavailable' });
    await expect(verifyAudit(folder)).rejects.toThrow('audit.jsonl is no file');
  });
});
