/** A report as the gateway completes it: what really ran and when, and whether its artifacts are what it says. */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AgentPlace } from '../../../src/core/authorisation.js';
import type { Step } from '../../../src/core/transcript.js';
import { completeReport, readReport, type ViapReport } from '../../../src/delegation/viap/report.js';
import { LEAST_REPORT } from './fixtures.js';

let folder: string;
let place: AgentPlace;
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'coterie-viap-')));
  for (const name of ['work/sub', 'work-evil', 'artifacts/task-1'])
    await mkdir(join(folder, name), { recursive: true });
  place = {
    ...{
      id: 'utility',
      taskId: 'task-1',
      cwd: join(folder, 'work'),
      env: {},
      space: join(folder, 'space'),
      shared: { folder: '/shared', mayWrite: true },
    },
    roots: [join(folder, 'work'), join(folder, 'artifacts')],
  };
});
afterEach(() => rm(folder, { recursive: true }));

function reportOf(more: object): ViapReport {
  const read = readReport(JSON.stringify({ ...LEAST_REPORT, ...more }), 't:1/2');
  if (!read.ok) throw new Error(read.reason);
  return read.report;
}

function complete(
  report: object,
  facts: Partial<Parameters<typeof completeReport>[1]> = {},
): Promise<ViapReport> {
  return completeReport(reportOf(report), {
    ...{ steps: [], place, startedAt: 1_000, endedAt: 62_400, wasExternalRefused: false },
    ...facts,
  });
}

const call = (id: string, given: object | string, name = 'shell') => ({
  ...{ id, name, arguments: typeof given === 'string' ? given : JSON.stringify(given) },
});
function ran(...calls: { id: string; name: string; arguments: string }[]): Step[] {
  return [
    { kind: 'answer', text: '', calls },
    ...calls.flatMap(({ id }): Step[] => [
      { kind: 'call', callId: id },
      { kind: 'result', callId: id, content: `result of ${id}`, failed: false },
    ]),
  ];
}

describe('the steps of a report', () => {
  it('hold every command that ran, with its folder, and none twice', async () => {
    const steps = [
      ...ran(call('1', { command: 'npm test', cwd: 'sub' }), call('2', { command: 'ls  -l' })),
      ...ran(call('3', { command: 'ls -l', cwd: '/elsewhere/../x' }), call('4', { path: 'a' }, 'read_file')),
    ];
    const claimed = [
      { what: 'Tested', command: ' npm  test ', cwd: '/wrong', result: 'fine' },
      { what: 'Thought' },
    ];
    const { steps: told } = await complete({ steps: claimed }, { steps });
    expect(told).toEqual([
      { what: 'Tested', command: 'npm test', cwd: join(folder, 'work/sub'), result: 'fine' },
      { what: 'Thought' },
      { what: 'Ran a command', command: 'ls  -l', cwd: join(folder, 'work'), result: 'result of 2' },
      { what: 'Ran a command', command: 'ls -l', cwd: '/x', result: 'result of 3' },
    ]);
  });

  it('hold one that was cut off, and none that was not begun', async () => {
    const refused: Step[] = [
      {
        kind: 'answer',
        text: '',
        calls: [call('1', { command: 'refused' }), call('2', { command: 'cut off' })],
      },
      { kind: 'result', callId: '1', content: 'Not run', failed: true },
      { kind: 'call', callId: '2' },
      ...ran(call('3', 'not JSON'), call('4', { command: 7 })),
    ];
    const { steps } = await complete({}, { steps: refused, place: { ...place, cwd: null } });
    expect(steps).toEqual([
      {
        ...{ what: 'Ran a command', command: 'cut off', cwd: join(folder, 'work') },
        result: 'It was cut off: how far it came is not known.',
      },
    ]);
  });
});

it('has the true times', async () => {
  const { metrics } = await complete({ metrics: { start_time: 'yesterday', duration_sec: -3 } });
  expect(metrics).toEqual({
    ...{ start_time: '1970-01-01T00:00:01.000Z', end_time: '1970-01-01T00:01:02.400Z', duration_sec: 61 },
  });
});

describe('a refused call that leaves the machine', () => {
  it('makes it a failure, and says so once', async () => {
    const entry = { where: 'gateway', message: 'requires explicit owner instruction' };
    const told = await complete({}, { wasExternalRefused: true });
    expect(told).toMatchObject({ success: false, errors: [entry] });
    const known = { where: 'mail', message: 'It requires explicit owner instruction.' };
    const again = await complete({ success: false, errors: [known] }, { wasExternalRefused: true });
    expect(again.errors).toEqual([known]);
  });
});

describe('an artifact', () => {
  const marks = async (...artifacts: object[]) => {
    const told = await complete({ artifacts });
    expect(told.success).toBe(true);
    return [
      told.artifacts.map(({ description }) => description),
      told.errors.map(({ message }) => message.split(':')[0]),
    ];
  };
  const sum = (text: string) => createHash('sha256').update(text).digest('hex');

  it('that is there is left as it is: relative, absolute, a folder, by the name of its root, with its sum', async () => {
    await writeFile(join(folder, 'work/a.txt'), 'a');
    await writeFile(join(folder, 'artifacts/task-1/b.md'), 'b');
    await symlink(join(folder, 'artifacts/task-1'), join(folder, 'work/made'));
    const paths = ['a.txt', './sub/../a.txt', 'sub', 'artifacts/task-1/b.md', 'made/b.md'];
    paths.push(join(folder, 'work/a.txt'));
    const artifacts = paths.map((path) => ({ path, description: path }));
    expect(await marks(...artifacts, { path: 'a.txt', description: 'sum', sha256: sum('a') })).toEqual([
      [...paths, 'sum'],
      [],
    ]);
  });

  it('that is not is marked', async () => {
    await writeFile(join(folder, 'work/a.txt'), 'a');
    await symlink('loop', join(folder, 'work/loop'));
    execFileSync('mkfifo', [join(folder, 'work/pipe')]);
    const missing = [
      'none.txt',
      'a.txt/b',
      'loop',
      'pipe',
      'x'.repeat(5_000),
      'nul\0',
      'https://example.com/a',
    ];
    expect(await marks(...missing.map((path) => ({ path })))).toEqual([
      missing.map(() => '(missing)'),
      missing.map(() => 'missing'),
    ]);
    expect(
      await marks({ path: 'a.txt', description: 'A', sha256: sum('b') }, { path: 'sub', sha256: sum('') }),
    ).toEqual([
      ['A (changed)', '(changed)'],
      ['changed', 'changed'],
    ]);
  });

  it('outside is not looked at, by whatever way it leads there', async () => {
    await writeFile(join(folder, 'secret'), 's');
    await writeFile(join(folder, 'work-evil/x'), 'x');
    await symlink(join(folder, 'secret'), join(folder, 'work/link'));
    await symlink(folder, join(folder, 'work/up'));
    const outside = [
      '../secret',
      '../../x',
      join(folder, 'work-evil/x'),
      '/etc/passwd',
      'link',
      'up/secret',
      '../none',
      '/',
    ];
    expect(await marks(...outside.map((path) => ({ path, sha256: sum('s') })))).toEqual([
      outside.map(() => '(outside)'),
      outside.map(() => 'outside'),
    ]);
  });
});
