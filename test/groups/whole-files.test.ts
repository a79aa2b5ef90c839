/** Whole files as an owner edits them: no byte changes that was not edited, and each edit leaves versions. */
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EVERY_CHAT } from '../../src/core/board.js';
import { textIn, withText } from '../../src/groups/whole-files.js';
import { groupsFolder, memoryIn, versionShelf } from './support.js';

const CHAT = 'board_main';
const MEMORY = { chatId: CHAT, personaId: 'luna', file: 'luna/MEMORY.md' };
const TIERS = '# Memory\n\n## Tier 1\n\ntea\n\n## Tier 2\n\nmoss\n\n## Tier 3\n\nrain\n';

async function opened(files: Record<string, string | Buffer>) {
  const groups = await groupsFolder();
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(groups, name)), { recursive: true });
    await writeFile(join(groups, name), content);
  }
  const versions = versionShelf();
  const memory = memoryIn(groups, {}, { versions });
  /** Replaces words of a file as the page does. */
  async function edit(place: typeof MEMORY, old: string, text: string) {
    const { text: whole, tag } = await memory.readFile(place);
    return memory.editFile(place, { tag, at: whole.indexOf(old), gone: old.length, text });
  }
  return { groups, memory, versions, edit, bytes: (name: string) => readFile(join(groups, name)) };
}

describe('text and bytes', () => {
  const FILES: Record<string, Buffer> = {
    empty: Buffer.from(''),
    'without a last line end': Buffer.from('a\nb'),
    'of Windows': Buffer.from('a\r\nb\r\n'),
    'of an old Mac': Buffer.from('a\rb\r'),
    'of mixed line ends': Buffer.from('a\r\nb\nc\rd\r\n\r\n\ne'),
    'with a byte order mark': Buffer.from('\ufeffa\nb\n'),
    'with bytes that are no UTF-8': Buffer.from('caf\xe9 \xff\xfe\xc3\xa9\xed\xa0\x80 \xf0\x9f\n', 'latin1'),
    'with replacement characters and zero bytes': Buffer.from('a\ufffd\0b\u2028c\u0085d\n'),
  };

  it.each(Object.entries(FILES))('a file %s stays as it is', (_, bytes) => {
    expect(withText(bytes, textIn(bytes)).toString('latin1')).toBe(bytes.toString('latin1'));
  });

  it.each(Object.entries(FILES))('a file %s gets a line, and the rest stays', (_, bytes) => {
    const changed = withText(bytes, `new\n${textIn(bytes)}`).toString('latin1');
    const bom = bytes.toString('latin1').startsWith('\xef\xbb\xbf') ? 3 : 0;
    expect(changed.slice(0, bom + 3)).toBe(`${bytes.toString('latin1', 0, bom)}new`);
    const [end = ''] = /^[\r\n]+/.exec(changed.slice(bom + 3)) ?? [];
    expect(changed.slice(bom + 3 + end.length)).toBe(bytes.toString('latin1', bom));
  });

  it('keeps the line ends of lines around several edits, and of a line that was moved', () => {
    const file = Buffer.from('a\r\nb\nc\r\nd\ne\r\n');
    expect(withText(file, 'a\nd\nB\nb\nc\ne\n').toString()).toBe('a\r\nd\nB\nb\nc\r\ne\r\n');
  });
});

