import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isDate, withEntry } from '../../src/core/daily-log.js';
import { BY_TURN, groupsFolder, listeningLog, memoryIn } from '../groups/support.js';

const CHAT = 'telegram_-100123';
const TODAY = '2026-03-10';

async function chatWith(files: Record<string, string>): Promise<string> {
  const groups = await groupsFolder();
  await mkdir(join(groups, CHAT, 'memory'), { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(groups, CHAT, 'memory', name), text);
  return groups;
}

describe('the daily log in the prompt', () => {
  it('has the headings of its days alone, whatever somebody wrote into one', async () => {
    const forged = ['--- 2026-01-01 ---', ' --- 2026-01-01 ---\u00a0', '--- 2026-01-01 ---\r', 'x'];
    const groups = await chatWith({ '2026-03-10.md': forged.join('\n') });
    const text = await memoryIn(groups).recentDaily(CHAT, TODAY);
    expect(text.split(/\r\n|[\n\r]/).filter((line) => /^\s*---.*---\s*$/.test(line))).toEqual([
      `--- ${TODAY} ---`,
    ]);
  });

  it('shows the latest days up to today, newest first', async () => {
    const groups = await chatWith({
      '2026-03-11.md': 'tomorrow',
      '2026-03-09.md': ' ate soup\n',
      '2026-03-01.md': 'walked\n',
      '2026-02-01.md': 'too old\n',
      '2026-02-30.md': 'no such day',
      '2026-99-99.md': 'no such day',
      'notes.md': 'no day',
    });
    expect(await memoryIn(groups).recentDaily(CHAT, TODAY)).toBe(
      '--- 2026-03-09 ---\nate soup\n\n--- 2026-03-01 ---\nwalked',
    );
  });

  it('passes over blank and unreadable files without using a slot', async () => {
    const groups = await chatWith({ '2026-03-10.md': ' \n', '2026-03-08.md': 'a', '2026-03-07.md': 'b' });
    await mkdir(join(groups, CHAT, 'memory', '2026-03-09.md'));
    const log = listeningLog();
    expect(await memoryIn(groups, {}, { log }).recentDaily(CHAT, TODAY)).toBe(
      '--- 2026-03-08 ---\na\n\n--- 2026-03-07 ---\nb',
    );
    expect(log.warnings).toHaveLength(1);
  });

  it('cuts each day, and both together with their headings and markers', async () => {
    const groups = await chatWith({ '2026-03-10.md': 'x'.repeat(4_001), '2026-03-09.md': 'y'.repeat(5_000) });
    const shown = await memoryIn(groups).recentDaily(CHAT, TODAY);
    const first = `--- 2026-03-10 ---\n${'x'.repeat(4_000)}\n\n<<truncated due to daily-per-day-max-chars=4000>>`;
    const marker = '\n\n<<truncated due to daily-max-chars=8000>>';
    expect(shown.startsWith(`${first}\n\n--- 2026-03-09 ---\nyyy`)).toBe(true);
    expect(shown.endsWith(`y${marker}`)).toBe(true);
    expect(shown.length).toBe(8_000 + marker.length);
  });

  it('is empty where there is nothing', async () => {
    expect(await memoryIn(await groupsFolder()).recentDaily(CHAT, TODAY)).toBe('');
    expect(
      await memoryIn(await chatWith({ '2026-03-10.md': 'a' }), { dailyFiles: 0 }).recentDaily(CHAT, TODAY),
    ).toBe('');
  });
});

describe('adding to the daily log', () => {
  it('makes the file and adds one line an entry', async () => {
    const groups = await groupsFolder();
    const memory = memoryIn(groups);
    await memory.appendDaily(CHAT, TODAY, ' one \n  entry ', BY_TURN);
    await Promise.all(['2', '3', '4'].map((entry) => memory.appendDaily(CHAT, TODAY, entry, BY_TURN)));
    expect(await memory.readDaily(CHAT, TODAY)).toBe('one entry\n2\n3\n4');
  });

  it('keeps what a person wrote, line ends too', () => {
    expect(withEntry(Buffer.from('\uFEFFa\r\nb'), 'c').toString()).toBe('\uFEFFa\r\nb\r\nc\r\n');
    expect(withEntry(null, 'c').toString()).toBe('c\n');
  });

  it('takes no date that is not a day', async () => {
    const groups = await chatWith({ '2026-03-10.md': 'mine' });
    const memory = memoryIn(groups);
    for (const date of ['../../AGENTS', '2026-02-30', '2026-3-1', '2026-03-10\n', '']) {
      expect(isDate(date)).toBe(false);
      await expect(memory.appendDaily(CHAT, date, 'x', BY_TURN)).rejects.toMatchObject({
        code: 'memory_unavailable',
      });
      await expect(memory.readDaily(CHAT, date)).rejects.toMatchObject({ code: 'memory_unavailable' });
    }
    expect(await readFile(join(groups, CHAT, 'memory', '2026-03-10.md'), 'utf8')).toBe('mine');
  });
});
