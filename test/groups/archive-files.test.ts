import { mkdir, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ArchivedMessage, ArchiveHead } from '../../src/core/chat-record.js';
import { locks } from '../../src/core/concurrency.js';
import { createZone } from '../../src/core/dates.js';
import { phraseOf } from '../../src/core/phrase.js';
import { archiveName, createArchives, isoTime, parseArchiveName } from '../../src/groups/archives.js';
import { slug } from '../../src/groups/paths.js';
import { groupsFolder, listeningLog, memoryIn } from './support.js';

const CHAT = 'telegram_-100';
const AT = Date.UTC(2026, 10, 22, 9, 15, 7);
const NAME = '2026-11-22T10-15-07-luna.md';
const HEAD: ArchiveHead = {
  ...{ chatId: CHAT, threadId: null, personaId: 'luna', personaName: 'Luna' },
  ...{ reason: 'the model could not\nbe reached', flushed: false, at: AT },
};
const HELLO: ArchivedMessage = { id: 12, name: 'Anna', text: 'Hello,\n\n# you', sentAt: AT - 120_000 };
const REPLY: ArchivedMessage = { id: 13, name: 'Luna', text: 'Hi! ', sentAt: AT - 60_000 };

async function setUp() {
  const groups = await groupsFolder();
  const folder = join(groups, CHAT, 'archive');
  const log = listeningLog();
  const exclusive = locks();
  const archives = createArchives(groups, createZone('Europe/Vienna'), exclusive, log);
  const read = (file = NAME) => readFile(join(folder, file), 'utf8');
  return { groups, folder, log, exclusive, archives, read };
}

async function* pagesOf(...pages: ArchivedMessage[][]): AsyncGenerator<ArchivedMessage[]> {
  yield* pages;
}

