import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Tier, Version } from '../../src/core/memory.js';
import { fitForTier, NEW_MEMORY, parseMemory, tierText, withTier } from '../../src/groups/tiers.js';
import { BY_TURN, CAUSE, groupsFolder, listeningLog, memoryIn, NOW, versionShelf } from './support.js';

const OWNER = { chatId: 'terminal_local', personaId: 'luna' };
const EMPTY = { text: '' };
const DAY = '2026-11-22';

async function setUp(text?: string | Buffer) {
  const groups = await groupsFolder();
  const file = join(groups, OWNER.chatId, 'luna', 'MEMORY.md');
  const daily = join(groups, OWNER.chatId, 'memory', `${DAY}.md`);
  await mkdir(dirname(file), { recursive: true });
  await mkdir(dirname(daily), { recursive: true });
  if (text !== undefined) await writeFile(file, text);
  const versions = versionShelf();
  const log = listeningLog();
  const memory = memoryIn(groups, {}, { versions, log });
  return { groups, file, daily, versions, log, memory, read: () => readFile(file, 'utf8') };
}

function only(versions: { kept: Version[] }): Version {
  const [version, ...more] = versions.kept;
  if (version === undefined || more.length > 0) throw new Error(`${versions.kept.length} versions`);
  return version;
}

