/** Gateways that say how late they see an edit, with a store's notices in memory and a folder on disk. */
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock as clock } from '../../src/core/clock.js';
import type { Notices } from '../../src/core/node.js';
import { answerOnEdits, timeEdits } from '../../src/operating/edits-seen.js';

const ID = '0b8c1f5e-5b0f-4a52-9a65-0a6a5a3f1c11';

describe('edits in a shared folder', () => {
  let folder: string;
  let heard: string[];
  let ends: (() => void)[];
  let notices: Notices;
  const elapsed = () => performance.now();
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coterie-edits-'));
    heard = [];
    ends = [];
    const hearers = new Set<(text: string) => void>();
    notices = {
      onNotice(hearer) {
        hearers.add(hearer);
        return () => void hearers.delete(hearer);
      },
      async notify(text) {
        heard.push(text);
        for (const hearer of hearers) hearer(text);
      },
    };
  });
  afterEach(async () => {
    for (const end of ends) end();
    await rm(folder, { recursive: true });
  });
  const answers = (node: string, where = folder) =>
    ends.push(answerOnEdits({ node, folder: where, notices, clock, elapsed }));
  const time = (nodes: string[], by = notices) =>
    timeEdits(nodes, { folder, notices: by, clock, elapsed, newId: () => ID });

  it('are seen at once where it is one folder, and leave nothing in it', async () => {
    await writeFile(join(folder, 'AGENTS.md'), 'principles');
    // Of a doctor that was killed.
    const old = join(folder, '.coterie-doctor.7-1.tmp');
    await writeFile(old, 'x');
    await utimes(old, 1, 1);
    for (const node of ['a', 'b']) answers(node);
    const found = await time(['a', 'b']);
    expect(found).toMatchObject([
      { node: 'a', kind: 'seen' },
      { node: 'b', kind: 'seen' },
    ]);
    for (const one of found) expect(one).toHaveProperty('longestMs', expect.closeTo(500, -3));
    expect(await readdir(folder)).toEqual(['AGENTS.md']);
  });

  it('are not seen in another folder, nor by one that does not answer', async () => {
    const other = await mkdtemp(join(tmpdir(), 'coterie-edits-'));
    answers('b', other);
    expect(await time(['b', 'c'])).toEqual([
      { node: 'b', kind: 'no file' },
      { node: 'c', kind: 'silent' },
    ]);
    await rm(other, { recursive: true });
  });

  it('leave nothing when the store fails meanwhile', async () => {
    const broken = { ...notices, notify: () => Promise.reject(new Error('the store is away')) };
    await expect(time(['a'], broken)).rejects.toThrow('the store is away');
    expect(await readdir(folder)).toEqual([]);
  });

  it.each([
    'not json',
    '{}',
    '[]',
    `{"ask":"${ID}","file":"../secret"}`,
    `{"ask":"${ID}","file":"AGENTS.md"}`,
    `{"ask":"${ID}","file":".coterie-doctor.1-1.tmp/../AGENTS.md"}`,
    '{"ask":"me","file":".coterie-doctor.1-1.tmp"}',
  ])('nobody looks for %j', async (text) => {
    await writeFile(join(folder, 'AGENTS.md'), `${ID} 1`);
    answers('a');
    await notices.notify(text);
    await clock.sleep(100);
    expect(heard).toEqual([text]);
  });
});
