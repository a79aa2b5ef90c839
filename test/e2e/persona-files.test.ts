/** `coterie persona import` and `export`, by the compiled command, also killed in the middle. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { charxCard, madeCard, pngCard } from '../harness/cards.js';
import { type Home, MAIN, makeHome, run } from '../harness/gateway.js';

const CHAT = 'telegram_7';
let home: Home;
beforeEach(async () => {
  home = await makeHome({});
});
afterEach(() => home.remove());

async function coterie(...args: string[]) {
  const command = run(home, args);
  const code = await command.exited;
  return { code, out: command.out(), err: command.err() };
}
const at = (...path: string[]) => join(home.folder, ...path);
const folderOf = (...path: string[]) => at('groups', CHAT, ...path);

it('brings characters into a chat and the library, and takes them out as they came', async () => {
  const file = await pngCard(madeCard(), { both: true, behind: true });
  await writeFile(at('a.png'), file);
  await writeFile(at('b.charx'), await charxCard(madeCard({ name: 'Otto', description: 'x' })));
  await writeFile(at('c.txt'), 'nothing');
  const { code, out } = await coterie('persona', 'import', 'a.png', 'b.charx', 'c.txt', '--chat', CHAT);
  expect(out.match(/"[abc]\.\w+": .*/g)).toEqual([
    '"a.png": Imported Marla.',
    '"b.charx": Imported Otto.',
    '"c.txt": Not imported: there is no character card in it.',
  ]);
  expect(code).toBe(1);
  expect((await readdir(folderOf())).sort()).toEqual(['marla', 'otto']);
  expect((await coterie('persona', 'export', CHAT, 'marla')).out).toBe('Wrote marla.png.\n');
  expect(await readFile(at('marla.png'))).toEqual(file);
  expect((await coterie('persona', 'export', CHAT, 'Otto', 'out.json', '--as', 'json')).code).toBe(0);
  expect(JSON.parse(await readFile(at('out.json'), 'utf8')).data.name).toBe('Otto');
  expect((await coterie('persona', 'import', 'a.png', '--name', 'Ida')).out).toMatch(/Imported Ida\./);
  expect((await readdir(at('groups', 'personas'))).sort()).toEqual(['ida', 'ida.md']);
});

it('says what is wrong, in one line, and writes nothing', async () => {
  const wrong = [
    ['persona', 'import', 'missing.png'],
    ['persona', 'import', 'a', 'b', '--name', 'X'],
    ['persona', 'import', 'a', '--chat', '../x'],
    ['persona', 'export', CHAT, 'Nobody'],
    ['persona', 'export', CHAT, 'Nobody', '--as', 'gif'],
    ['persona', 'export', '../x', 'Nobody'],
  ];
  for (const args of wrong) {
    const { code, err } = await coterie(...args);
    expect(code, args.join(' ')).toBe(2);
    expect(err.trim().split('\n'), args.join(' ')).toHaveLength(1);
  }
  expect(existsSync(folderOf())).toBe(false);
  await writeFile(at('there.json'), 'mine');
  await writeFile(at('card.json'), JSON.stringify(madeCard()));
  await coterie('persona', 'import', 'card.json', '--chat', CHAT);
  expect((await coterie('persona', 'export', CHAT, 'Marla', 'there.json')).code).toBe(2);
  expect(await readFile(at('there.json'), 'utf8')).toBe('mine');
});

it('killed at any moment, leaves a whole persona or none', async () => {
  const entries = Array.from({ length: 2_000 }, (_, n) => ({
    keys: [`k${n}`],
    content: `c${n} `.repeat(40),
  }));
  await writeFile(at('big.json'), JSON.stringify(madeCard({ character_book: { entries } })));
  let whole = 0;
  const isTooEarly = (afterMs: number) => whole === 0 && afterMs < 30_000;
  // On a busy machine a command needs longer to end.
  for (let afterMs = 150; afterMs < 1_200 || isTooEarly(afterMs); afterMs += afterMs < 1_200 ? 60 : 1_000) {
    const chat = `telegram_${afterMs}`;
    const args = [MAIN, 'persona', 'import', 'big.json', '--chat', chat];
    const command = spawn(process.execPath, args, { cwd: home.folder, stdio: 'ignore' });
    const exited = new Promise((resolve) => command.once('exit', resolve));
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    command.kill('SIGKILL');
    await exited;
    const folder = at('groups', chat);
    const names = existsSync(folder) ? (await readdir(folder)).filter((name) => !name.startsWith('.')) : [];
    if (names.length === 0) continue;
    whole += 1;
    expect((await readdir(join(folder, 'marla'))).sort()).toEqual([
      'PERSONA.md',
      'card.json',
      'lorebook.yaml',
    ]);
    expect(await readFile(join(folder, 'marla', 'PERSONA.md'), 'utf8')).toContain('A storm comes up.');
  }
  expect(whole).toBeGreaterThan(0);
}, 300_000);
