import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import type { Log } from '../../src/core/log.js';
import type { SeenTier } from '../../src/core/memory.js';
import { type Authorisation, seenKey, type ToolContext, type ToolResult } from '../../src/core/tool.js';
import { createMemory } from '../../src/groups/memory.js';
import { memoryTools } from '../../src/tools/memory.js';

const OWN = 'terminal_local/default/MEMORY.md';
const OTHER = 'telegram_1/luna/MEMORY.md';
const other = { chat_id: 'telegram_1', persona_id: 'luna' };
const caller: Authorisation = {
  chatId: 'terminal_local',
  personaId: 'default',
  senderId: 'terminal_user',
  channel: 'terminal',
  controlChats: [],
};
const control: Authorisation = { ...caller, controlChats: ['terminal_local'] };
const ignore = () => {};
const log: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

async function setUp(files: Record<string, string> = {}) {
  const groups = await mkdtemp(join(tmpdir(), 'tools-'));
  onTestFinished(() => rm(groups, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(groups, path)), { recursive: true });
    await writeFile(join(groups, path), text);
  }
  const budgets = {
    longTermMaxChars: 12_000,
    dailyPerDayMaxChars: 4_000,
    dailyFiles: 2,
    dailyMaxChars: 8_000,
  };
  const memory = createMemory({ groupsDir: groups, budgets, log });
  const tools = memoryTools(memory);
  const context: ToolContext = {
    authorisation: caller,
    signal: new AbortController().signal,
    now: Date.parse('2026-03-10T23:30:00Z'),
    timezone: 'Europe/Berlin',
    log,
    seen: new Map<string, SeenTier>(),
  };

  /** As the route does it: the tool's own schema reads what the model wrote. */
  async function call(
    name: string,
    parameters: object,
    changes: Partial<ToolContext> = {},
  ): Promise<ToolResult> {
    const tool = tools.find((tool) => tool.name === name);
    if (!tool) throw new Error(`no tool ${name}`);
    return tool.execute(tool.parameters.parse(parameters) as never, { ...context, ...changes });
  }
  const read = (path: string) => readFile(join(groups, path), 'utf8');
  return { groups, memory, tools, context, call, read };
}

describe('the list', () => {
  it('has four tools whose parameters become JSON schema', async () => {
    const { tools } = await setUp();
    const schema = Object.fromEntries(
      tools.map((tool) => [tool.name, z.toJSONSchema(tool.parameters, { io: 'input' })]),
    );
    expect(Object.keys(schema)).toEqual([
      'read_tiered_memory',
      'write_tiered_memory',
      'read_memory',
      'write_memory',
    ]);
    expect(schema.write_tiered_memory?.required).toEqual(['tier', 'content']);
    expect(schema.read_memory?.required).toEqual(['scope']);
    expect(schema.write_memory?.required).toEqual(['scope', 'content']);
    expect(tools.map((tool) => tool.risk)).toEqual(['low', 'medium', 'low', 'medium']);
    expect(tools.map((tool) => tool.repeatable)).toEqual([true, false, true, false]);
    for (const tool of tools) expect(() => z.toJSONSchema(tool.parameters)).not.toThrow();
  });
});

