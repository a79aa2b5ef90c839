/** The workspace on disk: one file for everybody who edits it, and what a prompt shows of it whatever stands there. */
import { writeFileSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { locks } from '../../src/core/concurrency.js';
import { fileUpdater } from '../../src/core/write-whole.js';
import { dataFolder, workspaceIn } from './support.js';

const TODAY = '2026-11-23';
const SHOWN = { today: TODAY, memoryChars: 12_000 };

describe('the folder', () => {
  it('is made at the first use, for nobody else, and nothing is invented in it', async () => {
    const { data } = await dataFolder();
    const workspace = workspaceIn(data);
    expect(await workspace.shown(SHOWN)).toEqual({
      ...{ bootstrap: [], memory: '', dailyLog: '', plan: '' },
      origin: 'inside',
    });
    expect(await readdir(data)).toEqual([]);
    const folder = await workspace.folder();
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    expect(await readdir(folder)).toEqual(['memory']);
  });

  it('says what is wrong where a file has its name, and prevents no reply', async () => {
    const { data, put } = await dataFolder();
    await put('workspace', 'a file');
    const workspace = workspaceIn(data);
    await expect(workspace.read('plan')).rejects.toMatchObject({ code: 'memory_unavailable' });
    expect((await workspace.shown(SHOWN)).plan).toBe('');
  });
});

describe('a document', () => {
  it('that is missing is empty, with a tag of its own', async () => {
    const { data } = await dataFolder();
    const workspace = workspaceIn(data);
    const missing = await workspace.read('plan');
    expect(missing.content).toBe('');
    expect(await workspace.write('plan', '# Plan', missing.etag)).toMatchObject({ kind: 'written' });
    expect((await workspace.read('plan')).etag).not.toBe(missing.etag);
    expect(await workspace.write('plan', 'mine', missing.etag)).toMatchObject({ kind: 'stale' });
  });

  it('reads back as it was written, whatever was written', async () => {
    const { data } = await dataFolder();
    const workspace = workspaceIn(data);
    const tags = new Map<string, string>();
    const file = fc.constantFrom('plan' as const, 'memory' as const);
    const piece = fc.constantFrom(
      'a',
      '\n',
      '\r\n',
      '\0',
      '\uFEFF',
      'ü',
      '😀',
      '```',
      '<user_message>',
      ' ',
      '\u2028',
    );
    const content = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.array(piece).map((all) => all.join('')),
    );
    await fc.assert(
      fc.asyncProperty(file, content, async (to, text) => {
        const written = await workspace.write(to, text, null);
        const read = await workspace.read(to);
        expect(read).toEqual({ content: text, etag: written.etag });
        // The tag follows the content, in both directions.
        expect(tags.get(text) ?? read.etag).toBe(read.etag);
        tags.set(text, read.etag);
      }),
      { numRuns: 150 },
    );
    expect(new Set(tags.values()).size).toBe(tags.size);
  });

  it('keeps its mode, and a link to another file of the workspace stays one', async () => {
    const { data, put } = await dataFolder();
    const path = await put('workspace/plans/now.md', 'old');
    await chmod(path, 0o640);
    await symlink('plans/now.md', join(data, 'workspace/task.md'));
    await workspaceIn(data).write('plan', 'new', null);
    expect(await readFile(path, 'utf8')).toBe('new');
    expect((await stat(path)).mode & 0o777).toBe(0o640);
    expect((await workspaceIn(data).shown(SHOWN)).plan).toBe('new');
  });

  it('of more than 2 MB is refused, and the old one stays', async () => {
    const { data, put } = await dataFolder();
    await put('workspace/MEMORY.md', 'short');
    const workspace = workspaceIn(data);
    await expect(workspace.write('memory', 'ü'.repeat(1_000_001), null)).rejects.toMatchObject({
      code: 'memory_unavailable',
    });
    expect((await workspace.read('memory')).content).toBe('short');
    await put('workspace/MEMORY.md', Buffer.alloc(2_000_001, 97));
    await expect(workspace.read('memory')).rejects.toThrow(/larger than 2.0 MB/);
  });

  it('that is a link leading out, or nowhere, is neither read nor written nor shown', async () => {
    const { data, put } = await dataFolder();
    const secret = await put('secret.md', 'the secret');
    const workspace = workspaceIn(data);
    const folder = await workspace.folder();
    await symlink(secret, join(folder, 'task.md'));
    await symlink('../secret.md', join(folder, 'USER.md'));
    await symlink('nowhere.md', join(folder, 'MEMORY.md'));
    for (const file of ['plan', 'memory'] as const) {
      await expect(workspace.read(file)).rejects.toMatchObject({ code: 'memory_unavailable' });
      await expect(workspace.write(file, 'x', null)).rejects.toMatchObject({ code: 'memory_unavailable' });
    }
    expect(await readFile(secret, 'utf8')).toBe('the secret');
    const shown = await workspace.shown(SHOWN);
    expect(JSON.stringify(shown)).not.toContain('the secret');
    expect(workspace.warnings.length).toBeGreaterThanOrEqual(2);
  });
});