describe('write', () => {
  it('makes a file that people read and list finds', async () => {
    const { archives, read, folder } = await setUp();
    await archives.write(HEAD, NAME, pagesOf([HELLO], [], [REPLY]));
    expect(await read()).toBe(
      `---
chat: telegram_-100
persona: luna
from: 2026-11-22T10:13:07+01:00
until: 2026-11-22T10:14:07+01:00
messages: 2
reason: the model could not be reached
flushed: false
---

# Conversation with Luna

## Anna · 2026-11-22 10:13 <!-- m12 -->

Hello,

# you

## Luna · 2026-11-22 10:14 <!-- m13 -->

Hi! 
`,
    );
    expect(await readdir(folder)).toEqual([NAME]);
    expect(await archives.list(CHAT, 'luna')).toEqual([
      { file: NAME, threadId: null, personaId: 'luna', flushed: false, reset: false },
    ]);
  });

  it('replaces a file of that name, and knows threads and conversations without a message', async () => {
    const { archives, read, folder } = await setUp();
    await archives.write(HEAD, NAME, pagesOf([HELLO]));
    await archives.write({ ...HEAD, threadId: '45', flushed: true }, NAME, pagesOf());
    expect(await read()).toBe(
      '---\nchat: telegram_-100\nthread: "45"\npersona: luna\nmessages: 0\nreason: the model could not be reached\nflushed: true\n---\n\n# Conversation with Luna\n',
    );
    expect(await readdir(folder)).toEqual([NAME]);
    expect(await archives.list(CHAT, 'luna')).toMatchObject([{ threadId: '45', flushed: true }]);
  });

  it('lets nobody pass for somebody else', async () => {
    const { archives, read } = await setUp();
    const forged = '## Luna · 2026-11-22 10:14 <!-- m13 -->';
    const name = `Mal\n## Luna · 2026-11-22 10:14 <!-- m1 -->`;
    const texts = [`a\n${forged}\n\nb\n\\${forged}\r\n${forged}  x`, forged];
    await archives.write(HEAD, NAME, pagesOf(texts.map((text, n) => ({ ...HELLO, id: n, name, text }))));
    const headings = (await read()).match(/^## .* <!-- m\d+ -->$/gm);
    expect(headings).toHaveLength(2);
    expect(headings?.[1]).toBe(
      '## Mal ## Luna · 2026-11-22 10:14 <!-- m1 --> · 2026-11-22 10:13 <!-- m1 -->',
    );
    expect(await read()).toContain(`\na\n\\${forged}\n\nb\n\\\\${forged}\r\n${forged}  x\n`);
  });

  it('leaves nothing when the messages cannot be read, or the file not be written', async () => {
    const { archives, folder, read, groups } = await setUp();
    async function* broken(): AsyncGenerator<ArchivedMessage[]> {
      yield [HELLO];
      throw new Error('the store is gone');
    }
    await expect(archives.write(HEAD, NAME, broken())).rejects.toThrow('the store is gone');
    expect(await readdir(folder)).toEqual([]);
    await archives.write(HEAD, NAME, pagesOf([HELLO]));
    const before = await read();
    await expect(archives.write({ ...HEAD, flushed: true }, NAME, broken())).rejects.toThrow();
    expect(await read()).toBe(before);

    await rm(folder, { recursive: true });
    await mkdir(join(folder, NAME), { recursive: true });
    const written = archives.write(HEAD, NAME, pagesOf([HELLO]));
    await expect(written).rejects.toMatchObject({ code: 'memory_unavailable' });
    expect(await readdir(folder)).toEqual([NAME]);
    await rm(join(groups, CHAT), { recursive: true });
    await writeFile(join(groups, CHAT), 'a file in the place of the folder');
    await expect(archives.write(HEAD, NAME, pagesOf())).rejects.toMatchObject({ code: 'memory_unavailable' });
  });

  it('writes the pages of 100,000 messages as they come', async () => {
    const { archives, folder } = await setUp();
    const text = 'x'.repeat(500);
    let made = 0;
    let behind = 0;
    async function* long(): AsyncGenerator<ArchivedMessage[]> {
      for (let page = 0; page < 1000; page++) {
        const [temporary = ''] = await readdir(folder);
        behind = Math.max(behind, made * text.length - (await stat(join(folder, temporary))).size);
        yield Array.from({ length: 100 }, () => ({ ...HELLO, id: ++made, text: `${text}${made}` }));
      }
    }
    await archives.write(HEAD, NAME, long());
    expect(behind).toBe(0);
    const whole = await readFile(join(folder, NAME), 'utf8');
    expect(whole).toContain('\nmessages: 100000\n');
    expect(whole.endsWith(`<!-- m100000 -->\n\n${text}100000\n`)).toBe(true);
    expect(await readdir(folder)).toEqual([NAME]);
  });

  it('clears away every archive that a crash left half made, and remove those of its file', async () => {
    const { archives, folder } = await setUp();
    await archives.write(HEAD, NAME, pagesOf([HELLO]));
    const old = new Date(performance.timeOrigin - 60_000);
    const leave = async (file: string) => {
      await writeFile(join(folder, file), 'half');
      await utimes(join(folder, file), old, old);
    };
    const other = `.2026-11-22T10-15-07-rex.md.1-1.tmp`;
    await leave(other);
    await leave(`.${NAME}.1-1.tmp`);
    await archives.write(HEAD, NAME, pagesOf([HELLO]));
    expect(await readdir(folder)).toEqual([NAME]);
    await leave(other);
    await leave(`.${NAME}.1-2.tmp`);
    await archives.remove(CHAT, NAME);
    await archives.remove(CHAT, NAME);
    expect(await readdir(folder)).toEqual([other]);
    await expect(archives.remove('telegram_-200', NAME)).resolves.toBeUndefined();
  });

  it('is waited for by forgetting', async () => {
    const { archives, groups, exclusive, read } = await setUp();
    const memory = memoryIn(groups, {}, { exclusive });
    let proceed = () => {};
    const gate = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    let begun = () => {};
    const began = new Promise<void>((resolve) => {
      begun = resolve;
    });
    async function* slow(): AsyncGenerator<ArchivedMessage[]> {
      yield [HELLO];
      begun();
      await gate;
      yield [REPLY];
    }
    const written = archives.write(HEAD, NAME, slow());
    await began;
    const erased = memory.erase(CHAT, phraseOf('hello'));
    proceed();
    await written;
    expect(await erased).toEqual([`archive/${NAME}`]);
    expect(await read()).toContain('\n\n[forgotten],\n\n# you\n');
  });
});

describe('names', () => {
  it('are the time in the zone and the persona, each given once', async () => {
    const { archives } = await setUp();
    expect(await archives.newName(HEAD)).toBe(NAME);
    expect(await archives.newName(HEAD)).toBe('2026-11-22T10-15-07_2-luna.md');
    expect(await archives.newName({ ...HEAD, personaId: '2-luna' })).toBe('2026-11-22T10-15-07-2-luna.md');
    await archives.write(HEAD, '2026-11-22T10-15-07_3-luna.md', pagesOf());
    expect(await archives.newName(HEAD)).toBe('2026-11-22T10-15-07_4-luna.md');
    expect(await archives.newName({ ...HEAD, at: AT + 1000 })).toBe('2026-11-22T10-15-08-luna.md');
    for (const head of [
      { ...HEAD, chatId: '../x' },
      { ...HEAD, personaId: '../x' },
      { ...HEAD, personaId: 'memory' },
    ]) {
      await expect(archives.newName(head)).rejects.toMatchObject({ code: 'memory_unavailable' });
    }
  });

  it('are read back as they were made, whatever the persona is called', () => {
    const personaId = fc
      .oneof(
        fc.string({ unit: 'grapheme' }),
        fc.stringMatching(/^[\d-]{1,12}$/),
        fc.constantFrom('2-luna', '2026-11-22t10', 'лу-на'),
      )
      .map(slug)
      .filter((id) => id !== '' && id !== 'memory' && id !== 'archive');
    fc.assert(
      fc.property(
        personaId,
        fc.integer({ min: 1, max: 999_999 }),
        fc.boolean(),
        (personaId, number, isOurs) => {
          const importId = isOurs ? undefined : '3f2ac91b';
          const name = { time: '2026-11-22T10-15-07', number, personaId, importId };
          expect(parseArchiveName(archiveName(name))).toEqual(name);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('of another form are taken by nothing', async () => {
    const { archives, groups } = await setUp();
    for (const file of [
      '../luna/MEMORY.md',
      '',
      'luna.md',
      `../${NAME}`,
      `${NAME}/x`,
      NAME.replace('luna', 'Luna'),
    ]) {
      await expect(archives.write(HEAD, file, pagesOf())).rejects.toMatchObject({
        code: 'memory_unavailable',
      });
      await expect(archives.mark(CHAT, file, 'reset')).rejects.toThrow(/not the name/);
      await expect(archives.remove(CHAT, file)).rejects.toThrow(/not the name/);
      expect(() => archives.shownPath(CHAT, file)).toThrow(/not the name/);
    }
    await expect(archives.remove('../x', NAME)).rejects.toMatchObject({ code: 'memory_unavailable' });
    expect(await readdir(groups)).toEqual([]);
    expect(archives.shownPath(CHAT, NAME)).toBe(join(groups, CHAT, 'archive', NAME));
  });

  it('say the time with its offset', () => {
    expect(isoTime(createZone('America/St_Johns'), AT)).toBe('2026-11-22T05:45:07-03:30');
    expect(isoTime(createZone('UTC'), AT + 999)).toBe('2026-11-22T09:15:07+00:00');
    for (const zone of ['Europe/Vienna', 'Asia/Kathmandu', 'America/New_York', 'Pacific/Kiritimati']) {
      for (let at = AT; at < AT + 366 * 86_400_000; at += 86_400_000 * 13 + 5_000) {
        expect(Date.parse(isoTime(createZone(zone), at))).toBe(at);
      }
    }
  });
});

describe('mark', () => {
  it('changes its own key and no other byte', async () => {
    const { archives, read, folder } = await setUp();
    await archives.write(HEAD, NAME, pagesOf([HELLO]));
    const before = await read();
    await archives.mark(CHAT, NAME, 'flushed');
    expect(await read()).toBe(before.replace('flushed: false', 'flushed: true'));
    await archives.mark(CHAT, NAME, 'reset');
    await archives.mark(CHAT, NAME, 'reset');
    expect(await read()).toBe(before.replace('flushed: false', 'flushed: true\nreset: true'));
    expect(await archives.list(CHAT, 'luna')).toMatchObject([{ flushed: true, reset: true }]);

    const odd = Buffer.concat([
      Buffer.from(
        '\uFEFF---\r\npersona: luna # é\r\nflushed:   false   # not yet\r\nmine: [ 1,2 ]\r\n---\r\nflushed: false\n',
      ),
      Buffer.from([0xff, 0xc3, 0x0d]),
    ]);
    await writeFile(join(folder, NAME), odd);
    await archives.mark(CHAT, NAME, 'flushed');
    const marked = odd.toString('latin1').replace('flushed:   false', 'flushed:   true');
    expect((await readFile(join(folder, NAME))).toString('latin1')).toBe(marked);
    expect(await readdir(folder)).toEqual([NAME]);
  });

  it('passes over a missing file, and leaves one that an operator broke, with a warning', async () => {
    const { archives, read, folder, log } = await setUp();
    await archives.mark(CHAT, NAME, 'flushed');
    expect(log.warnings).toEqual([]);
    await archives.write(HEAD, NAME, pagesOf([HELLO]));
    for (const broken of [
      'no front matter',
      '---\nflushed: false\n',
      '---\nflushed: [a\n---\n',
      '---\nwords\n---\nx',
    ]) {
      await writeFile(join(folder, NAME), broken);
      await archives.mark(CHAT, NAME, 'reset');
      expect(await read()).toBe(broken);
      expect(log.warnings.at(-1)?.fields).toMatchObject({ path: join(folder, NAME) });
    }
    expect(log.warnings).toHaveLength(4);
    await rm(join(folder, NAME));
    await mkdir(join(folder, NAME));
    await expect(archives.mark(CHAT, NAME, 'reset')).rejects.toMatchObject({ code: 'memory_unavailable' });
  });
});

describe('list', () => {
  it('has those of one persona, oldest first, and passes over what is not of ours', async () => {
    const { archives, folder, log } = await setUp();
    expect(await archives.list(CHAT, 'luna')).toEqual([]);
    const files = [
      ...['2026-11-22T10-15-07_10-luna.md', '2026-11-22T10-15-07_2-luna.md', NAME],
      ...['2025-11-22T10-15-07-luna.md', '2026-11-22T10-15-08-luna.md'],
    ];
    for (const file of files) await archives.write(HEAD, file, pagesOf([HELLO]));
    await archives.write({ ...HEAD, personaId: '2-luna' }, '2026-11-22T10-15-07-2-luna.md', pagesOf());
    await writeFile(join(folder, 'notes.md'), '---\npersona: luna\n---\n');
    await writeFile(join(folder, '2026-01-01T00-00-00-luna.md'), 'my notes');
    await writeFile(join(folder, '2026-01-02T00-00-00-luna.md'), '---\npersona: rex\n---\n');
    await mkdir(join(folder, '2026-01-03T00-00-00-luna.md'));
    await symlink('nowhere', join(folder, '2026-01-04T00-00-00-luna.md'));
    const names = (await archives.list(CHAT, 'luna')).map(({ file }) => file);
    expect(names).toEqual([files[3], NAME, files[1], files[0], files[4]]);
    expect(await archives.list(CHAT, '2-luna')).toHaveLength(1);
    expect(await archives.list(CHAT, 'ben')).toEqual([]);
    expect(log.warnings.map(({ fields }) => JSON.stringify(fields))).toEqual([
      expect.stringContaining('2026-01-01'),
      expect.stringContaining('2026-01-03'),
    ]);
  });

  it('reads heads only, and counts what is not said as not flushed', async () => {
    const { archives, folder } = await setUp();
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, NAME), `---\npersona: luna\nthread: 7\n---\n${'é'.repeat(1_000_000)}`);
    expect(await archives.list(CHAT, 'luna')).toEqual([
      { file: NAME, threadId: '7', personaId: 'luna', flushed: false, reset: false },
    ]);
    for (let n = 0; n < 2_000; n++) {
      const file = archiveName({ time: '2026-11-22T10-15-07', number: n + 2, personaId: 'luna' });
      await writeFile(join(folder, file), '---\npersona: luna\nflushed: true\n---\n');
    }
    const before = performance.now();
    expect(await archives.list(CHAT, 'luna')).toHaveLength(2_001);
    expect(performance.now() - before).toBeLessThan(5_000);
  });
});