describe('a version', () => {
  it('is kept of a tier before it is replaced, with who and what', async () => {
    const { memory, versions, file } = await setUp('## Tier 1\ntea\n');
    const seenByKeeper: string[] = [];
    const keep = versions.keepVersion;
    versions.keepVersion = async (version) => {
      seenByKeeper.push(readFileSync(file, 'utf8'));
      await keep(version);
    };
    await memory.writeTier(OWNER, 1, '# Coffee', { text: 'tea' }, BY_TURN);
    expect(seenByKeeper).toEqual(['## Tier 1\ntea\n']);
    expect(versions.kept).toEqual([
      {
        id: 'v1',
        ...OWNER,
        file: 'luna/MEMORY.md',
        tier: 1,
        before: 'tea',
        after: '### Coffee',
        at: NOW,
        cause: CAUSE,
      },
    ]);
    expect(versions.dropped).toEqual([]);
  });

  it('is kept of a line of the daily log, for whoever wrote it', async () => {
    const { memory, versions } = await setUp();
    const cause = { kind: 'flush' as const, personaId: 'rex', turnId: null };
    expect(await memory.appendDaily(OWNER.chatId, DAY, ' met\nAnna ', { cause })).toBe('added');
    expect(versions.kept).toEqual([
      {
        id: 'v1',
        chatId: OWNER.chatId,
        personaId: 'rex',
        file: `memory/${DAY}.md`,
        tier: null,
        before: '',
        after: 'met Anna',
        at: NOW,
        cause,
      },
    ]);
  });

  it('is not kept where nothing changes', async () => {
    const { memory, versions, read } = await setUp('## Tier 1\n   tea\n\n\n');
    const same = await memory.writeTier(OWNER, 1, ' tea ', { text: 'tea' }, BY_TURN);
    expect(same).toEqual({ kind: 'written', text: 'tea' });
    await memory.writeTier(OWNER, 1, 'x', EMPTY, BY_TURN);
    await memory.writeTier(OWNER, 1, 'x <<truncated due to memory-max-chars=1>>', { text: 'tea' }, BY_TURN);
    expect(await read()).toBe('## Tier 1\n   tea\n\n\n');
    expect(versions).toMatchObject({ kept: [], dropped: [] });
  });

  it('that cannot be kept stops the write', async () => {
    const { memory, versions, read, file, daily, groups } = await setUp('## Tier 1\ntea\n');
    versions.keepVersion = async () => {
      // Looks like a missing folder, which alone would mean: look again.
      throw Object.assign(new Error('the store is gone'), { code: 'ENOENT' });
    };
    await expect(memory.writeTier(OWNER, 1, 'x', { text: 'tea' }, BY_TURN)).rejects.toThrow(
      'the store is gone',
    );
    await expect(memory.appendDaily(OWNER.chatId, DAY, 'x', BY_TURN)).rejects.toThrow('the store is gone');
    expect(await read()).toBe('## Tier 1\ntea\n');
    expect(await readdir(dirname(file))).toEqual(['MEMORY.md']);
    expect(await readdir(dirname(daily))).toEqual([]);
    expect(await readdir(groups)).toEqual([OWNER.chatId]);
  });

  it('is dropped when the file changed meanwhile, and a new one kept on the next try', async () => {
    const { memory, versions, file, read } = await setUp('## Tier 1\ntea\n## Tier 2\nb\n');
    const keep = versions.keepVersion;
    versions.keepVersion = async (version) => {
      if (version.id === 'v1') writeFileSync(file, '## Tier 1\ntea\n## Tier 2\nby hand\n');
      await keep(version);
    };
    const outcome = await memory.writeTier(OWNER, 1, 'x', { text: 'tea' }, BY_TURN);
    expect(outcome).toEqual({ kind: 'written', text: 'x' });
    expect(await read()).toBe('## Tier 1\nx\n## Tier 2\nby hand\n');
    expect(versions.dropped).toEqual(['v1']);
    expect(only(versions).id).toBe('v2');
  });

  it('is dropped when the tier itself changed meanwhile; then nothing is written', async () => {
    const { memory, versions, file, read } = await setUp('## Tier 1\ntea\n');
    const keep = versions.keepVersion;
    versions.keepVersion = async (version) => {
      await keep(version);
      writeFileSync(file, '## Tier 1\nby hand\n');
    };
    const outcome = await memory.writeTier(OWNER, 1, 'x', { text: 'tea' }, BY_TURN);
    expect(outcome).toEqual({ kind: 'changed', current: 'by hand' });
    expect(await read()).toBe('## Tier 1\nby hand\n');
    expect(versions).toMatchObject({ kept: [], dropped: ['v1'] });
  });

  it('is dropped when the turn ends while it is kept, and not even kept when it has ended before', async () => {
    const { memory, versions, read, file } = await setUp('## Tier 1\ntea\n');
    const abort = new AbortController();
    const keep = versions.keepVersion;
    versions.keepVersion = async (version) => {
      await keep(version);
      abort.abort();
    };
    const options = { ...BY_TURN, signal: abort.signal };
    for (let tries = 0; tries < 2; tries++) {
      const write = memory.writeTier(OWNER, 1, 'x', { text: 'tea' }, options);
      await expect(write).rejects.toMatchObject({ code: 'memory_unavailable' });
      await expect(memory.appendDaily(OWNER.chatId, DAY, 'x', options)).rejects.toThrow(/aborted/);
    }
    expect(versions).toMatchObject({ kept: [], dropped: ['v1'] });
    expect(await read()).toBe('## Tier 1\ntea\n');
    expect(await readdir(dirname(file))).toEqual(['MEMORY.md']);
  });

  it('that cannot be dropped is reported, and the write goes on', async () => {
    const { memory, versions, file, read, log } = await setUp('## Tier 1\ntea\n');
    const keep = versions.keepVersion;
    versions.keepVersion = async (version) => {
      if (version.id === 'v1') writeFileSync(file, 'Mine.\n\n## Tier 1\ntea\n');
      await keep(version);
    };
    versions.dropVersion = async () => {
      throw new Error('the store is busy');
    };
    await memory.writeTier(OWNER, 1, 'x', { text: 'tea' }, BY_TURN);
    expect(await read()).toBe('Mine.\n\n## Tier 1\nx\n');
    expect(JSON.stringify(log.warnings)).toContain('the store is busy');
  });

  it('of every change is kept when several write at once', async () => {
    const { groups, versions } = await setUp(NEW_MEMORY);
    const memories = [1, 2].map(() => memoryIn(groups, {}, { versions, newId: randomUUID }));
    const writes = memories.flatMap((memory, n) => [
      memory.writeTier(OWNER, 1, `one ${n}`, EMPTY, BY_TURN),
      memory.writeTier(OWNER, 2, `two ${n}`, EMPTY, BY_TURN),
    ]);
    const written = (await Promise.all(writes)).filter((outcome) => outcome.kind === 'written');
    expect(written).toHaveLength(2);
    const texts = versions.kept.map(({ tier, before, after }) => [tier, before, after].join()).sort();
    expect(texts).toEqual(written.map(({ text }) => `${text.startsWith('one') ? 1 : 2},,${text}`).sort());
  });
});

