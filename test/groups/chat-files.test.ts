import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { createChatFiles } from '../../src/groups/chat-files.js';
import { groupsFolder, listeningLog } from './support.js';

const CHAT = 'telegram_-100';

async function setUp(yaml?: string) {
  const groups = await groupsFolder();
  const file = join(groups, CHAT, 'chat.yaml');
  if (yaml !== undefined) {
    await mkdir(join(groups, CHAT));
    await writeFile(file, yaml);
  }
  const log = listeningLog();
  const settings = new Map<string, string>();
  const store = {
    values: async () => settings,
    async setValues(_: unknown, values: ReadonlyMap<string, string | null> | null) {
      for (const [key, value] of values ?? []) settings.set(key, value ?? '');
    },
  };
  /** `days`: how long after now. */
  const open = (days = 0) => {
    const clock = { ...systemClock, now: () => Date.now() + days * 86_400_000 };
    return createChatFiles(groups, store, clock, log);
  };
  return { groups, file, log, settings, open, chats: open(), read: () => readFile(file, 'utf8') };
}

describe('setTitle', () => {
  it('makes the file, and changes only the title afterwards', async () => {
    const { chats, read, file } = await setUp();
    await chats.setTitle(CHAT, 'Book club: "ours" #1');
    expect(await read()).toBe(`title: 'Book club: "ours" #1'\n`);
    await writeFile(file, '# mine\r\ntitle: old # was\r\nmore: [ 1,2 ]\r\n');
    await chats.setTitle(CHAT, 'new');
    expect(await read()).toBe('# mine\r\ntitle: new # was\r\nmore: [ 1,2 ]\r\n');
  });

  it('leaves a broken file alone and warns', async () => {
    const { chats, read, log } = await setUp('title: "x\n');
    await chats.setTitle(CHAT, 'y');
    await chats.setTitle(CHAT, 'y');
    expect(await read()).toBe('title: "x\n');
    expect(log.warnings).toHaveLength(1);
  });

  it('sees what another gateway has written since', async () => {
    const { chats, open, read } = await setUp();
    await chats.setTitle(CHAT, 'one');
    await chats.setTitle(CHAT, 'one');
    await open().setTitle(CHAT, 'two');
    await chats.setTitle(CHAT, 'one');
    expect(await read()).toBe('title: one\n');
  });
});

describe('further ids', () => {
  it('lead to the chat, at once and for the next process', async () => {
    const { chats, open, read } = await setUp('# mine\ntitle: x # why\n');
    expect(await chats.resolve('telegram_-200')).toBeNull();
    await Promise.all([chats.addAlias(CHAT, 'telegram_-200'), chats.addAlias(CHAT, 'telegram_-300')]);
    await chats.addAlias(CHAT, 'telegram_-200');
    expect(await read()).toBe('# mine\ntitle: x # why\nids:\n  - telegram_-200\n  - telegram_-300\n');
    for (const files of [chats, open()]) {
      expect(await files.resolve('telegram_-200')).toBe(CHAT);
      expect(await files.resolve('telegram_-300')).toBe(CHAT);
      expect(await files.resolve(CHAT)).toBeNull();
    }
  });

  it('are read from files that have changed since the last start, and remembered of the others', async () => {
    const { open, groups, file, settings } = await setUp('ids: [telegram_-7]\n');
    expect(await open(2).resolve('telegram_-7')).toBe(CHAT);
    // What is remembered differs from the file: so it shows which of the two was looked at.
    const remember = (at: number) =>
      settings.set(
        'groups.ids',
        JSON.stringify({ at, ids: { [CHAT]: ['telegram_-8'], gone_1: ['gone_2'] } }),
      );
    const inTwoDays = Date.now() + 2 * 86_400_000;
    remember(inTwoDays);
    expect(await open(3).resolve('telegram_-8')).toBe(CHAT);
    remember(inTwoDays);
    expect(await open(3).resolve('gone_2'), 'a folder that is gone').toBeNull();
    remember(inTwoDays);
    expect(await open(1).resolve('telegram_-7'), 'a clock that was ahead').toBe(CHAT);
    remember(Date.now());
    expect(await open().resolve('telegram_-7'), 'changed since').toBe(CHAT);
    remember(inTwoDays);
    await rm(file);
    await writeFile(join(groups, 'linked.yaml'), 'ids: [telegram_-9]\n');
    await symlink(join(groups, 'linked.yaml'), file);
    expect(await open(3).resolve('telegram_-9'), 'a link may lead elsewhere now').toBe(CHAT);
  });

  it('are added to what an operator wrote, and not to what is no list', async () => {
    const { chats, read, file } = await setUp('ids: [telegram_-7] # by hand\nz: 1\n');
    expect(await chats.resolve('telegram_-7')).toBe(CHAT);
    await chats.addAlias(CHAT, 'telegram_-8');
    expect(await read()).toMatch(/telegram_-7, telegram_-8.*# by hand\nz: 1\n$/);
    for (const broken of ['ids: 5\n', 'words\n', 'ids: [a\n']) {
      await writeFile(file, broken);
      await expect(chats.addAlias(CHAT, 'x_1')).rejects.toMatchObject({ code: 'memory_unavailable' });
      expect(await read()).toBe(broken);
    }
  });

  it('of broken files are passed over; without groups/ there are none', async () => {
    const { chats, open, groups, file } = await setUp('ids: [a\n');
    expect(await chats.resolve('x_1')).toBeNull();
    await rm(file);
    await mkdir(file);
    expect(await open().resolve('x_1')).toBeNull();
    await rm(groups, { recursive: true });
    expect(await open().resolve('x_1')).toBeNull();
  });

  it('far down in a long file are found, and known beforehand once they were prepared', async () => {
    const { chats, open, file } = await setUp(`title: t\n# ${'x'.repeat(5000)}\nids:\n  - x_1\n`);
    expect(await chats.resolve('x_1')).toBe(CHAT);
    const prepared = open();
    await prepared.prepare();
    await rm(file);
    expect(await prepared.resolve('x_1')).toBe(CHAT);
  });

  it('of 10,000 chats are found without stopping everything else', async () => {
    const { chats, groups } = await setUp();
    for (let i = 0; i < 10_000; i++) {
      await mkdir(join(groups, `telegram_${i}`));
      if (i % 10 === 0)
        await writeFile(join(groups, `telegram_${i}`, 'chat.yaml'), `title: t\nids:\n  - x_${i}\n`);
    }
    let longest = 0;
    let last = performance.now();
    const beat = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 1);
    expect(await chats.resolve('x_9990')).toBe('telegram_9990');
    clearInterval(beat);
    expect(longest).toBeLessThan(500);
  });
});
