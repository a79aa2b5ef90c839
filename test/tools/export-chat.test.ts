/** The tool that sends a chat as a file: whose, to whom, and what it is asked wrongly. */
import { describe, expect, test } from 'vitest';
import { ZodType, z } from 'zod';
import type { Authorisation } from '../../src/core/authorisation.js';
import type { ChatExports } from '../../src/core/chat-record.js';
import { createZone } from '../../src/core/dates.js';
import type { SideMessage, ToolContext } from '../../src/core/tool.js';
import { exportChat } from '../../src/tools/sending.js';
import { askerWho } from '../harness/asker.js';
import { quietLog } from '../harness/quiet.js';

const HERE = 'telegram_1';
const OTHER = 'telegram_2';
const caller: Authorisation = {
  ...{ chatId: HERE, personaId: 'luna', senderId: 'telegram_9', channel: 'telegram', controlChats: [] },
  asker: askerWho(),
};
const control: Authorisation = { ...caller, controlChats: [HERE], asker: askerWho({ own: true }) };
const FILE = { path: '/data/exports/x.md', name: 'x.md' };

type Made = Awaited<ReturnType<ChatExports['make']>>;

function setUp(made: Made = { file: FILE, messages: 3 }) {
  const asked: Parameters<ChatExports['make']>[0][] = [];
  const posted: SideMessage[] = [];
  const tool = exportChat({
    exports: {
      make: async (ask) => {
        asked.push(ask);
        return made;
      },
    } as ChatExports,
    post: async (aside) => {
      posted.push(aside);
      return 'posted';
    },
    zone: createZone('Europe/Berlin'),
  });
  const context: ToolContext = {
    ...{ authorisation: caller, room: `${HERE}/45`, turnId: 't7', callId: 'c1', log: quietLog },
    ...{ signal: new AbortController().signal, now: Date.UTC(2026, 2, 10, 12), timezone: 'Europe/Berlin' },
    cause: { kind: 'turn', personaId: 'luna', turnId: 't7' },
    seen: new Map(),
  };
  const { parameters } = tool;
  if (!(parameters instanceof ZodType)) throw new Error('the tool has no zod schema');
  const call = async (given: object, changes: Partial<ToolContext> = {}) => {
    const result = await tool.execute(parameters.parse(given), { ...context, ...changes });
    if ('waitsFor' in result) throw new Error('the tool waits for something');
    return result;
  };
  return { tool, parameters, asked, posted, call };
}

test('is a tool that sends, with nothing that must be given', () => {
  const { tool, parameters } = setUp();
  expect(tool).toMatchObject({ name: 'export_chat', risk: 'medium', isSend: true });
  const described = z.toJSONSchema(parameters, { io: 'input' });
  expect(Object.keys(described.properties ?? {})).toEqual(['format', 'since', 'until', 'chat_id']);
  expect(described.required ?? []).toEqual([]);
});

test('sends the own chat to itself, as the persona may see it', async () => {
  const { call, asked, posted } = setUp();
  const result = await call({ format: 'json', since: '2026-03-01', until: '2026-03-02' });
  expect(result).toEqual({ content: 'The file x.md with 3 messages is on its way.', failed: false });
  expect(asked).toMatchObject([
    {
      ...{ chatId: HERE, by: 'luna', format: 'json', key: expect.stringMatching(/^[0-9a-f]{24}$/) },
      since: Date.UTC(2026, 1, 28, 23),
      until: Date.UTC(2026, 2, 2, 23) - 1,
    },
  ]);
  expect(posted).toMatchObject([
    { chatId: HERE, personaId: 'luna', turnId: 't7', room: `${HERE}/45`, text: '', file: FILE },
  ]);
});

describe('another chat', () => {
  test('is refused to whoever is no owner in a control chat', async () => {
    const { call, asked, posted } = setUp();
    const member = { ...control, asker: askerWho() };
    for (const authorisation of [caller, member, undefined, { ...caller, controlChats: [OTHER] }]) {
      expect((await call({ chat_id: OTHER }, { authorisation })).content).toMatch(/^Permission denied: /);
    }
    for (const chat_id of ['../telegram_2', 'a/b', '.', 'x\0'])
      expect((await call({ chat_id }, { authorisation: control })).content).toMatch(/^Permission denied: /);
    expect([asked, posted]).toEqual([[], []]);
  });

  test('goes to the control chat that asked, and nowhere else', async () => {
    const { call, asked, posted } = setUp();
    await call({ chat_id: OTHER }, { authorisation: control });
    expect(asked).toMatchObject([{ chatId: OTHER }]);
    expect(posted).toMatchObject([{ chatId: HERE }]);
  });
});

describe('what makes no sense', () => {
  test.each([
    [{ since: 'yesterday' }, 'since and until must be a date'],
    [{ until: '2026-02-30' }, 'since and until must be a date'],
    [{ since: '2026-03-02', until: '2026-03-01' }, 'since is after until'],
  ])('is refused: %j', async (given, why) => {
    const { call, asked } = setUp();
    expect(await call(given)).toEqual({ content: expect.stringContaining(why), failed: true });
    expect(asked).toEqual([]);
  });

  test('is a format that does not exist', () => {
    expect(setUp().parameters.safeParse({ format: 'pdf' }).success).toBe(false);
  });

  test('is a chat or a time in which nothing was said', async () => {
    const { call, posted } = setUp(null);
    expect((await call({ since: '2026-03-01' })).content).toBe(
      'Nothing was sent: nothing was said in the chat "telegram_1" in that time.',
    );
    expect(posted).toEqual([]);
  });

  test('is a call of no turn, and one that was stopped', async () => {
    const { call, posted } = setUp();
    const cause = { kind: 'flush', personaId: 'luna', turnId: null } as unknown as ToolContext['cause'];
    expect((await call({}, { cause })).failed).toBe(true);
    const over = new AbortController();
    over.abort();
    expect((await call({}, { signal: over.signal })).content).toBe('Stopped: nothing was sent.');
    expect(posted).toEqual([]);
  });
});
