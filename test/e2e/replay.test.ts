/** `coterie replay` and `coterie export` of the real program, beside a gateway that runs and without one. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { type Home, makeHome, run } from '../harness/gateway.js';

let home: Home;
afterEach(() => home.remove());

async function coterie(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const command = run(home, args);
  const code = await command.exited;
  return { code, out: command.out(), err: command.err() };
}

it('shows what a turn saw, asks again without doing anything, and exports, until it is forgotten', async () => {
  home = await makeHome({ timezone: 'UTC' });
  const talking = run(home, ['chat']);
  talking.write('hello\nremember that I like \u001b[31mheliotrope\n');
  await talking.saw(/Saved to my long-term memory/);

  // The gateway runs, and may not have written the record yet: the command waits for it.
  const told = await coterie('replay', 'evt-3');
  expect([told.code, told.err]).toEqual([0, '']);
  expect(told.out).toMatch(/^Turn [0-9a-f-]{36}: answered\nPersona default in terminal_local\n/);
  expect(told.out).toContain('calls write_tiered_memory');
  expect(told.out).not.toContain('\u001b');
  const id = /^Turn (\S+):/.exec(told.out)?.[1] ?? '';
  const memory = await home.read('groups/terminal_local/default/MEMORY.md');

  expect((await coterie('replay', `turn-${id}-some-call`)).out).toBe(told.out);
  const again = await coterie('replay', id, '--again');
  expect([again.code, again.err]).toEqual([0, '']);
  expect(again.out).toContain('Nothing was done, sent or stored.');
  expect(again.out).toContain('Request 2 again');
  expect(await home.read('groups/terminal_local/default/MEMORY.md')).toBe(memory);
  const json = JSON.parse((await coterie('replay', id, '--again', '--json')).out);
  expect(json).toMatchObject({ turn: { id }, torn: 0, again: [{}, {}, {}] });
  expect(json.records[0].requests[0].tools[0].parameters.type).toBe('object');

  expect((await coterie('export', 'terminal_local')).out).toContain('> hello\n');

  talking.endInput();
  expect(await talking.exited).toBe(0);

  // No gateway runs.
  const made = await coterie('export', 'terminal_local', '--format', 'json', '--output', 'chat.json');
  expect(made.out).toMatch(/chat\.json: 4 messages\.\n$/);
  const chat = JSON.parse((await home.read('chat.json')) ?? '');
  expect(chat.rooms[0].messages.map((each: { text: string }) => each.text)).toContain('hello');
  expect((await stat(join(home.folder, 'chat.json'))).mode & 0o777).toBe(0o600);

  const reset = run(home, ['chat']);
  reset.write('/reset\n');
  reset.endInput();
  expect(await reset.exited).toBe(0);
  expect(await coterie('replay', id)).toEqual({
    ...{ code: 1, out: '' },
    err: `coterie: The turn "${id}" was forgotten by /reset; nothing of it is shown.\n`,
  });
  expect((await coterie('export', 'terminal_local')).out).not.toContain('heliotrope');
  for (const name of await readdir(join(home.folder, 'data'), { recursive: true })) {
    if (name.includes('replay'))
      expect(await readFile(join(home.folder, 'data', name)).catch(() => '')).toBe('');
  }
});

it('says in a sentence what is asked wrongly', async () => {
  home = await makeHome({});
  const wrong: [string[], number, string][] = [
    [['replay', 'no-such-turn'], 1, 'There is no turn "no-such-turn"'],
    [['replay', '../../etc/passwd'], 1, 'There is no turn "../../etc/passwd"'],
    [['replay', 'evt-99\u001b[2J', '--again'], 1, 'There is no turn "evt-99\\u001b[2J"'],
    [['replay'], 2, 'missing required argument'],
    [['export', 'telegram_1'], 1, 'Nobody has ever written in a chat "telegram_1"'],
    [['export', '../telegram_1'], 1, 'Nobody has ever written in a chat "../telegram_1"'],
    [['export', 'a_1', '--format', 'pdf'], 2, '--format "pdf": expected one of markdown, json'],
    [['export', 'a_1', '--since', 'soon'], 2, '--since "soon": expected a date'],
    [
      ['export', 'a_1', '--since', '2026-01-02', '--until', '2026-01-01'],
      2,
      'expected a time before --until',
    ],
  ];
  const results = await Promise.all(wrong.map(([args]) => coterie(...args)));
  for (const [n, [args, code, words]] of wrong.entries()) {
    expect([args, results[n]?.code, results[n]?.err]).toEqual([args, code, expect.stringContaining(words)]);
    expect(results[n]?.out).toBe('');
  }
});
