/** The tool that makes documents: sent once where a persona makes them, kept where an agent does. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ZodType, z } from 'zod';
import { createArtifacts } from '../../src/artifacts/artifacts.js';
import type { Artifacts } from '../../src/core/artifacts.js';
import type { Authorisation } from '../../src/core/authorisation.js';
import { locks } from '../../src/core/concurrency.js';
import { Fault } from '../../src/core/errors.js';
import type { SideMessage, Tool, ToolContext } from '../../src/core/tool.js';
import { keepArtifact, writeArtifact } from '../../src/tools/sending.js';
import { askerWho } from '../harness/asker.js';
import { quietLog } from '../harness/quiet.js';

const caller: Authorisation = {
  ...{
    chatId: 'telegram_1',
    personaId: 'luna',
    senderId: 'telegram_9',
    channel: 'telegram',
    controlChats: [],
  },
  asker: askerWho(),
};
const agent = {
  id: 'utility',
  taskId: 'task7',
  cwd: null,
  roots: [],
  env: {},
  space: '/nowhere',
  shared: { folder: '/shared', mayWrite: true },
};

let home: string;
let posted: SideMessage[];
let parts: Parameters<typeof writeArtifact>[0];
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coterie-write-artifact-'));
  posted = [];
  parts = {
    artifacts: createArtifacts({
      ...{ folder: home, mediaFolder: join(home, 'media'), mostBytes: 1_000 },
      exclusive: locks(),
    }),
    post: async (aside) => {
      posted.push(aside);
      return 'posted';
    },
  };
});
afterEach(() => rm(home, { recursive: true, force: true }));

const context: ToolContext = {
  ...{ authorisation: caller, room: 'telegram_1/45', turnId: 'turn7', callId: 'c1', log: quietLog },
  ...{ signal: new AbortController().signal, now: 0, timezone: 'UTC', seen: new Map() },
  cause: { kind: 'turn', personaId: 'luna', turnId: 'turn7' },
};

async function call(tool: Tool<never>, given: object, changes: Partial<ToolContext> = {}) {
  const { parameters } = tool;
  if (!(parameters instanceof ZodType)) throw new Error('the tool has no zod schema');
  const result = await tool.execute(parameters.parse(given), { ...context, ...changes });
  if ('waitsFor' in result) throw new Error('the tool waits for something');
  return result;
}
const make = (given: object, changes?: Partial<ToolContext>) =>
  call(writeArtifact(parts) as Tool<never>, given, changes);

it('has the parameters of the contract; only where it sends does it count as a send', () => {
  const { name, risk, isSend, parameters } = writeArtifact(parts);
  expect([name, risk, isSend]).toEqual(['write_artifact', 'medium', true]);
  expect(keepArtifact(parts).isSend).toBeUndefined();
  const described = z.toJSONSchema(parameters as ZodType, { io: 'input' });
  expect(Object.keys(described.properties ?? {})).toEqual(['id', 'content', 'title', 'type']);
  expect(described.required).toEqual(['id', 'content']);
});

describe('of a persona', () => {
  it('is kept under the turn and sent into the chat', async () => {
    const result = await make({ id: 'report', content: '# A', title: 'A' });
    expect(result).toEqual({
      content: 'The file report.md is on its way; it is kept as artifacts/turn7/report.md.',
      failed: false,
    });
    const path = posted[0]?.file?.path ?? '';
    expect(path.startsWith(join(home, 'media/telegram_1/sent-'))).toBe(true);
    for (const file of [path, join(home, 'turn7/report.md')])
      expect(await readFile(file, 'utf8')).toBe('# A');
    expect(posted).toEqual([
      {
        ...{ chatId: 'telegram_1', personaId: 'luna', turnId: 'turn7', room: 'telegram_1/45', text: '' },
        ...{ key: expect.stringMatching(/^[0-9a-f]{24}$/), file: { path, name: 'report.md' } },
      },
    ]);
  });

  it('is sent under one key for one call, and another for each other', async () => {
    await make({ id: 'a', content: 'x' });
    await make({ id: 'a', content: 'x' });
    await make({ id: 'a', content: 'x' }, { callId: 'c2' });
    const [first, again, other] = posted.map(({ key }) => key);
    expect(again).toBe(first);
    expect(other).not.toBe(first);
  });

  it('is not sent where the chat is unknown, and the model hears that', async () => {
    parts.post = async () => 'unknown chat';
    expect(await make({ id: 'a', content: 'x' })).toMatchObject({ failed: true });
  });
});

it('of an agent is kept under its task and sent to nobody', async () => {
  const authorisation = { ...caller, agent };
  const result = await call(
    keepArtifact(parts) as Tool<never>,
    { id: 'data', content: '1', type: 'text/csv' },
    {
      authorisation,
    },
  );
  expect(result).toEqual({ content: 'Written: artifacts/task7/data.csv', failed: false });
  expect(await readFile(join(home, 'task7/data.csv'), 'utf8')).toBe('1');
  expect(posted).toEqual([]);
});

describe('refused', () => {
  it.each([
    ['a bad id', { id: '../../x', content: 'x' }, /^Nothing was written: an id has/],
    ['a bad type', { id: 'x', content: 'x', type: 'csv' }, /^Nothing was written: type must be/],
    ['too much', { id: 'x', content: 'x'.repeat(1_001) }, /^Nothing was written: it has 1 kB/],
    [
      'a secret',
      { id: 'x', content: `a\ntoken: ghp_${'a1B2'.repeat(9)}` },
      /^Nothing was written: line 2 .* an artifact keeps no secrets/,
    ],
  ])('is %s', async (_, given, words) => {
    const result = await make(given);
    expect(result.failed).toBe(true);
    expect(result.content).toMatch(words);
    expect(posted).toEqual([]);
  });

  it('is a call without an authorisation, one outside of a turn, one that was stopped', async () => {
    const given = { id: 'a', content: 'x' };
    expect((await make(given, { authorisation: undefined })).content).toMatch(/^Permission denied/);
    const cause = { kind: 'flush', personaId: 'luna', turnId: null } as const;
    expect((await make(given, { cause })).failed).toBe(true);
    expect((await make(given, { signal: AbortSignal.abort() })).failed).toBe(true);
    expect(posted).toEqual([]);
  });

  it('is what the disk does not take: the model hears it, without the path', async () => {
    const fault = new Fault('memory_unavailable', `Cannot write ${home}: the disk is full`);
    parts.artifacts = { write: () => Promise.reject(fault) } as unknown as Artifacts;
    const { content, unsaved } = await make({ id: 'a', content: 'x' });
    expect(unsaved).toBe(true);
    expect(content).not.toContain(home);
  });
});
