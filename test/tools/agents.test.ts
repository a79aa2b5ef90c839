/** What an agent may do: its tools, its own memory and clipboard, and that no tool does for it what it may not. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ZodType } from 'zod';
import type { Config } from '../../src/config.js';
import type { AgentPlace, Authorisation } from '../../src/core/authorisation.js';
import type { Archives } from '../../src/core/chat-record.js';
import { locks } from '../../src/core/concurrency.js';
import { originOfNotes } from '../../src/core/origin.js';
import { type AgentSpace, type Agents, BOARD_CHAT } from '../../src/core/task.js';
import { type AnyTool, TOOL_GROUPS, type ToolContext, type TurnKind } from '../../src/core/tool.js';
import { createClipboard } from '../../src/groups/clipboard.js';
import { leftOutOf } from '../../src/tool-groups.js';
import { agentMemoryTools } from '../../src/tools/agent-memory.js';
import { authorise, mayActAnywhere } from '../../src/tools/authorise.js';
import { manageClipboard } from '../../src/tools/clipboard.js';
import { memoryTools } from '../../src/tools/memory.js';
import { sendMessage } from '../../src/tools/sending.js';
import { createToolsFor } from '../../src/turn-tools.js';
import { listeningLog, memoryIn } from '../groups/support.js';
import { askerWho } from '../harness/asker.js';
import { foldersIn } from '../harness/folders.js';
import { quietLog } from '../harness/quiet.js';
import { TOOLS_CONFIG } from '../harness/tools-config.js';

const AGENT: AgentPlace = {
  id: 'utility',
  taskId: 't1',
  cwd: null,
  roots: [],
  env: {},
  space: '/nowhere',
  shared: { folder: '/shared', mayWrite: true },
};
/** As far as anything else than the agent would decide, it may do everything: an owner, a control chat. */
const CALLER: Authorisation = {
  ...{ chatId: 'telegram_1', personaId: 'luna', senderId: 'telegram_9', channel: 'telegram' },
  ...{ controlChats: ['telegram_1'], asker: askerWho({ own: true }), agent: AGENT },
};

async function setUp() {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-agents-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const files = new Map<string, string>([['utility/MEMORY.md', 'uses metric units']]);
  const keyOf = ({ agent, chatId }: AgentSpace, what: string) =>
    `${agent}${chatId === null ? '' : ` in ${chatId}`}/${what}`;
  const agents = {
    async read(of, what) {
      const text = files.get(keyOf(of, what === 'MEMORY.md' ? what : what.date)) ?? '';
      return { text, origin: originOfNotes(text) };
    },
    async append(of, date, line) {
      const key = keyOf(of, date);
      files.set(key, `${files.get(key) ?? ''}${line}\n`);
    },
  } satisfies Partial<Agents> as unknown as Agents;
  const memory = memoryIn(join(folder, 'groups'), {});
  const clipboard = createClipboard(join(folder, 'clipboard'), locks(), listeningLog());
  const context: ToolContext = {
    authorisation: CALLER,
    ...{ room: 'telegram_1', turnId: 't1', callId: 'c1', timezone: 'UTC', log: quietLog, seen: new Map() },
    signal: new AbortController().signal,
    now: Date.parse('2026-03-10T12:00:00Z'),
    cause: { kind: 'turn', personaId: 'luna', turnId: 't1' },
  };
  const call = async (tool: AnyTool | undefined, given: object, changes: Partial<ToolContext> = {}) => {
    if (!(tool?.parameters instanceof ZodType)) throw new Error('no such tool, or it has no zod schema');
    const result = await tool.execute(tool.parameters.parse(given) as never, { ...context, ...changes });
    if ('waitsFor' in result) throw new Error('it waits');
    return result;
  };
  const own = agentMemoryTools({ agents, memory });
  const toolOf = (name: string) => own.find((tool) => tool.name === name);
  return { folder, files, agents, memory, clipboard, context, call, toolOf };
}