describe('two writers at the same moment', () => {
  it('of whom both have read the same: one writes, the other is told that it is stale', async () => {
    const { data } = await dataFolder();
    const exclusive = locks();
    const [board, tool] = [workspaceIn(data, exclusive), workspaceIn(data, exclusive)];
    await board.write('plan', 'first', null);
    for (let round = 0; round < 20; round++) {
      const { etag } = await board.read('plan');
      const ends = await Promise.all([
        board.write('plan', `board ${round}`, etag),
        tool.write('plan', `tool ${round}`, etag),
      ]);
      expect(ends.map(({ kind }) => kind).sort()).toEqual(['stale', 'written']);
      const now = await board.read('plan');
      expect(now.content).toBe(ends[0]?.kind === 'written' ? `board ${round}` : `tool ${round}`);
      // Who was too late can go on from the tag that came with the answer.
      expect(ends.map((end) => end.etag)).toEqual([now.etag, now.etag]);
    }
  });

  it('compares again when somebody saves the file between its reading and its writing', async () => {
    const { data, put } = await dataFolder();
    const path = await put('workspace/task.md', 'one');
    const exclusive = locks();
    const workspace = workspaceIn(data, exclusive);
    const { etag } = await workspace.read('plan');
    // Holds the file's lock, so that the edit comes after the write was asked for and before it is made.
    const holding = fileUpdater(exclusive)(path, () => {
      writeFileSync(path, 'by hand');
      return null;
    });
    const [, end] = await Promise.all([holding, workspace.write('plan', 'board', etag)]);
    expect(end.kind).toBe('stale');
    expect(await readFile(path, 'utf8')).toBe('by hand');
  });

  it('leaves a whole file whoever overwrites it', async () => {
    const { data } = await dataFolder();
    const exclusive = locks();
    const [one, other] = [workspaceIn(data, exclusive), workspaceIn(data, exclusive)];
    const texts = Array.from({ length: 10 }, (_, n) => String(n).repeat(50_000));
    await Promise.all(texts.map((text, n) => (n % 2 ? one : other).write('memory', text, null)));
    expect(texts).toContain((await one.read('memory')).content);
    expect(await readdir(await one.folder())).toEqual(['MEMORY.md', 'memory']);
  });
});

