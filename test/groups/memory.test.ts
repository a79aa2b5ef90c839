import { execFileSync } from 'node:child_process';
import { chmod, lstat, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { SeenTier, Tier } from '../../src/core/memory.js';
import { NEW_MEMORY } from '../../src/groups/tiers.js';
import { BY_TURN, groupsFolder, listeningLog, memoryIn } from './support.js';

const OWNER = { chatId: 'terminal_local', personaId: 'luna' };
const EMPTY: SeenTier = { text: '' };
const CUT: SeenTier = { cut: true };

const fileIn = (groups: string) => join(groups, OWNER.chatId, OWNER.personaId, 'MEMORY.md');

async function groupsWith(text: string | Buffer): Promise<string> {
  const groups = await groupsFolder();
  await mkdir(dirname(fileIn(groups)), { recursive: true });
  await writeFile(fileIn(groups), text);
  return groups;
}

describe('snapshot', () => {
  it('shows the file trimmed, and what it shows of each tier', async () => {
    const memory = memoryIn(await groupsWith('\uFEFF# Memory\n\n## Tier 1\n\ntea\n\n## Tier 3\nrain\n\n'));
    expect(await memory.snapshot(OWNER)).toEqual({
      text: '# Memory\n\n## Tier 1\n\ntea\n\n## Tier 3\nrain',
      seen: { 1: { text: 'tea' }, 2: EMPTY, 3: { text: 'rain' } },
    });
  });

  it('counts as empty when nothing stands under the headings', async () => {
    const seen = { 1: EMPTY, 2: EMPTY, 3: EMPTY };
    expect(await memoryIn(await groupsWith(NEW_MEMORY)).snapshot(OWNER)).toEqual({ text: '', seen });
    expect(await memoryIn(await groupsWith('')).snapshot(OWNER)).toEqual({ text: '', seen });
    expect(await memoryIn(await groupsFolder()).snapshot(OWNER)).toEqual({ text: '', seen });
    const deep = await memoryIn(await groupsWith('## Tier 1\n### later\n')).snapshot(OWNER);
    expect(deep).toEqual({ text: '', seen: { 1: CUT, 2: EMPTY, 3: EMPTY } });
  });

  it('is cut at 12,000 characters, and tells which tiers were cut into or away', async () => {
    const head = '## Tier 1\nshort\n## Tier 2\n';
    const memory = memoryIn(await groupsWith(`\n${head}${'x'.repeat(12_000)}\n## Tier 3\nz\n`));
    const { text, seen } = await memory.snapshot(OWNER);
    expect(text).toBe(
      `${head}${'x'.repeat(12_000 - head.length)}\n\n<<truncated due to memory-max-chars=12000>>`,
    );
    expect(seen).toEqual({ 1: { text: 'short' }, 2: CUT, 3: CUT });
  });

  it('does not count a tier as seen whose second heading was cut away', async () => {
    const memory = memoryIn(await groupsWith('## Tier 1\na\n## Own\nxxxxxxxxx\n## Tier 1\nb\n'), {
      longTermMaxChars: 20,
    });
    expect((await memory.snapshot(OWNER)).seen[1]).toEqual(CUT);
  });

  it('counts a file that cannot be read as empty and unseen, and says so in the log', async () => {
    const groups = await groupsFolder();
    await mkdir(fileIn(groups), { recursive: true });
    const log = listeningLog();
    const memory = memoryIn(groups, {}, { log });
    expect(await memory.snapshot(OWNER)).toEqual({ text: '', seen: { 1: CUT, 2: CUT, 3: CUT } });
    expect(JSON.stringify(log.warnings)).toContain('a directory stands where a file is expected');
    await expect(memory.readTier(OWNER, 1)).rejects.toMatchObject({ code: 'memory_unavailable' });
    await expect(memory.writeTier(OWNER, 1, 'x', EMPTY, BY_TURN)).rejects.toMatchObject({
      code: 'memory_unavailable',
    });
  });

  it('reads anew each time', async () => {
    const groups = await groupsWith('## Tier 1\na\n');
    const memory = memoryIn(groups);
    await memory.snapshot(OWNER);
    await writeFile(fileIn(groups), '## Tier 1\nb\n');
    expect((await memory.snapshot(OWNER)).text).toBe('## Tier 1\nb');
  });

  it('takes a file of 10 MB', async () => {
    const groups = await groupsWith(`## Tier 1\n${'- a line of what is remembered — é\n'.repeat(270_000)}`);
    const memory = memoryIn(groups);
    const began = performance.now();
    const { text, seen } = await memory.snapshot(OWNER);
    expect(text.length).toBeLessThan(12_100);
    expect(seen).toEqual({ 1: CUT, 2: EMPTY, 3: EMPTY });
    expect(await memory.writeTier(OWNER, 2, 'x', EMPTY, BY_TURN)).toEqual({ kind: 'written', text: 'x' });
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it('is not held up by a pipe, and says what UTF-16 is', async () => {
    const groups = await groupsFolder();
    await mkdir(dirname(fileIn(groups)), { recursive: true });
    shell('mkfifo "$0"', fileIn(groups));
    await expect(memoryIn(groups).readAll(OWNER)).rejects.toThrow(/pipe/);
    await rm(fileIn(groups));
    await writeFile(fileIn(groups), Buffer.from('\uFEFF## Tier 1', 'utf16le'));
    await expect(memoryIn(groups).readAll(OWNER)).rejects.toThrow(/UTF-8/);
  });
});

describe('principles', () => {
  it('are groups/AGENTS.md, trimmed, read anew each time; unreadable counts as empty', async () => {
    const groups = await groupsFolder();
    const log = listeningLog();
    const memory = memoryIn(groups, {}, { log });
    expect(memory.principlesPath).toBe(join(groups, 'AGENTS.md'));
    expect(await memory.principles()).toBe('');
    await writeFile(join(groups, 'AGENTS.md'), '\uFEFF\nBe kind.\n');
    expect(await memory.principles()).toBe('Be kind.');
    await rm(join(groups, 'AGENTS.md'));
    await symlink('AGENTS.md', join(groups, 'AGENTS.md'));
    expect(await memory.principles()).toBe('');
    expect(JSON.stringify(log.warnings)).toContain('in a circle');
  });
});

describe('writeTier', () => {
  it('writes what was seen, and answers with what stands there now', async () => {
    const groups = await groupsWith(NEW_MEMORY);
    const memory = memoryIn(groups);
    expect(await memory.writeTier(OWNER, 1, ' # Tea\n', EMPTY, BY_TURN)).toEqual({
      kind: 'written',
      text: '### Tea',
    });
    expect(await memory.readTier(OWNER, 1)).toBe('### Tea');
    expect(await memory.writeTier(OWNER, 1, '', { text: '### Tea' }, BY_TURN)).toEqual({
      kind: 'written',
      text: '',
    });
    expect(await readFile(fileIn(groups), 'utf8')).toBe(NEW_MEMORY);
  });

  it('does not overwrite what was not seen, seen cut, or changed since', async () => {
    const groups = await groupsWith('## Tier 1\nby hand\n');
    const memory = memoryIn(groups);
    for (const seen of [undefined, CUT, EMPTY, { text: 'old' }]) {
      expect(await memory.writeTier(OWNER, 1, 'x', seen, BY_TURN)).toEqual({
        kind: 'changed',
        current: 'by hand',
      });
    }
    expect(await readFile(fileIn(groups), 'utf8')).toBe('## Tier 1\nby hand\n');
    expect((await memory.writeTier(OWNER, 2, 'x', undefined, BY_TURN)).kind).toBe('written');
  });

  it('refuses content that was cut', async () => {
    const memory = memoryIn(await groupsWith(NEW_MEMORY));
    const outcome = await memory.writeTier(
      OWNER,
      1,
      'a\n\n<<truncated due to memory-max-chars=12000>>',
      EMPTY,
      BY_TURN,
    );
    expect(outcome.kind).toBe('refused');
  });

  it('makes the folder and file again where groups/ went away', async () => {
    const groups = await groupsWith('## Tier 1\na\n');
    const memory = memoryIn(groups);
    await rm(groups, { recursive: true });
    expect(await memory.readTier(OWNER, 1)).toBe('');
    expect(await memory.writeTier(OWNER, 1, 'x', { text: 'a' }, BY_TURN)).toEqual({
      kind: 'changed',
      current: '',
    });
    expect(await memory.writeTier(OWNER, 1, 'x', EMPTY, BY_TURN)).toEqual({ kind: 'written', text: 'x' });
    expect(await readFile(fileIn(groups), 'utf8')).toBe(
      NEW_MEMORY.replace('Long term\n', 'Long term\n\nx\n'),
    );
  });

  it('takes no id that is not a folder name', async () => {
    const groups = await groupsFolder();
    const memory = memoryIn(groups);
    for (const owner of [
      { ...OWNER, chatId: '../terminal_local' },
      { ...OWNER, chatId: 'terminal_a/b' },
      { ...OWNER, chatId: 'personas' },
      { ...OWNER, personaId: '../luna' },
      { ...OWNER, personaId: 'memory' },
      { ...OWNER, personaId: '' },
    ]) {
      await expect(memory.writeTier(owner, 1, 'x', EMPTY, BY_TURN)).rejects.toMatchObject({
        code: 'memory_unavailable',
      });
    }
    expect(await readdir(groups)).toEqual([]);
  });

  it('loses no tier when several write at once, also through two memories of the same folder', async () => {
    const groups = await groupsWith('Mine.\n');
    const memories = [memoryIn(groups), memoryIn(groups)];
    const rounds = 20;
    const last: Record<Tier, string> = { 1: '', 2: '', 3: '' };
    async function writer(tier: Tier): Promise<void> {
      for (let round = 1; round <= rounds; round++) {
        const memory = memories[(round + tier) % 2] ?? memories[0];
        const outcome = await memory?.writeTier(
          OWNER,
          tier,
          `${tier}/${round}`,
          { text: last[tier] },
          BY_TURN,
        );
        expect(outcome).toEqual({ kind: 'written', text: `${tier}/${round}` });
        last[tier] = `${tier}/${round}`;
      }
    }
    await Promise.all([writer(1), writer(2), writer(3)]);
    expect(await readFile(fileIn(groups), 'utf8')).toBe(
      'Mine.\n\n## Tier 1 — Long term\n\n1/20\n\n## Tier 2 — Mid term\n\n2/20\n\n## Tier 3 — Short term\n\n3/20\n',
    );
    expect(await readdir(dirname(fileIn(groups)))).toEqual(['MEMORY.md']);
  });

  it('writes through a link to its target, keeping the mode', async () => {
    const groups = await groupsWith('');
    const target = join(groups, 'elsewhere', 'real.md');
    await rm(fileIn(groups));
    await symlink('../../elsewhere/real.md', fileIn(groups));
    const memory = memoryIn(groups);
    await memory.writeTier(OWNER, 1, 'a', EMPTY, BY_TURN);
    await chmod(target, 0o640);
    await memory.writeTier(OWNER, 1, 'b', { text: 'a' }, BY_TURN);
    expect(await readFile(target, 'utf8')).toContain('\nb\n');
    expect((await stat(target)).mode & 0o777).toBe(0o640);
    expect((await lstat(fileIn(groups))).isSymbolicLink()).toBe(true);
  });

  it('reports a link loop', async () => {
    const groups = await groupsWith('');
    await rm(fileIn(groups));
    await symlink('MEMORY.md', fileIn(groups));
    const memory = memoryIn(groups);
    expect((await memory.snapshot(OWNER)).text).toBe('');
    await expect(memory.writeTier(OWNER, 1, 'a', EMPTY, BY_TURN)).rejects.toThrow(/in a circle/);
  });

  // A limit on the size of files fails a write in the middle, as a full disk does, and needs no disk to fill.
  it.skipIf(!hasPrlimit())('leaves the old file as it was when the disk takes no more', async () => {
    const groups = await groupsWith('## Tier 1\nold\n');
    const memory = memoryIn(groups);
    limitFileSize('4096');
    try {
      const written = memory.writeTier(OWNER, 1, 'x'.repeat(100_000), { text: 'old' }, BY_TURN);
      await expect(written).rejects.toMatchObject({ code: 'memory_unavailable' });
    } finally {
      limitFileSize('unlimited');
    }
    expect(await readFile(fileIn(groups), 'utf8')).toBe('## Tier 1\nold\n');
    expect(await readdir(dirname(fileIn(groups)))).toEqual(['MEMORY.md']);
  });
});

function hasPrlimit(): boolean {
  try {
    shell('prlimit --version');
    return true;
  } catch {
    return false;
  }
}

/** Of this process alone; only the soft limit, so that it can be lifted again. */
function limitFileSize(bytes: string): void {
  shell('prlimit --fsize="$0": --pid "$1"', bytes, String(process.pid));
}

function shell(script: string, ...parameters: string[]): void {
  execFileSync('/bin/sh', ['-c', script, ...parameters], { stdio: 'ignore' });
}