describe('tiers', () => {
  it('are read one by one or all, the number as text too', async () => {
    const { call } = await setUp({ [OWN]: '## Tier 1\ntea\n## Tier 2\n' });
    expect(await call('read_tiered_memory', { tier: '1' })).toEqual({ content: 'tea', failed: false });
    expect((await call('read_tiered_memory', { tier: 2 })).content).toBe('(Tier 2 is empty.)');
    expect((await call('read_tiered_memory', {})).content).toBe(
      'Tier 1:\ntea\n\nTier 2:\n(Tier 2 is empty.)\n\nTier 3:\n(Tier 3 is empty.)',
    );
    await expect(call('read_tiered_memory', { tier: 4 })).rejects.toThrow();
  });

  it('are written once they were seen, and answered with what was committed', async () => {
    const { call, read } = await setUp({ [OWN]: '## Tier 1\ntea\n' });
    await call('read_tiered_memory', { tier: 1 });
    expect(await call('write_tiered_memory', { tier: 1, content: '# Drinks\ntea, rain' })).toEqual({
      content: 'Tier 1 is written. It now says:\n\n### Drinks\ntea, rain',
      failed: false,
    });
    expect((await call('write_tiered_memory', { tier: 1, content: '' })).content).toBe(
      'Tier 1 is written. It is empty now.',
    );
    expect(await read(OWN)).toBe('## Tier 1\n');
  });

  it('that changed meanwhile are shown instead, and then may be written', async () => {
    const { call, read, groups, context } = await setUp({ [OWN]: '## Tier 1\nby hand\n' });
    context.seen.set(seenKey('terminal_local', 'default', 1), { cut: true });
    const first = await call('write_tiered_memory', { tier: 1, content: 'mine' });
    expect(first.failed).toBe(true);
    expect(first.content).toContain('It now says:\n\nby hand\n\nMerge');
    await writeFile(join(groups, OWN), '## Tier 1\nby hand again\n');
    expect((await call('write_tiered_memory', { tier: 1, content: 'mine' })).content).toContain(
      'by hand again',
    );
    expect((await call('write_tiered_memory', { tier: 1, content: 'both' })).failed).toBe(false);
    expect(await read(OWN)).toBe('## Tier 1\n\nboth\n');
  });

  it('with a truncation marker are refused', async () => {
    const { call } = await setUp();
    const content = 'x\n\n<<truncated due to memory-max-chars=12000>>';
    const refused = await call('write_tiered_memory', { tier: 1, content });
    expect(refused).toMatchObject({ failed: true, content: expect.stringContaining('truncation marker') });
  });

  it('too large for an answer are cut with a marker, and not overwritten', async () => {
    const text = `## Tier 1\n${'x'.repeat(60_000)}\n`;
    const { call, read } = await setUp({ [OWN]: text });
    const shown = await call('read_tiered_memory', { tier: 1 });
    expect(shown.content.endsWith('\n\n<<truncated due to tool-max-chars=50000>>')).toBe(true);
    for (let tries = 0; tries < 2; tries++) {
      expect((await call('write_tiered_memory', { tier: 1, content: 'y' })).failed).toBe(true);
    }
    expect(await read(OWN)).toBe(text);
  });
});

describe('whole files', () => {
  it('are read by scope', async () => {
    const { call } = await setUp({ 'AGENTS.md': 'Be kind.\n', [OWN]: 'Mine.\n' });
    expect((await call('read_memory', { scope: 'global' })).content).toBe('Be kind.');
    expect((await call('read_memory', { scope: 'chat' })).content).toBe('Mine.\n');
    expect((await call('read_memory', { scope: 'chat_daily' })).content).toBe(
      '(Nothing is in the daily log of 2026-03-11.)',
    );
  });

  it('global is read-only', async () => {
    const { call, read } = await setUp({ 'AGENTS.md': 'Be kind.\n' });
    for (const scope of ['global', 'chat', 'else']) {
      expect((await call('write_memory', { scope, content: 'x' }, { authorisation: control })).failed).toBe(
        true,
      );
    }
    const refused = await call('write_memory', { scope: 'global', content: 'Be rude.' });
    expect(refused.content).toMatch(/^Principles are read-only/);
    expect(await read('AGENTS.md')).toBe('Be kind.\n');
  });

  it('the daily log gets one line, today in the zone unless a date is named', async () => {
    const { call, read } = await setUp();
    const daily = (content: string, date?: string) =>
      call('write_memory', { scope: 'chat_daily', content, date });
    expect(await daily(' ate\n soup ')).toEqual({
      content: 'Added to the daily log of 2026-03-11: ate soup',
      failed: false,
    });
    await daily('more');
    await daily('later', '2026-03-09');
    expect(await read('terminal_local/memory/2026-03-11.md')).toBe('ate soup\nmore\n');
    expect(await read('terminal_local/memory/2026-03-09.md')).toBe('later\n');
    expect((await call('read_memory', { scope: 'chat_daily', date: '2026-03-09' })).content).toBe('later');
    for (const date of ['../../AGENTS', '2026-02-30', 'today']) {
      expect((await daily('x', date)).failed).toBe(true);
      expect((await call('read_memory', { scope: 'chat_daily', date })).failed).toBe(true);
    }
    expect((await daily(' \n ')).failed).toBe(true);
  });
});