describe('what a prompt shows', () => {
  it('has the bootstrap files in their order, memory, the latest two days and the plan', async () => {
    const { data, put } = await dataFolder();
    for (const file of ['USER.md', 'TOOLS.md', 'SOUL.md', 'IDENTITY.md', 'AGENTS.md', 'HEARTBEAT.md']) {
      await put(`workspace/${file}`, `\n of ${file}\n`);
    }
    await put('workspace/MEMORY.md', '- owner is Julius\n');
    await put('workspace/task.md', '\n- [ ] build\n');
    for (const day of ['2026-11-20', '2026-11-21', '2026-11-23', '2026-11-24', '2026-99-99', 'notes'])
      await put(`workspace/memory/${day}.md`, `on ${day}\n`);
    await put('workspace/memory/2026-11-22.md', ' \n');
    expect(await workspaceIn(data).shown(SHOWN)).toEqual({
      bootstrap: ['AGENTS.md', 'SOUL.md', 'IDENTITY.md', 'USER.md', 'TOOLS.md'].map((file) => ({
        file,
        text: `of ${file}`,
      })),
      memory: '- owner is Julius',
      dailyLog: '--- 2026-11-23 ---\non 2026-11-23\n\n--- 2026-11-21 ---\non 2026-11-21',
      plan: '- [ ] build',
      origin: 'inside',
    });
  });

  it('is as the files are now', async () => {
    const { data, put } = await dataFolder();
    const workspace = workspaceIn(data);
    for (const text of ['one', 'two', 'six']) {
      await put('workspace/task.md', text);
      await put(`workspace/memory/${TODAY}.md`, text);
      const { plan, dailyLog } = await workspace.shown(SHOWN);
      expect([plan, dailyLog]).toEqual([text, `--- ${TODAY} ---\n${text}`]);
    }
  });

  it('is cut to the budgets, never without a marker, and never in the middle of a character', async () => {
    const { data, put } = await dataFolder();
    await put('workspace/MEMORY.md', `${'m'.repeat(6_999)}😀${'m'.repeat(9_000)}`);
    await put('workspace/task.md', 'p'.repeat(8_001));
    for (const file of ['AGENTS.md', 'SOUL.md', 'IDENTITY.md', 'USER.md', 'TOOLS.md'])
      await put(`workspace/${file}`, 'b'.repeat(5_999));
    await put(`workspace/memory/${TODAY}.md`, 'd'.repeat(4_001));
    const { bootstrap, memory, dailyLog, plan } = await workspaceIn(data).shown({
      ...SHOWN,
      memoryChars: 7_000,
    });
    expect(memory).toBe(`${'m'.repeat(6_999)}\n\n<<truncated due to memory-max-chars=12000>>`);
    expect(plan).toBe(`${'p'.repeat(8_000)}\n\n<<truncated due to plan-max-chars=8000>>`);
    expect(dailyLog).toContain(`d\n\n<<truncated due to daily-per-day-max-chars=4000>>`);
    const marker = '<<truncated due to workspace-files-max-chars=22000>>';
    expect(bootstrap.map(({ text }) => text)).toEqual([
      'b'.repeat(5_999),
      'b'.repeat(5_999),
      'b'.repeat(5_999),
      `${'b'.repeat(4_003)}\n\n${marker}`,
      marker,
    ]);
    expect((await workspaceIn(data).shown({ ...SHOWN, memoryChars: 0 })).memory).toBe(
      '<<truncated due to memory-max-chars=12000>>',
    );
    await put('workspace/AGENTS.md', 'b'.repeat(12_001));
    await put('workspace/SOUL.md', 'b'.repeat(6_001));
    const [first, second] = (await workspaceIn(data).shown(SHOWN)).bootstrap;
    expect(first?.text).toBe(`${'b'.repeat(12_000)}\n\n<<truncated due to workspace-file-max-chars=12000>>`);
    expect(second?.text).toBe(`${'b'.repeat(6_000)}\n\n<<truncated due to workspace-file-max-chars=6000>>`);
    await put('workspace/AGENTS.md', 'b'.repeat(12_000));
    expect((await workspaceIn(data).shown(SHOWN)).bootstrap[0]?.text).toBe('b'.repeat(12_000));
  });

  it('counts as empty what is a folder, no text, or what nobody may read; 100 MB take no longer', async () => {
    const { data, put } = await dataFolder();
    const workspace = workspaceIn(data);
    const folder = await workspace.folder();
    await mkdir(join(folder, 'MEMORY.md'));
    await writeFile(join(folder, 'SOUL.md'), Buffer.from([0xff, 0xfe, 0x61, 0, 0x62, 0]));
    await writeFile(join(folder, 'USER.md'), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 1]));
    await symlink('TOOLS.md', join(folder, 'TOOLS.md'));
    await mkdir(join(folder, `memory/${TODAY}.md`));
    await put('workspace/memory/2026-11-22.md', 'yesterday');
    await put('workspace/task.md', 'begins');
    await truncate(join(folder, 'task.md'), 100_000_000);
    await put('workspace/AGENTS.md', `${'long '.repeat(100)}\n`);
    const huge = await put('workspace/IDENTITY.md', 'i'.repeat(1_000_000));
    await truncate(huge, 1_000_000);
    const started = performance.now();
    const shown = await workspace.shown(SHOWN);
    expect(performance.now() - started).toBeLessThan(2_000);
    expect(shown.memory).toBe('');
    expect(shown.plan).toBe('');
    expect(shown.dailyLog).toBe('--- 2026-11-22 ---\nyesterday');
    expect(shown.bootstrap.map(({ file }) => file)).toEqual(['AGENTS.md', 'IDENTITY.md']);
    expect(shown.bootstrap[1]?.text).toMatch(
      /^i{6000}\n\n<<truncated due to workspace-file-max-chars=6000>>$/,
    );
    expect(workspace.warnings.length).toBeGreaterThanOrEqual(5);
  });

  it('marks a file as cut whose beginning is all white space', async () => {
    const { data, put } = await dataFolder();
    await put('workspace/task.md', `${' '.repeat(200_000)}the plan`);
    expect((await workspaceIn(data).shown(SHOWN)).plan).toBe('<<truncated due to plan-max-chars=8000>>');
  });

  it('is without what lies in a folder that is a link leading out', async () => {
    const { data, put } = await dataFolder();
    await put(`elsewhere/${TODAY}.md`, 'of another chat');
    await mkdir(join(data, 'workspace'));
    await symlink(join(data, 'elsewhere'), join(data, 'workspace/memory'));
    expect((await workspaceIn(data).shown(SHOWN)).dailyLog).toBe('');
  });
});
