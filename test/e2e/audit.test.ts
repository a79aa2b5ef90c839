/** The audit log of the real program: what its commands enter, and what `coterie audit` says of it. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { type Home, makeHome, run } from '../harness/gateway.js';

let home: Home;
afterEach(() => home.remove());

const TOKEN = '123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';

async function audit(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const command = run(home, ['audit', ...args]);
  const code = await command.exited;
  return { code, out: command.out(), err: command.err() };
}

async function chat(...lines: string[]): Promise<void> {
  const talking = run(home, ['chat']);
  talking.write(lines.map((line) => `${line}\n`).join(''));
  talking.endInput();
  expect(await talking.exited).toBe(0);
}

it('holds what commands, people and operators changed, and no secret', async () => {
  home = await makeHome({
    timezone: 'UTC',
    channels: { telegram: { token: TOKEN } },
    board: { token: 'abc' },
  });
  expect(await audit()).toEqual({ code: 0, out: 'No entries.\n', err: '' });
  expect((await audit('--verify')).out).toBe('0 entries, unbroken.\n');

  await chat('/persona new Luna', 'just talking');
  for (const args of [
    ['pair', 'approve', 'telegram_77'],
    ['pair', 'remove', 'telegram_77'],
    ['backup', 'plain.tgz'],
    ['backup', 'whole.tgz', '--with-credentials'],
    ['restore', 'plain.tgz'],
  ]) {
    expect(await run(home, args).exited).toBe(0);
  }
  expect(await run(home, ['pair', 'approve', 'ABCDEFGH']).exited).toBe(1);

  const { out, code, err } = await audit();
  expect([code, err]).toEqual([0, '']);
  const [, , , ...told] = out.split('\n').filter((line) => /^\d/.test(line));
  expect(told).toEqual([
    expect.stringMatching(
      /^4 {2}\d{4}-\d\d-\d\d \d\d:\d\d {2}command +terminal_local in terminal_local: \/persona new Luna$/,
    ),
    expect.stringMatching(/approval +operator: telegram_77 is let in, by the user /),
    expect.stringMatching(/approval +operator: the approval or request of telegram_77 is taken back/),
    expect.stringMatching(/backup +operator: a backup to .*plain\.tgz/),
    expect.stringMatching(/credentials +operator: a backup with the logins of platforms to .*whole\.tgz/),
    expect.stringMatching(
      /restore +operator: a restore from .*plain\.tgz \(sha256 [0-9a-f]{64}\), by the user /,
    ),
  ]);
  expect(out).toMatch(/start +gateway: the terminal began: coterie \d.*, Node v/);
  expect(out).toMatch(
    /configuration +gateway: .*config\.yaml \(sha256 [0-9a-f]{64}\); no earlier one is known/,
  );
  expect(out).toMatch(/^ {4}channels\.telegram\.token: secret [0-9a-f]{8}$/m);
  expect(out).toMatch(/^ {4}access\.direct: "pairing"$/m);
  const all = await home.read('data/audit.jsonl');
  for (const secret of [TOKEN, '"abc"', 'just talking']) expect(all).not.toContain(secret);
  expect((await audit('--verify')).out).toMatch(/^9 entries, unbroken\.\nThe last is 9, [0-9a-f]{64}\.\n$/);
});

it('says which keys changed since the last start', async () => {
  home = await makeHome({ board: { token: 'abc' } });
  await chat('hi');
  await home.configure({ board: { token: 'abd' }, retention: { days: 7 }, access: { direct: 'open' } });
  await chat('hi');
  await chat('hi');
  const { out } = await audit('--kind', 'configuration');
  expect(out).toContain('; changed since the last start: access.direct, board.token, retention.days');
  expect(out).toContain('; nothing changed since the last start');
});

it('filters, shows JSON, and refuses what it does not know', async () => {
  home = await makeHome({});
  await chat('/persona new Luna', '/persona new Tom');
  const { out } = await audit(
    '--kind',
    'command',
    '--who',
    'terminal_local',
    '--since',
    '1h',
    '--json',
    '--limit',
    '1',
  );
  expect(JSON.parse(out)).toMatchObject({ n: 5, what: '/persona new Tom', who: 'terminal_local' });
  for (const wrong of [['--kind', 'x'], ['--limit', '0'], ['--since', 'then'], ['--nonsense']]) {
    expect((await audit(...wrong)).code).toBe(2);
  }
  expect((await audit('--help')).out).toContain('--verify');
  expect((await audit('--version')).out).toMatch(/^\d/);
});

it('says where it was changed, with exit code 1, also when a gateway went on', async () => {
  home = await makeHome({});
  await chat('/persona new Luna');
  const file = join(home.folder, 'data/audit.jsonl');
  await writeFile(file, (await readFile(file, 'utf8')).replace('new Luna', 'new Lena'));
  expect(await audit('--verify')).toMatchObject({
    ...{ code: 1, out: '' },
    err: 'coterie: The audit log is broken: audit.jsonl, line 4: entry 4 is not as it was written (3 entries before it hold).\n',
  });
  await chat('/persona new Tom');
  expect((await audit('--verify')).code).toBe(1);
});

it('refuses approvals, restores and logins in a backup where it cannot be written; the rest goes on', async () => {
  home = await makeHome({});
  await chat('hi');
  expect(await run(home, ['backup', 'before.tgz']).exited).toBe(0);
  await rm(join(home.folder, 'data/audit.jsonl'));
  await mkdir(join(home.folder, 'data/audit.jsonl'));
  for (const args of [
    ['pair', 'approve', 'telegram_77'],
    ['pair', 'remove', 'telegram_77'],
    ['backup', 'whole.tgz', '--with-credentials'],
    ['restore', 'before.tgz'],
  ]) {
    const command = run(home, args);
    expect(await command.exited).toBe(1);
    expect(command.err()).toMatch(/^coterie: The audit log .* cannot be written; make room/m);
  }
  expect(await home.read('whole.tgz')).toBeNull();
  expect(await run(home, ['backup', 'plain.tgz']).exited).toBe(0);
  const talking = run(home, ['chat']);
  talking.write('/persona new Luna\n');
  talking.endInput();
  expect(await talking.exited).toBe(0);
  expect(talking.out()).toContain('Created persona Luna');
  expect(talking.err()).toContain('audit log not written; work goes on');
});
