/** On whose word tier 1 of a group changes (`memory.tier1_by`): in an answer, a flush, a night, an undo, a forgetting. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { ModelRequest } from '../../src/core/model.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

let on: Workbench;
afterEach(() => on.close());

const GROUP = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' }, mentionsBot: true };
const MEMBER = { sender: { address: 'm', name: 'Mo', administrator: false } };
const ADMIN = { sender: { address: 'a', name: 'Ada', administrator: true } };
const OWNER = { sender: { address: 'o', name: 'Otto', administrator: false } };

const write = (tier: number, content: string) => ({
  calls: [{ name: 'write_tiered_memory', arguments: { tier, content } }],
});
const lastOf = ({ messages }: ModelRequest) => messages.at(-1);
const isFlush = ({ messages }: ModelRequest) =>
  messages.some(({ content }) => content.startsWith('Memory flush.'));
const isSummary = (request: ModelRequest) => lastOf(request)?.content.endsWith('write the new one.') === true;
const isNight = ({ messages }: ModelRequest) =>
  messages.some(({ content }) => content.startsWith('Memory consolidation, '));

async function open(options: WorkbenchOptions = {}): Promise<void> {
  on = await workbench({
    ...{ memoryTools: true, rules: { owners: ['test_o'] }, isAdministrator: async () => false },
    ...options,
    settings: { compactAfterMessages: 8, keepRecentMessages: 2, ...options.settings },
  });
}

async function say(text: string, who: object, where: object = GROUP): Promise<void> {
  await on.say(text, { ...where, ...who });
  await on.settled();
}

const memory = (chat = 'test_-5') =>
  readFile(join(on.folder, 'groups', chat, 'default/MEMORY.md'), 'utf8').catch(() => '');
const results = () => on.asked.flatMap(({ messages }) => messages).filter(({ role }) => role === 'tool');

it('in an answer changes on the word of an administrator, of nobody else, and of anybody alone', async () => {
  await open();
  on.answer((request) => (lastOf(request)?.role === 'tool' ? 'noted' : write(1, '- likes roses')));
  await say('remember that', MEMBER);
  expect(await memory()).not.toContain('roses');
  expect(results().at(-1)?.content).toMatch(/^Tier 1 was not changed: /);
  await say('remember that', ADMIN);
  expect(await memory()).toContain('roses');
  await say('remember that', MEMBER, { chat: { address: 'm', kind: 'direct', title: 'Mo' } });
  expect(await memory('test_m')).toContain('roses');
});

it.each([
  ['a group of administrators', [ADMIN], true],
  ['administrators and a member', [ADMIN, MEMBER], false],
])('in a flush of what %s said: %s', async (_who, people, isWritten) => {
  await open();
  on.answer((request) => {
    if (isSummary(request)) return 'summed up';
    if (!isFlush(request)) return 'I see';
    const said = lastOf(request);
    if (said?.role !== 'tool') return write(1, '- likes roses');
    return said.content.startsWith('Tier 1 was not changed') ? write(2, '- likes roses') : 'done';
  });
  for (let n = 0; n < 4; n++) await say(`word ${n}`, people[n % people.length] as object);
  await on.conversation.resting();
  const [tier1 = '', tier2 = ''] = (await memory()).split('## Tier 2');
  expect(tier1.includes('roses')).toBe(isWritten);
  expect(tier2.includes('roses')).toBe(!isWritten);
  // A refusal is no failure: the flush is over.
  expect(await on.store.whereabouts(null, null)).toMatchObject({ flushed: 6, archived: 0 });
});

describe('at night', () => {
  it.each([
    ['test_-5', GROUP, false],
    ['test_a', { chat: { address: 'a', kind: 'direct' as const, title: 'Ada' } }, true],
  ])('in %s', async (chat, where, isWritten) => {
    await open({ settings: { consolidation: { tokens: 100_000, memoryChars: 12_000 } } });
    on.answer((request) => {
      if (!isNight(request)) return 'I see';
      if (lastOf(request)?.role === 'tool') return 'done';
      return { calls: [...write(1, '- likes roses, red').calls, ...write(3, '- tired (2026)').calls] };
    });
    await say('hello', ADMIN, where);
    await mkdir(join(on.folder, 'groups', chat, 'default'), { recursive: true });
    await writeFile(
      join(on.folder, 'groups', chat, 'default/MEMORY.md'),
      '## Tier 1\n\n- likes roses\n\n## Tier 2\n\n## Tier 3\n\n- tired\n',
    );
    await on.conversation.consolidate(new AbortController().signal);
    const request = on.asked.find(isNight)?.messages.at(-1)?.content ?? '';
    expect(request.includes('Tier 1 stays as it is')).toBe(!isWritten);
    expect((await memory(chat)).includes('roses, red')).toBe(isWritten);
    expect(await memory(chat)).toContain('- tired (2026)');
  });
});

describe('where only owners change it', () => {
  const OWNERS = { settings: { tier1By: 'owners' as const } };

  it('an administrator neither changes it, nor takes a change of it back, nor has it forgotten', async () => {
    await open(OWNERS);
    on.answer((request) => (lastOf(request)?.role === 'tool' ? 'noted' : write(1, '- likes roses')));
    await say('remember that', ADMIN);
    expect(await memory()).not.toContain('roses');
    await say('remember that', OWNER);
    expect(await memory()).toContain('roses');
    for (const command of ['/memory undo', '/memory forget likes roses', '/memory yes likes roses']) {
      await say(command, ADMIN);
      expect(on.texts().at(-1)).toMatch(/only owners change/);
      expect(await memory()).toContain('roses');
    }
    await say('/memory undo', OWNER);
    expect(on.texts().at(-1)).toMatch(/^Undone/);
    expect(await memory()).not.toContain('roses');
  });

  it('who writes alone still has their own words forgotten', async () => {
    await open(OWNERS);
    const where = { chat: { address: 'm', kind: 'direct' as const, title: 'Mo' } };
    await say('hello', MEMBER, where);
    await writeFile(join(on.folder, 'groups/test_m/default/MEMORY.md'), '## Tier 1\n\n- likes roses\n');
    await say('/memory forget likes roses', MEMBER, where);
    await say('yes', MEMBER, where);
    expect(await memory('test_m')).not.toContain('roses');
  });
});

it('where anybody changes it, nobody is asked about', async () => {
  await open({
    settings: { tier1By: 'anyone' },
    isAdministrator: () => Promise.reject(new Error('asked')),
  });
  on.answer((request) => (lastOf(request)?.role === 'tool' ? 'noted' : write(1, '- likes roses')));
  await say('remember that', MEMBER);
  expect(await memory()).toContain('roses');
});