describe('the tools of an agent', () => {
  const setFor = async (
    turn: Partial<TurnKind>,
    changes: Partial<Config['tools']> = {},
    mcp: object | null = null,
  ) => {
    const { folder, agents, memory, clipboard } = await setUp();
    return createToolsFor({
      config: { groupsDir: folder, tools: { ...TOOLS_CONFIG, reactions: 'everywhere', ...changes } },
      ...{ memory, clipboard, agents, settings: { tier1By: 'anyone' }, mcp, skills: {} },
      ...{ ...foldersIn(folder), environment: {}, newId: () => 'id', artifacts: {} },
      ...{
        channels: new Map([['telegram', { react: async () => {} }]]),
        ...{ jobs: {}, exports: {}, recall: {}, archives: {}, deliver: {} },
        store: {},
        clock: {},
      },
    } as never)({
      ...{
        kind: 'agent',
        chatId: 'telegram_1',
        personaId: 'luna',
        senderId: 'telegram_9',
        channel: 'telegram',
      },
      ...{ chatKind: 'group', allowed: [...TOOL_GROUPS], ...turn },
    });
  };
  const foreign = Array.from({ length: 200 }, (_, n) => ({
    ...{ name: `mcp_s_${n}`, description: 'x', risk: 'medium', parameters: { type: 'object' } },
    execute: async () => ({ content: 'x', failed: false }),
  }));

  test('own tools come first, then those of servers in their order, no more than one request offers', async () => {
    const set = await setFor({ kind: 'answer' }, { maxOffered: 30 }, { tools: () => foreign });
    expect(set.tools).toHaveLength(30);
    const own = set.tools.filter(({ name }) => !name.startsWith('mcp_')).length;
    expect(set.tools.slice(own).map(({ name }) => name)).toEqual(
      foreign.slice(0, 30 - own).map(({ name }) => name),
    );
    expect(set.leftOut).toEqual(foreign.slice(30 - own).map(({ name }) => name));
    expect(set.descriptions).toHaveLength(30);
    expect(
      (await setFor({ kind: 'answer' }, {}, { tools: () => foreign.slice(0, 5) })).leftOut,
    ).toBeUndefined();
  });

  test.each(TOOL_GROUPS)('doctor knows how many tools %s has', async (group) => {
    const allow = [group, 'mcp'] as const;
    const tools = { allow: [...allow], maxOffered: 100 };
    const turn = { kind: 'answer', allowed: [...allow] } as const;
    const set = await setFor(turn, tools, { tools: () => foreign });
    const names = foreign.map(({ name }) => name);
    // Without a delegation nobody has agents here.
    const spare = group === 'agents' ? names.slice(99) : set.leftOut;
    expect(leftOutOf({ ...TOOLS_CONFIG, ...tools }, names)).toEqual(spare);
  });

  const namesFor = async (turn: Partial<TurnKind>, changes: Partial<Config['tools']> = {}) =>
    (await setFor(turn, changes)).tools.map(({ name }) => name).sort();
  const ALWAYS = ['read_memory', 'read_tiered_memory', 'write_memory'];
  const FILES = ['edit_file', 'glob', 'grep', 'read_file', 'write_file'];
  const REST = [
    'activate_skill',
    'manage_clipboard',
    'search_memory',
    'shell',
    'web_fetch',
    'write_artifact',
  ];

  test('are what its file and its chat allow, and never those that speak, spawn or write tiers', async () => {
    expect(await namesFor({})).toEqual([...ALWAYS, ...FILES, ...REST].sort());
    expect(await namesFor({ allowed: ['files', 'clipboard', 'send', 'agents', 'schedules'] })).toEqual(
      [...ALWAYS, ...FILES, 'manage_clipboard'].sort(),
    );
    expect(await namesFor({ allowed: ['files', 'shell'] }, { allow: ['shell'] })).toEqual(
      [...ALWAYS, 'shell'].sort(),
    );
    expect(await namesFor({ allowed: [] })).toEqual(ALWAYS);
  });

  test('leave out what leaves the machine by name, so that a call of it is refused as such', async () => {
    const mail = { name: 'mcp_post_mail', parameters: { type: 'object' }, isExternal: true };
    const read = { name: 'mcp_post_read', parameters: { type: 'object' } };
    const mcp = { tools: () => [mail, read] };
    const withheldFor = async (allowed: string[], network = false) => {
      const shell = { ...TOOLS_CONFIG.shell, network };
      return (await setFor({ allowed }, { shell }, mcp)).withheld?.map(({ name }) => name);
    };
    expect(await withheldFor(['files'])).toEqual(['send_message', 'mcp_post_mail']);
    expect(await withheldFor(['mcp', 'send'])).toEqual(['send_message']);
    expect(await withheldFor(['mcp'], true)).toEqual(['send_message', 'shell']);
  });

  test("on a program's task follow the rules of its chat and channel, without anybody's tiers", async () => {
    const program = { chatId: BOARD_CHAT, channel: 'board', allowed: ['files', 'shell'] };
    expect(await namesFor(program, { allow: [] })).toEqual(['read_memory', 'write_memory']);
    expect(await namesFor(program, { allow: [], channels: { board: { allow: ['shell'] } } })).toEqual(
      ['read_memory', 'shell', 'write_memory'].sort(),
    );
    const chats = { [BOARD_CHAT]: { allow: ['files' as const] } };
    expect(await namesFor(program, { allow: [], chats })).toEqual(
      ['read_memory', 'write_memory', ...FILES].sort(),
    );
  });
});