describe('an edit', () => {
  it('changes only what was edited, in a file of Windows with bytes of another encoding', async () => {
    const { edit, bytes } = await opened({
      'board_main/luna/MEMORY.md': Buffer.from('\xef\xbb\xbf## Tier 1\r\ncaf\xe9 tea\r\nrain', 'latin1'),
    });
    const { kind, file } = await edit(MEMORY, 'tea', 'cake\nand milk');
    expect([kind, file.isCrlf]).toEqual(['written', true]);
    expect((await bytes('board_main/luna/MEMORY.md')).toString('latin1')).toBe(
      '\xef\xbb\xbf## Tier 1\r\ncaf\xe9 cake\r\nand milk\r\nrain',
    );
  });

  it('of a text that has changed changes nothing, and shows what is there', async () => {
    const { memory, groups, bytes, versions } = await opened({ 'board_main/luna/MEMORY.md': TIERS });
    const { tag } = await memory.readFile(MEMORY);
    await writeFile(join(groups, 'board_main/luna/MEMORY.md'), 'by hand\n');
    const outcome = await memory.editFile(MEMORY, { tag, at: 0, gone: 0, text: 'x' });
    expect(outcome).toMatchObject({ kind: 'changed', file: { text: 'by hand\n' } });
    expect(String(await bytes('board_main/luna/MEMORY.md'))).toBe('by hand\n');
    expect(versions.kept).toEqual([]);
  });

  it('creates a file that was not there, and only then', async () => {
    const { memory, edit, bytes } = await opened({});
    const log = { ...MEMORY, file: 'memory/2026-11-22.md' };
    expect((await memory.readFile(log)).tag).toBe('none');
    expect((await edit(log, '', 'rain\n')).kind).toBe('written');
    expect(String(await bytes('board_main/memory/2026-11-22.md'))).toBe('rain\n');
    expect((await memory.editFile(log, { tag: 'none', at: 0, gone: 0, text: 'x' })).kind).toBe('changed');
  });

  it('leaves a version of each tier that changed, and takes all of them back', async () => {
    const { memory, edit, bytes, versions } = await opened({ 'board_main/luna/MEMORY.md': TIERS });
    await edit(MEMORY, 'tea\n\n## Tier 2\n\nmoss', 'coffee\n\n## Tier 2\n\nfern');
    expect(versions.kept.map(({ tier, before, after }) => [tier, before, after])).toEqual([
      [1, 'tea', 'coffee'],
      [2, 'moss', 'fern'],
    ]);
    const [{ cause } = { cause: null }] = versions.kept;
    expect(cause).toEqual({ kind: 'owner', personaId: 'luna', turnId: expect.any(String) });
    expect(await memory.takeBack(versions.kept.toReversed())).toBe('done');
    expect(String(await bytes('board_main/luna/MEMORY.md'))).toBe(TIERS);
  });

  it('of anything else leaves a version of the whole file', async () => {
    const { memory, edit, bytes, versions } = await opened({ 'board_main/luna/MEMORY.md': TIERS });
    await edit(MEMORY, '# Memory\n', '# Memory\n\nOf Luna.\n');
    expect(versions.kept).toMatchObject([{ tier: null, file: 'luna/MEMORY.md', before: TIERS }]);
    expect(await memory.takeBack(versions.kept)).toBe('done');
    expect(String(await bytes('board_main/luna/MEMORY.md'))).toBe(TIERS);
    expect(await memory.takeBack(versions.kept)).toBe('already');
  });

  it('of a persona’s file is taken back byte for byte, if it still has that text', async () => {
    const before = Buffer.from('---\r\nname: Luna\r\n---\r\ncaf\xe9\r\nsings\r\n', 'latin1');
    const { memory, groups, edit, bytes, versions } = await opened({ 'board_main/luna/PERSONA.md': before });
    const place = { ...MEMORY, file: 'luna/PERSONA.md' };
    await edit(place, 'sings', 'hums');
    expect(await memory.takeBack(versions.kept)).toBe('done');
    expect((await bytes('board_main/luna/PERSONA.md')).equals(before)).toBe(true);
    await writeFile(join(groups, 'board_main/luna/PERSONA.md'), 'by hand\n');
    expect(await memory.takeBack(versions.kept)).toBe('changed');
    expect(String(await bytes('board_main/luna/PERSONA.md'))).toBe('by hand\n');
  });

  it('of principles and library belongs to no chat', async () => {
    const { edit, bytes, versions } = await opened({ 'personas/luna.md': 'Sings.\n' });
    const above = { chatId: EVERY_CHAT, personaId: '' };
    await edit({ ...above, file: 'AGENTS.md' }, '', 'Be kind.\n');
    await edit({ ...above, file: 'personas/luna.md' }, 'Sings', 'Hums');
    expect(String(await bytes('AGENTS.md'))).toBe('Be kind.\n');
    expect(String(await bytes('personas/luna.md'))).toBe('Hums.\n');
    expect(versions.kept.map(({ chatId, file }) => [chatId, file])).toEqual([
      [EVERY_CHAT, 'AGENTS.md'],
      [EVERY_CHAT, 'personas/luna.md'],
    ]);
  });

  it('of 2 MB works, and leaves no version of that size', async () => {
    const { edit, bytes, versions } = await opened({
      'board_main/luna/MEMORY.md': `## Tier 1\n\ntea\n\n## Tier 2\n\n${'- moss — ✿\n'.repeat(150_000)}`,
    });
    expect((await edit(MEMORY, 'tea', 'coffee')).kind).toBe('written');
    expect((await edit(MEMORY, 'moss', 'fern')).kind).toBe('written');
    expect(String(await bytes('board_main/luna/MEMORY.md'))).toContain('coffee\n\n## Tier 2\n\n- fern');
    expect(versions.kept.map(({ tier }) => tier)).toEqual([1]);
  });
});