describe('the daily log', () => {
  it('takes a line once a day, however it stands there', async () => {
    const { memory, versions, daily } = await setUp();
    await writeFile(daily, '\uFEFFfirst\r\n  by hand \rlast');
    for (const entry of ['first', 'by hand', 'last', 'by\nhand', ' \n', '']) {
      expect(await memory.appendDaily(OWNER.chatId, DAY, entry, BY_TURN), entry).toBe('there');
    }
    expect(versions.kept).toEqual([]);
    expect(await memory.appendDaily(OWNER.chatId, DAY, 'las', BY_TURN)).toBe('added');
    expect(await memory.appendDaily(OWNER.chatId, '2026-11-23', 'first', BY_TURN)).toBe('added');
    expect(await readFile(daily, 'utf8')).toBe('\uFEFFfirst\r\n  by hand \rlast\r\nlas\r\n');
  });

  it('makes one line of any line end, and of long white space in no time', async () => {
    const { memory, daily } = await setUp();
    const before = performance.now();
    await memory.appendDaily(OWNER.chatId, DAY, 'a\r\nb\u2028c\u2029 d\u0085e\vf\fg', BY_TURN);
    await memory.appendDaily(OWNER.chatId, DAY, `x${' '.repeat(200_000)}y`, BY_TURN);
    expect((await readFile(daily, 'utf8')).startsWith('a b c d e f g\nx  ')).toBe(true);
    expect(performance.now() - before).toBeLessThan(2_000);
  });

  it('gives a line back, the last of its kind, and says when there is none', async () => {
    const { memory, versions, daily } = await setUp();
    await writeFile(daily, '\uFEFFa\r\nb');
    await memory.appendDaily(OWNER.chatId, DAY, 'c', BY_TURN);
    await writeFile(daily, '\uFEFFa\r\nb\r\n  c\r\nd\r\nc');
    const version = only(versions);
    expect(await memory.takeBack([version])).toBe('done');
    expect(await readFile(daily, 'utf8')).toBe('\uFEFFa\r\nb\r\n  c\r\nd\r\n');
    expect(await memory.takeBack([version])).toBe('done');
    expect(await memory.takeBack([version])).toBe('already');
    expect(await readFile(daily, 'utf8')).toBe('\uFEFFa\r\nb\r\nd\r\n');
    await rm(daily);
    expect(await memory.takeBack([version])).toBe('already');
    expect(await readdir(dirname(daily))).toEqual([]);
    expect(only(versions)).toBe(version);
    for (const file of ['../../AGENTS.md', 'memory/../x.md', 'luna/MEMORY.md']) {
      await expect(memory.takeBack([{ ...version, file }])).rejects.toMatchObject({
        code: 'memory_unavailable',
      });
    }
  });
});

