/** What `coterie audit` can be asked for, over files of any size, and what a terminal gets to see. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AuditFilter, parseFilter, shownLine } from '../../src/audit.js';
import { createZone } from '../../src/core/dates.js';
import type { AuditLine } from '../../src/operating/audit-files.js';
import { newestEntries } from '../../src/operating/audit-read.js';
import { manualClock } from '../fakes/clock.js';
import { auditIn, entry, leave, olderIn } from './audit-support.js';

const ZONE = createZone('Europe/Berlin');
const HOUR = 3_600_000;
const START = Date.UTC(2026, 0, 1);
const NOW = START + 10 * 24 * HOUR;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-audit-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function found(wishes: AuditFilter): Promise<string[]> {
  const { matches, most } = parseFilter(wishes, ZONE, NOW);
  const { lines } = await newestEntries(folder, matches, most);
  return lines.map(({ what }) => what);
}

describe('the filters', () => {
  beforeEach(async () => {
    const clock = manualClock(START);
    const audit = auditIn(folder, { clock, fileBytes: 2_000 });
    for (let day = 1; day <= 9; day++) {
      await audit.record(entry(`command ${day}`, { who: `test_${day % 3}`, word: `test_${day % 3}` }));
      await audit.record(
        entry(`tool ${day}`, { kind: 'tool', who: 'test_8/luna', where: 'test_9', word: 'test_7' }),
      );
      await clock.advance(24 * HOUR);
    }
    expect((await olderIn(folder)).length).toBeGreaterThan(1);
  });

  it('show the newest, oldest of them first', async () => {
    expect(await found({ limit: '3' })).toEqual(['tool 8', 'command 9', 'tool 9']);
    expect(await found({})).toHaveLength(18);
  });

  it('are kinds, people, chats, and any of them together', async () => {
    expect(await found({ kind: 'command', limit: '2' })).toEqual(['command 8', 'command 9']);
    expect(await found({ who: 'test_0' })).toEqual(['command 3', 'command 6', 'command 9']);
    expect(await found({ who: 'test_7', limit: '1' })).toEqual(['tool 9']);
    expect(await found({ chat: 'test_8' })).toHaveLength(9);
    expect(await found({ chat: 'test_9' })).toHaveLength(9);
    expect(await found({ chat: 'test_9', kind: 'command' })).toEqual([]);
    expect(await found({ who: 'nobody' })).toEqual([]);
  });

  it('are times: days of the zone, moments, and how long ago', async () => {
    expect(await found({ kind: 'command', since: '2026-01-03', until: '2026-01-04' })).toEqual([
      'command 3',
      'command 4',
    ]);
    expect(await found({ kind: 'command', since: '3d' })).toEqual(['command 8', 'command 9']);
    expect(await found({ kind: 'command', until: '216h' })).toEqual(['command 1', 'command 2']);
    expect(await found({ kind: 'command', since: '2026-01-09T01:00' })).toEqual(['command 9']);
    expect(await found({ kind: 'command', since: '2026-01-09 01:01' })).toEqual([]);
    expect(await found({ kind: 'command', since: '2026-01-09T00:00:00Z' })).toEqual(['command 9']);
    expect(await found({ kind: 'command', since: '2026-01-09T00:01:00+02:00' })).toEqual(['command 9']);
  });

  it.each([
    { kind: 'commands' },
    { limit: '0' },
    { limit: '-1' },
    { limit: '10001' },
    { limit: '5x' },
    { limit: '' },
    { since: 'yesterday' },
    { since: '2026-02-30' },
    { since: '2026-01-01T25:00' },
    { since: '' },
    { until: '7 days' },
    { until: '2026-1-1' },
    { until: '\u001b[2J' },
  ] as AuditFilter[])('of %j are refused as wrong usage', (wishes) => {
    const asked = () => parseFilter(wishes, ZONE, NOW);
    expect(asked).toThrow(expect.objectContaining({ code: 'configuration' }));
    expect(asked).toThrow(/^--(kind|limit|since|until) \P{Cc}*: expected /u);
  });
});

describe('a line for the terminal', () => {
  const line: AuditLine = {
    ...{ n: 7, at: '2026-07-01T12:00:00.000Z', before: '', hash: '' },
    ...entry('/persona new Luna', { who: 'telegram_1', where: 'telegram_-5' }),
    word: 'telegram_2',
  };

  it('has number, time in the zone, kind, who, where, what and on whose word', () => {
    expect(shownLine(line, ZONE)).toBe(
      '7  2026-07-01 14:00  command        telegram_1 in telegram_-5: /persona new Luna (on the word of telegram_2)',
    );
    expect(shownLine({ ...line, where: null, word: null, details: { a: '1' } }, ZONE)).toBe(
      '7  2026-07-01 14:00  command        telegram_1: /persona new Luna\n    a: 1',
    );
  });

  it('has no control characters, also where somebody else wrote the file', () => {
    const bad = 'a\u001b[2J\r\nb\u202e\u0007\u009b';
    const text = shownLine(
      { ...line, who: bad, what: bad, word: bad, at: bad, details: { [bad]: bad } },
      ZONE,
    );
    expect(text.replace('\n    ', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });
});

it('older files are not opened once there are enough entries', async () => {
  const audit = auditIn(folder);
  for (const each of ['a', 'b', 'c']) await audit.record(entry(each));
  await mkdir(join(folder, 'audit.1.jsonl'));
  const read = (most: number, mostBytes?: number) => newestEntries(folder, () => true, most, mostBytes);
  expect((await read(2)).lines.map(({ what }) => what)).toEqual(['b', 'c']);
  expect((await read(9, 1)).lines.map(({ what }) => what)).toEqual(['c']);
  await expect(read(9)).rejects.toThrow('audit.1.jsonl is no file');
});

it('lines that are none of ours are counted and passed over', async () => {
  const audit = auditIn(folder);
  await audit.record(entry('a'));
  await leave(folder, `${JSON.stringify({ n: 2, kind: 'command' })}\n`);
  await leave(folder, `${'x'.repeat(5_000_000)}\n`);
  await audit.record(entry('b'));
  const { lines, strange } = await newestEntries(folder, () => true, 50);
  expect(lines.map(({ kind }) => kind)).toEqual(['command', 'torn', 'command']);
  expect(strange).toBe(2);
});