describe('authorisation', () => {
  const calls: [string, object][] = [
    ['read_tiered_memory', { tier: 1 }],
    ['write_tiered_memory', { tier: 1, content: 'x' }],
    ['read_memory', { scope: 'global' }],
    ['read_memory', { scope: 'chat' }],
    ['write_memory', { scope: 'chat_daily', content: 'x' }],
  ];

  it('is needed by every tool', async () => {
    const { call, groups } = await setUp({ 'AGENTS.md': 'Be kind.' });
    for (const [name, parameters] of calls) {
      const refused = await call(name, parameters, { authorisation: undefined });
      expect(refused).toMatchObject({ failed: true, content: expect.stringMatching(/^Permission denied: /) });
    }
    expect(await readdir(groups)).toEqual(['AGENTS.md']);
  });

  it('is for the own chat and persona alone; nothing is touched', async () => {
    const { call, groups, context } = await setUp({ [OTHER]: '## Tier 1\nsecret\n' });
    for (const [name, parameters] of calls) {
      for (const forged of [{ chat_id: 'telegram_1' }, other]) {
        const refused = await call(name, { ...parameters, ...forged });
        expect(refused).toMatchObject({
          failed: true,
          content: expect.stringMatching(/^Permission denied: /),
        });
        expect(refused.content).not.toContain('secret');
      }
    }
    expect((await call('read_tiered_memory', { persona_id: 'luna' })).failed).toBe(true);
    expect((await call('read_tiered_memory', { chat_id: '', persona_id: 'default' })).failed).toBe(false);
    expect(await readdir(groups)).toEqual(['telegram_1']);
    expect([...context.seen.keys()].every((key) => key.startsWith('terminal_local/default/'))).toBe(true);
  });

  it('of a control chat reaches any other, which must be read before it is written', async () => {
    const { call, read } = await setUp({ [OTHER]: '## Tier 1\nold\n' });
    const write = () =>
      call('write_tiered_memory', { tier: 1, content: 'new', ...other }, { authorisation: control });
    const blind = await write();
    expect(blind).toMatchObject({ failed: true, content: expect.stringContaining('old') });
    expect(await read(OTHER)).toBe('## Tier 1\nold\n');
    expect((await write()).failed).toBe(false);
    expect(await read(OTHER)).toBe('## Tier 1\n\nnew\n');
  });

  it('of a control chat does not lead out of groups/', async () => {
    const { call, groups } = await setUp();
    const chats = ['../x', 'telegram_1/../../x', 'personas', '.', 'a_\u0000'];
    const personas = ['..', 'a/b', 'a\\b', 'a\u0000', 'memory', 'Luna'];
    const forged = [
      ...chats.map((chat_id) => ({ chat_id })),
      ...personas.map((persona_id) => ({ persona_id })),
    ];
    for (const ids of forged) {
      for (const [name, parameters] of calls.filter(([name]) => name.includes('tiered'))) {
        const refused = await call(name, { ...parameters, ...ids }, { authorisation: control });
        expect(refused.failed, `${name} ${JSON.stringify(ids)}`).toBe(true);
      }
    }
    for (const chat_id of chats) {
      const daily = { scope: 'chat_daily', content: 'x', chat_id };
      expect((await call('write_memory', daily, { authorisation: control })).failed).toBe(true);
      expect((await call('read_memory', daily, { authorisation: control })).failed).toBe(true);
    }
    expect(await readdir(groups)).toEqual([]);
  });
});

describe('what goes wrong', () => {
  it('nothing is written once the turn was stopped', async () => {
    const { call, groups } = await setUp();
    const signal = AbortSignal.abort();
    expect((await call('write_tiered_memory', { tier: 1, content: 'x' }, { signal })).failed).toBe(true);
    expect((await call('write_memory', { scope: 'chat_daily', content: 'x' }, { signal })).failed).toBe(true);
    expect(await readdir(groups)).toEqual([]);
  });

  it('a memory that cannot be read is told, without the path', async () => {
    const { call, groups } = await setUp();
    await mkdir(join(groups, OWN), { recursive: true });
    for (const [name, parameters] of [
      ['read_tiered_memory', { tier: 1 }],
      ['write_tiered_memory', { tier: 1, content: 'x' }],
      ['read_memory', { scope: 'chat' }],
    ] as const) {
      const result = await call(name, parameters);
      expect(result.failed).toBe(true);
      expect(result.content).toContain('I cannot read or write my memory files just now.');
      expect(result.content).not.toContain(groups);
    }
  });
});