describe('restore', () => {
  it('writes what was taken back once more, to the byte, and is done once', async () => {
    const { memory, versions, daily, read } = await setUp('## Tier 1\ntea\n');
    await memory.writeTier(OWNER, 1, 'coffee', { text: 'tea' }, BY_TURN);
    await memory.writeTier(OWNER, 1, 'water', { text: 'coffee' }, BY_TURN);
    await memory.appendDaily(OWNER.chatId, DAY, 'a line', BY_TURN);
    const whole = [await read(), await readFile(daily, 'utf8')];
    const change = versions.kept.toReversed();
    expect(await memory.takeBack(change)).toBe('done');
    expect(await read()).toBe('## Tier 1\ntea\n');
    expect(await memory.restore(change)).toBe('done');
    expect([await read(), await readFile(daily, 'utf8')]).toEqual(whole);
    expect(await memory.restore(change)).toBe('already');
  });

  it('leaves what somebody wrote since', async () => {
    const { memory, versions, file, read } = await setUp('## Tier 1\ntea\n');
    await memory.writeTier(OWNER, 1, 'coffee', { text: 'tea' }, BY_TURN);
    await memory.takeBack([only(versions)]);
    await writeFile(file, '## Tier 1\nmilk\n');
    expect(await memory.restore([only(versions)])).toBe('changed');
    expect(await read()).toBe('## Tier 1\nmilk\n');
  });
});