describe('its own memory', () => {
  test('is its MEMORY.md and its days; the principles are for reading', async () => {
    const { call, toolOf, files } = await setUp();
    const [read, write] = [toolOf('read_memory'), toolOf('write_memory')];
    expect((await call(read, { scope: 'chat' })).content).toBe('uses metric units');
    expect((await call(read, { scope: 'global' })).content).toBe('(There are no principles.)');
    expect((await call(read, { scope: 'chat_daily' })).content).toContain('Nothing was noted on 2026-03-10');
    expect((await call(write, { scope: 'chat_daily', content: 'built\nit' })).content).toBe(
      'Noted on 2026-03-10: built it',
    );
    expect((await call(read, { scope: 'chat_daily' })).content).toBe('built it\n');
    await call(write, { scope: 'chat_daily', content: 'from a page' }, { isTainted: true });
    expect(files.get('utility in telegram_1/2026-03-10')).toBe(
      'from a page [written after reading words from outside]\n',
    );
    expect(files.get('utility/2026-03-10')).toBe('built it\n');
    expect(await call(read, { scope: 'chat_daily' })).toEqual({
      content: 'built it\n\nfrom a page [written after reading words from outside]\n',
      ...{ failed: false, outside: true },
    });
  });

  test.each([
    ['global', { content: 'x' }, 'read-only'],
    ['chat', { content: 'x' }, 'only the scope chat_daily'],
    ['chat_daily', { content: ' \n' }, 'no content'],
    ['chat_daily', { content: 'x', date: '2026-02-30' }, 'real day'],
    ['chat_daily', { content: 'x', date: '../../x' }, 'real day'],
    ['chat_daily', { content: 'x', date: '2026-03-11' }, 'What is planned belongs into MEMORY.md'],
    ['chat_daily', { content: 'x'.repeat(4_001) }, 'Shorten it'],
    ['chat_daily', { content: 'password: hunter22xyz!' }, ''],
  ])('takes nothing of scope %s, %j', async (scope, given, told) => {
    const { call, toolOf, files } = await setUp();
    const result = await call(toolOf('write_memory'), { scope, ...given });
    expect(result).toMatchObject({ failed: true, content: expect.stringContaining(told) });
    expect([...files.keys()]).toEqual(['utility/MEMORY.md']);
  });

  test('is for agents alone, and not written once the task is stopped', async () => {
    const { call, toolOf, files } = await setUp();
    const { agent: _, ...persona } = CALLER;
    for (const authorisation of [persona, undefined]) {
      const result = await call(toolOf('read_memory'), { scope: 'chat' }, { authorisation });
      expect(result).toMatchObject({ failed: true, content: expect.stringContaining('Permission denied') });
    }
    const stopped = { signal: AbortSignal.abort() };
    expect((await call(toolOf('write_memory'), { scope: 'chat_daily', content: 'x' }, stopped)).failed).toBe(
      true,
    );
    expect(files.size).toBe(1);
  });
});

