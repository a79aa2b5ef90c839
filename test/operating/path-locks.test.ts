/** Files that gateways on several machines write at once, by real processes that see the same folder at different paths. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parse } from 'yaml';
import { systemClock } from '../../src/core/clock.js';
import { phraseOf } from '../../src/core/phrase.js';
import { fileUpdater } from '../../src/core/write-whole.js';
import { archiveFolder, lockOf } from '../../src/groups/paths.js';
import { pathLocks } from '../../src/operating/path-locks.js';
import { archivesIn, memoryIn } from '../groups/support.js';

const CHAT = 'telegram_-100';

let folder: string;
const children: ChildProcess[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-path-locks-'));
  await mkdir(join(folder, 'volume', 'groups'), { recursive: true });
  for (const name of ['a', 'b', 'test']) await symlink(join(folder, 'volume'), join(folder, name));
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await rm(folder, { recursive: true });
});

function exclusiveAt(mount: string, waitMs = 30_000) {
  const root = join(folder, mount);
  const roots = { groups: join(root, 'groups'), data: root };
  return pathLocks({
    folder: join(root, 'locks'),
    roots,
    clock: systemClock,
    elapsed: () => performance.now(),
    waitMs,
  });
}

/** Another process, which has mounted the volume under its name; `work` may use what the script imports. */
function process(name: string, work: string): ChildProcess {
  const module = (file: string) =>
    JSON.stringify(new URL(`../../dist/modules/${file}`, import.meta.url).href);
  const script = `
    const { pathLocks } = await import(${module('operating/path-locks.js')});
    const { fileUpdater } = await import(${module('core/write-whole.js')});
    const { createMemory } = await import(${module('groups/memory.js')});
    const { createChatFiles } = await import(${module('groups/chat-files.js')});
    const { createClipboard } = await import(${module('groups/clipboard.js')});
    const { systemClock: clock } = await import(${module('core/clock.js')});
    const log = { error: console.error, warn: console.error, info() {}, debug() {} };
    const name = ${JSON.stringify(name)};
    const root = ${JSON.stringify(join(folder, name))};
    const groupsDir = root + '/groups';
    const roots = { groups: groupsDir, data: root };
    const exclusive = pathLocks({ folder: root + '/locks', roots, clock, elapsed: () => performance.now() });
    ${work}`;
  const child = spawn(execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return child;
}

async function ended(...running: ChildProcess[]): Promise<void> {
  for (const [code] of await Promise.all(running.map((child) => once(child, 'exit')))) expect(code).toBe(0);
}

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

it('two gateways that write 90 times each lose no line of a log, a chat.yaml or a clipboard', async () => {
  const groups = join(folder, 'volume', 'groups', CHAT);
  // Comparing a large file takes longer: without the lock, some line is lost in each run.
  await mkdir(join(groups, 'memory'), { recursive: true });
  await writeFile(join(groups, 'memory', '2026-11-27.md'), `${'x'.repeat(2_000_000)}\n`);
  const work = `
    const versions = { async keepVersion() {}, async dropVersion() {}, originIn: async () => 'inside' };
    const budgets = { longTermMaxChars: 1e6, dailyFiles: 2, dailyMaxChars: 1e6, dailyPerDayMaxChars: 1e6, tierBytes: 1e6 };
    const memory = createMemory({ groupsDir, budgets, exclusive, versions, clock, newId: () => '1', log });
    const chats = createChatFiles(groupsDir, {}, clock, log, exclusive);
    const clipboard = createClipboard(root + '/clipboard', exclusive, log);
    const cause = { kind: 'turn', personaId: 'luna', turnId: '1' };
    const chatId = ${JSON.stringify(CHAT)};
    for (let i = 0; i < 30; i++) await Promise.all([
      memory.appendDaily(chatId, '2026-11-27', name + ' ' + i, { cause }),
      chats.setPerson(chatId, name + i, { name: name + i, description: 'x' }),
      clipboard.add({ chatId, personaId: 'luna' }, name + i),
    ]);`;
  await ended(process('a', work), process('b', work));
  const days = await readFile(join(groups, 'memory', '2026-11-27.md'), 'utf8');
  const yaml = parse(await readFile(join(groups, 'chat.yaml'), 'utf8'));
  const items = await readFile(join(folder, 'volume', 'clipboard', CHAT, 'luna.md'), 'utf8');
  for (const name of ['a', 'b']) {
    expect(numbers(30).filter((i) => !days.includes(`\n${name} ${i}\n`))).toEqual([]);
    expect(numbers(30).filter((i) => yaml.people[name + i]?.name !== name + i)).toEqual([]);
    expect(numbers(30).filter((i) => !items.split('\n').some((line) => line.endsWith(name + i)))).toEqual([]);
  }
  expect((await readdir(join(groups, 'memory'))).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});

it('a gateway that stands still keeps its lock, so that it writes over nothing; killed, it lets go', async () => {
  const file = join(folder, 'test', 'groups', 'AGENTS.md');
  await writeFile(file, 'one\n');
  const child = process(
    'a',
    `await exclusive(groupsDir + '/AGENTS.md', async () => {
       console.log('held');
       await clock.sleep(1e6);
     });`,
  );
  await once(child.stdout as NonNullable<ChildProcess['stdout']>, 'data');
  child.kill('SIGSTOP');
  const add = (line: string) => (current: Buffer | null) => Buffer.from(`${current}${line}\n`);
  const refused = fileUpdater(exclusiveAt('test', 300))(file, add('two'));
  await expect(refused).rejects.toMatchObject({
    code: 'memory_unavailable',
    message: expect.stringMatching(/Cannot write .*AGENTS\.md: another gateway holds .* and does not let go/),
  });
  const waiting = fileUpdater(exclusiveAt('test'))(file, add('three'));
  child.kill('SIGKILL');
  await waiting;
  expect(await readFile(file, 'utf8')).toBe('one\nthree\n');
});

it('forgets words in the files of a folder while another gateway writes there, and nothing stands still', async () => {
  const exclusive = exclusiveAt('test');
  const groupsDir = join(folder, 'test', 'groups');
  const memory = memoryIn(groupsDir, {}, { exclusive });
  const cause = { kind: 'turn', personaId: 'luna', turnId: '1' } as const;
  const child = process(
    'b',
    `const update = fileUpdater(exclusive);
     console.log('on');
     for (let i = 0; i < 100; i++) {
       await exclusive(${JSON.stringify(lockOf(archiveFolder('', CHAT)))}.replace(/^/, groupsDir), async () => {});
       await update(groupsDir + '/${CHAT}/memory/2026-11-27.md', (was) => Buffer.from((was ?? '') + '- b ' + i + '\\n'));
     }`,
  );
  const over = ended(child);
  await once(child.stdout as NonNullable<ChildProcess['stdout']>, 'data');
  for (const i of numbers(20)) {
    await memory.appendDaily(CHAT, '2026-11-27', `secret ${i}`, { cause });
    await memory.erase(CHAT, phraseOf('secret'));
  }
  await over;
  const text = await readFile(join(groupsDir, CHAT, 'memory', '2026-11-27.md'), 'utf8');
  expect(text).not.toContain('secret');
  expect(numbers(100).filter((i) => !text.split('\n').includes(`- b ${i}`))).toEqual([]);
});

it('takes the lock of a folder and then of a file in it, whatever their names', async () => {
  const exclusive = exclusiveAt('test', 0);
  const groupsDir = join(folder, 'test', 'groups');
  for (const i of numbers(400))
    await exclusive(lockOf(groupsDir), () => exclusive(join(groupsDir, `${i}.md`), async () => {}));
  // Few files, however many paths.
  expect((await readdir(join(folder, 'volume', 'locks'))).length).toBeLessThan(300);
  await archivesIn(groupsDir).remove(CHAT, '2026-11-22T10-15-00-luna.md');
});

it('says which file cannot be written where no lock can be made', async () => {
  await writeFile(join(folder, 'volume', 'locks'), 'no folder');
  const refused = exclusiveAt('test')('/elsewhere/x.md', async () => {});
  await expect(refused).rejects.toMatchObject({
    code: 'memory_unavailable',
    message: 'Cannot write /elsewhere/x.md: its lock cannot be taken',
  });
});