describe('takeBack of a tier', () => {
  it('puts back what stood there, to the byte, and is done once', async () => {
    const source = '\uFEFFMine.\r\n\r\n## Tier 1 — Long term\r\n- tea\r\n- é\r\n\r\n\r\n## Own\r\nx';
    const { memory, versions, read } = await setUp(source);
    await memory.writeTier(OWNER, 1, 'coffee', { text: '- tea\n- é' }, BY_TURN);
    const version = only(versions);
    expect(await memory.takeBack([version])).toBe('done');
    expect(await read()).toBe(source);
    expect(await memory.takeBack([version])).toBe('already');
    expect(await read()).toBe(source);
    expect(versions.kept).toHaveLength(1);
  });

  it('knows that two writes of one turn are taken back, as after a crash before that was noted', async () => {
    const { memory, versions, file, read } = await setUp('## Tier 1\ntea\n');
    await memory.writeTier(OWNER, 1, 'coffee', { text: 'tea' }, BY_TURN);
    await memory.writeTier(OWNER, 1, 'water', { text: 'coffee' }, BY_TURN);
    const change = versions.kept.toReversed();
    expect(await memory.takeBack(change)).toBe('done');
    expect(await memory.takeBack(change)).toBe('already');
    expect(await read()).toBe('## Tier 1\ntea\n');
    // The process ended after the second version was kept, and before it was written.
    await writeFile(file, '## Tier 1\ncoffee\n');
    expect(await memory.takeBack(change)).toBe('done');
    expect(await read()).toBe('## Tier 1\ntea\n');
  });

  it('leaves what somebody wrote since, and the other tiers', async () => {
    const { memory, versions, file, read } = await setUp('## Tier 1\ntea\n## Tier 2\nb\n');
    await memory.writeTier(OWNER, 1, 'coffee', { text: 'tea' }, BY_TURN);
    const version = only(versions);
    await writeFile(file, '## Tier 1\ncoffee, black\n## Tier 2\nb\n');
    expect(await memory.takeBack([version])).toBe('changed');
    expect(await read()).toBe('## Tier 1\ncoffee, black\n## Tier 2\nb\n');
    await writeFile(file, '## Tier 1\ncoffee\n## Tier 2\nby hand\n');
    expect(await memory.takeBack([version])).toBe('done');
    expect(await read()).toBe('## Tier 1\ntea\n## Tier 2\nby hand\n');
  });

  it('knows a change that a crash came before', async () => {
    const { memory, read } = await setUp('## Tier 1\ntea\n');
    const version: Version = {
      ...{ id: 'v', ...OWNER, file: 'luna/MEMORY.md', tier: 1, at: NOW, cause: CAUSE },
      ...{ before: 'tea', after: 'never written' },
    };
    expect(await memory.takeBack([version])).toBe('already');
    expect(await memory.takeBack([{ ...version, before: 'x' }])).toBe('changed');
    expect(await memory.takeBack([{ ...version, tier: null, file: `memory/${DAY}.md` }])).toBe('already');
    expect(await read()).toBe('## Tier 1\ntea\n');
  });

  it('puts back the first of two equal headings', async () => {
    const source = '## Tier 1\na\n## Own\n## Tier 1\nb\n';
    const { memory, versions, file, read } = await setUp(source);
    await memory.writeTier(OWNER, 1, 'x', { text: 'a\n\nb' }, BY_TURN);
    expect(await memory.takeBack([only(versions)])).toBe('done');
    expect(await read()).toBe(source);
    // Somebody moved the same words about: what is whose is not to be told.
    await writeFile(file, '## Tier 1\n## Tier 1\nx\n\nb\n');
    expect(await memory.takeBack([only(versions)])).toBe('changed');
  });

  it('gives back a file that went away, and text that was a heading but for its indentation', async () => {
    const { memory, versions, file, read } = await setUp('## Tier 1\n    ## code\n');
    await memory.writeTier(OWNER, 1, '', { text: '## code' }, BY_TURN);
    await rm(file);
    expect(await memory.takeBack([only(versions)])).toBe('done');
    expect(await read()).toBe(NEW_MEMORY.replace('Long term\n', 'Long term\n\n### code\n'));
  });

  it('throws when the turn has ended, and where the file cannot be read', async () => {
    const { memory, versions, file, read } = await setUp('## Tier 1\ntea\n');
    await memory.writeTier(OWNER, 1, 'x', { text: 'tea' }, BY_TURN);
    const version = only(versions);
    await expect(memory.takeBack([version], AbortSignal.abort())).rejects.toThrow(/aborted/);
    expect(await read()).toBe('## Tier 1\nx\n');
    await rm(file);
    await mkdir(file);
    await expect(memory.takeBack([version])).rejects.toMatchObject({ code: 'memory_unavailable' });
  });

  const line = fc.constantFrom(
    ...[
      '',
      'text — ünd 😀',
      '## Tier 1 — Long term',
      '## Tier 2',
      'Tier 3',
      '# Own',
      '### deep',
      '---',
      '===',
    ],
    ...['```', '- ```', '- item', '    ## indented', '> said', 'x'],
  );
  const lines = fc.array(line, { maxLength: 12 });
  const file = fc
    .tuple(fc.constantFrom('', '\uFEFF'), lines, fc.constantFrom('\n', '\r\n', '\r'))
    .map(([bom, all, eol]) => bom + all.join(eol));
  const tier = fc.constantFrom<Tier>(1, 2, 3);

  it('leaves the file as it was before the write, wherever writing back what is read would', async () => {
    const { memory, versions, file: path } = await setUp();
    let exact = 0;
    await fc.assert(
      fc.asyncProperty(file, tier, lines, async (source, written, content) => {
        versions.kept.length = 0;
        const before = Buffer.from(source);
        await writeFile(path, before);
        const text = tierText(parseMemory(before), written);
        await memory.writeTier(OWNER, written, content.join('\n'), { text }, BY_TURN);
        if (versions.kept.length === 0) return;
        expect(await memory.takeBack([only(versions)])).toBe('done');
        const after = await readFile(path);
        const parts = [parseMemory(before), parseMemory(after)] as const;
        for (const each of [1, 2, 3] as const) {
          if (each !== written) expect(tierText(parts[1], each)).toBe(tierText(parts[0], each));
        }
        const own = parts[0].sections.filter((section) => section.tier === written);
        const indented = own.some(({ bodyStart }) =>
          /^[ \t\r\n]*(?: {4})/.test(parts[0].source.slice(bodyStart)),
        );
        if (!indented) expect(tierText(parts[1], written)).toBe(text);
        // Nothing but a tier's own blank lines and fences left open elsewhere can make a difference.
        const whole = text !== '' || /[\r\n]$/.test(source);
        const steady = own.length === 1 && whole && withTier(parts[0], written, text).equals(before);
        if (!steady || (fitForTier(content.join('\n')) === '' && !before.equals(after))) return;
        exact++;
        expect(after.equals(before)).toBe(true);
      }),
      { numRuns: 600 },
    );
    // How many of random files are of that kind varies: about thirty. None would mean that nothing was tested.
    expect(exact).toBeGreaterThan(3);
  });
});