describe('places', () => {
  it('are files of memory and nothing else', async () => {
    const { memory } = await opened({ 'board_main/chat.yaml': 'title: x\n', 'a.md': 'x' });
    const wrong = [
      { chatId: CHAT, file: 'chat.yaml' },
      { chatId: CHAT, file: 'luna/../chat.yaml' },
      { chatId: CHAT, file: '../MEMORY.md' },
      { chatId: CHAT, file: '../PERSONA.md' },
      { chatId: CHAT, file: 'memory/../a.md' },
      { chatId: CHAT, file: 'memory/today.md' },
      { chatId: CHAT, file: 'AGENTS.md' },
      { chatId: '..', file: 'luna/MEMORY.md' },
      { chatId: 'personas', file: 'luna/MEMORY.md' },
      { chatId: EVERY_CHAT, file: 'a.md' },
      { chatId: EVERY_CHAT, file: 'personas/../a.md' },
      { chatId: EVERY_CHAT, file: 'personas/..md' },
    ];
    for (const place of wrong)
      await expect(memory.readFile(place), JSON.stringify(place)).rejects.toMatchObject({
        code: 'memory_unavailable',
      });
  });

  it('are found also where an operator made the folder, and where a persona was deleted', async () => {
    const { memory } = await opened({
      'telegram_-100/luna/MEMORY.md': 'x',
      'telegram_-100/marlow/PERSONA.md': 'x',
      'telegram_-100/empty/notes.txt': 'x',
      'telegram_-100/memory/2026-11-22.md': 'x',
      'telegram_-100/memory/2026-11-23.md': 'x',
      'telegram_-100/memory/<script>.md': 'x',
      'personas/luna.md': 'x',
      '<img src=x>_1/luna/MEMORY.md': 'x',
    });
    expect(await memory.chatFolders()).toEqual(['telegram_-100']);
    expect(await memory.personaFolders('telegram_-100')).toEqual(['luna', 'marlow']);
    expect(await memory.dailyLogs('telegram_-100')).toEqual(['2026-11-23.md', '2026-11-22.md']);
  });

  it('that are links are written where they lead, and a circle of links is said to be one', async () => {
    const { groups, memory, edit, bytes } = await opened({
      'elsewhere.md': TIERS,
      'board_main/chat.yaml': '',
    });
    await mkdir(join(groups, 'board_main/luna'));
    await symlink('../../elsewhere.md', join(groups, 'board_main/luna/MEMORY.md'));
    expect((await edit(MEMORY, 'tea', 'coffee')).kind).toBe('written');
    expect(String(await bytes('elsewhere.md'))).toContain('coffee');
    await mkdir(join(groups, 'board_main/memory'));
    await symlink('2026-11-22.md', join(groups, 'board_main/memory/2026-11-22.md'));
    await expect(memory.readFile({ chatId: CHAT, file: 'memory/2026-11-22.md' })).rejects.toThrow(
      'its links lead in a circle',
    );
  });
});