test('its clipboard is a file of its own, whichever chat it works for', async () => {
  const { call, clipboard, folder } = await setUp();
  const tool = manageClipboard(clipboard) as AnyTool;
  await call(tool, { action: 'add', content: 'step one' });
  const elsewhere = { ...CALLER, chatId: 'telegram_2', personaId: 'max' };
  expect((await call(tool, { action: 'read' }, { authorisation: elsewhere })).content).toBe('1. step one');
  expect(await readFile(join(folder, 'clipboard/utility.md'), 'utf8')).toBe('step one\n');
  expect(await clipboard.items({ chatId: 'telegram_1', personaId: 'luna' })).toEqual([]);
  for (const id of ['../x', 'a/b', '', '.hidden', 'x'.repeat(65)]) {
    await expect(clipboard.items({ agent: id })).rejects.toThrow(/not the id of an agent/);
  }
});

describe('an agent, whoever it works for', () => {
  test('acts on no other chat or persona, and anywhere never', async () => {
    const { context } = await setUp();
    for (const named of [{ chat_id: 'telegram_2' }, { persona_id: 'max' }]) {
      expect(await authorise(context, named, 'agents too')).toMatchObject({ ok: false });
    }
    expect(await authorise(context, {}, 'agents too')).toMatchObject({ ok: true });
    expect(await mayActAnywhere(CALLER)).toBe(false);
  });

  test('is refused by every tool that does not say that it is for agents', async () => {
    const { call, memory, context, folder } = await setUp();
    expect(await authorise(context, {})).toMatchObject({
      ok: false,
      reason: expect.stringContaining('an agent'),
    });
    const tools = memoryTools(memory, 'anyone');
    const byName = (name: string) => tools.find((tool) => tool.name === name);
    await call(byName('read_tiered_memory'), {});
    for (const [tool, given] of [
      [byName('write_tiered_memory'), { tier: 3, content: 'x' }],
      [byName('write_memory'), { scope: 'chat_daily', content: 'x' }],
      [
        sendMessage({
          ...{
            folders: foldersIn(folder),
            groupsDir: folder,
            archives: { find: async () => null } as unknown as Archives,
          },
          post: async () => expect.unreachable(),
        }) as AnyTool,
        { text: 'hello' },
      ],
    ] as const) {
      expect(await call(tool, given)).toMatchObject({
        failed: true,
        content: expect.stringContaining('agent may not'),
      });
    }
    expect(await memory.readAll({ chatId: 'telegram_1', personaId: 'luna' })).toBe('');
  });

  test("reads its persona's tiers, and nobody else's", async () => {
    const { call, memory } = await setUp();
    const owner = { chatId: 'telegram_1', personaId: 'luna' };
    const { signal, cause } = (await setUp()).context;
    await memory.writeTier(owner, 3, '- likes tea', { text: '' }, { cause, signal });
    const tool = memoryTools(memory, 'anyone').find(({ name }) => name === 'read_tiered_memory');
    expect((await call(tool, { tier: 3 })).content).toContain('likes tea');
    expect((await call(tool, { tier: 3, persona_id: 'max' })).failed).toBe(true);
  });
});