describe('several tiers at once', () => {
  const FILE = '# Memory\n\n## Tier 1\n- tea\n\n## Notes\nmine\n\n## Tier 2\n\n## Tier 3\n\n- roses\n';
  const moved = [
    { tier: 1 as const, content: '- tea (2026-11-01)', seen: { text: '- tea' } },
    { tier: 2 as const, content: '- roses', seen: EMPTY },
    { tier: 3 as const, content: '', seen: { text: '- roses' } },
  ];
  const NIGHT = { cause: { kind: 'night', personaId: 'luna', turnId: 'n' } } as const;

  it('are replaced in one write, with a version each, and are taken back together', async () => {
    const { memory, versions, read } = await setUp(FILE);
    expect(await memory.writeTiers(OWNER, moved, NIGHT)).toBe('written');
    expect(await read()).toContain('## Tier 1\n- tea (2026-11-01)');
    expect(await read()).toContain('## Notes\nmine\n');
    expect(await memory.readTier(OWNER, 2)).toBe('- roses');
    expect(await memory.readTier(OWNER, 3)).toBe('');
    expect(versions.kept.map(({ tier, cause }) => [tier, cause.kind])).toEqual([
      [1, 'night'],
      [2, 'night'],
      [3, 'night'],
    ]);
    expect(await memory.takeBack(versions.kept.toReversed())).toBe('done');
    expect(await read()).toBe(FILE);
    expect(await memory.takeBack(versions.kept.toReversed())).toBe('already');
  });

  it('are left, all of them, where one was changed since it was seen', async () => {
    const { memory, versions, read } = await setUp(FILE.replace('- roses', '- lilies'));
    expect(await memory.writeTiers(OWNER, moved, NIGHT)).toBe('changed');
    expect(await read()).toBe(FILE.replace('- roses', '- lilies'));
    expect(versions.kept).toEqual([]);
  });

  it('are not taken back in part where one was changed again since', async () => {
    const { memory, versions, file, read } = await setUp(FILE);
    await memory.writeTiers(OWNER, moved, NIGHT);
    const since = (await read()).replace('- tea (2026-11-01)', '- tea (2026-11-01)\n- by hand');
    await writeFile(file, since);
    expect(await memory.takeBack(versions.kept.toReversed())).toBe('changed');
    expect(await read()).toBe(since);
  });

  it('of one turn are taken back through each step to what stood before', async () => {
    const { memory, versions, daily, read } = await setUp(FILE);
    await memory.writeTier(OWNER, 1, '- tea\n- cake', { text: '- tea' }, BY_TURN);
    await memory.appendDaily(OWNER.chatId, DAY, 'had cake', BY_TURN);
    await memory.writeTier(OWNER, 1, '- cake', { text: '- tea\n- cake' }, BY_TURN);
    expect(await memory.takeBack(versions.kept.toReversed())).toBe('done');
    expect(await read()).toBe(FILE);
    expect(await readFile(daily, 'utf8')).toBe('');
  });

  it('write a tier that is not changed exactly as it stood', async () => {
    const odd = '## Tier 1\n    indented\n\n\n## Tier 2\n- x\n';
    const { memory, read } = await setUp(odd);
    const same = { tier: 1 as const, content: 'indented', seen: { text: 'indented' } };
    const other = { tier: 2 as const, content: '- y', seen: { text: '- x' } };
    expect(await memory.writeTiers(OWNER, [same, other], NIGHT)).toBe('written');
    expect(await read()).toBe(odd.replace('- x', '- y'));
  });

  it('are refused with the marker of a cut text', async () => {
    const { memory, read } = await setUp(FILE);
    const cut = {
      tier: 1 as const,
      content: 'x\n\n<<truncated due to memory-max-chars=12000>>',
      seen: { text: '- tea' },
    };
    expect(await memory.writeTiers(OWNER, [cut], NIGHT)).toBe('refused');
    expect(await read()).toBe(FILE);
  });
});
