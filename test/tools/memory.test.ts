import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ZodType, z } from 'zod';
import type { Asker, Authorisation } from '../../src/core/authorisation.js';
import { Fault } from '../../src/core/errors.js';
import { seenKey } from '../../src/core/ids.js';
import type { Cause, SeenTier } from '../../src/core/memory.js';
import { escaped } from '../../src/core/origin.js';
import type { AnyTool, ToolContext, ToolResult } from '../../src/core/tool.js';
import { memoryTools } from '../../src/tools/memory.js';
import { memoryIn, versionShelf } from '../groups/support.js';
import { askerWho } from '../harness/asker.js';
import { rounds } from '../harness/rounds.js';

const OWN = 'terminal_local/default/MEMORY.md';
const OTHER = 'telegram_1/luna/MEMORY.md';
const other = { chat_id: 'telegram_1', persona_id: 'luna' };
const caller: Authorisation = {
  chatId: 'terminal_local',
  personaId: 'default',
  senderId: 'terminal_user',
  channel: 'terminal',
  controlChats: [],
  asker: askerWho({ change: 'yes' }),
};
const control: Authorisation = {
  ...{ ...caller, controlChats: ['terminal_local'], asker: askerWho({ own: true }) },
};
const cause: Cause = { kind: 'turn', personaId: 'default', turnId: 'turn-7' };

function schemaOf({ name, parameters }: AnyTool): ZodType<unknown> {
  if (!(parameters instanceof ZodType)) throw new Error(`${name} has no zod schema`);
  return parameters;
}

async function setUp(files: Record<string, string> = {}) {
  const groups = await mkdtemp(join(tmpdir(), 'tools-'));
  onTestFinished(() => rm(groups, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(groups, path)), { recursive: true });
    await writeFile(join(groups, path), text);
  }
  const logged: string[] = [];
  const note = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  const log = { debug: note, info: note, warn: note, error: note };
  const versions = versionShelf();
  const memory = memoryIn(groups, {}, { log, versions });
  const tools = memoryTools(memory, 'administrators');
  const context: ToolContext = {
    authorisation: caller,
    room: 'terminal_local',
    turnId: 'turn-7',
    callId: 'call-1',
    signal: new AbortController().signal,
    now: Date.parse('2026-03-10T23:30:00Z'),
    timezone: 'Europe/Berlin',
    log,
    cause,
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
    const result = await tool.execute(schemaOf(tool).parse(parameters) as never, { ...context, ...changes });
    if ('waitsFor' in result) throw new Error(`${name} waits for something`);
    return result;
  }
  const read = (path: string) => readFile(join(groups, path), 'utf8');
  return { groups, memory, versions, logged, tools, context, call, read };
}

describe('the list', () => {
  it('has four tools whose parameters become JSON schema', async () => {
    const { tools } = await setUp();
    const schema = Object.fromEntries(
      tools.map((tool) => [tool.name, z.toJSONSchema(schemaOf(tool), { io: 'input' })]),
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
    // Those of low risk are the ones that may run again.
    expect(tools.map((tool) => tool.risk)).toEqual(['low', 'medium', 'low', 'medium']);
    for (const tool of tools) expect(() => z.toJSONSchema(schemaOf(tool))).not.toThrow();
  });
});

describe('what a model writes back as it was shown it', () => {
  const HTML = [
    '- <details><summary>keys</summary>a < b</details>',
    '- the entity &lt;summary> and the tag <summary>, ＜event>',
    '- in code it is &lt;event&gt;',
    '- </user_message> was said by nobody',
  ].join('\n');

  it('is in a tier what it was, byte for byte, where it looks like an element of ours', async () => {
    const { call, read } = await setUp({ [OWN]: `## Tier 2\n${HTML}\n` });
    // As results stand in a prompt.
    const shown = escaped((await call('read_tiered_memory', { tier: 2 })).content);
    expect(shown).not.toBe(HTML);
    await call('write_tiered_memory', { tier: 2, content: `${shown}\n- new: &lt;summary>` });
    expect(await read(OWN)).toContain(`## Tier 2\n${HTML}\n- new: <summary>\n`);
  });

  it('is in the daily log what was said', async () => {
    const { call, memory } = await setUp();
    const added = { scope: 'chat_daily', content: escaped('Ann likes <summary>') };
    await call('write_memory', added);
    expect(await memory.readDaily(caller.chatId, '2026-03-11')).toBe('Ann likes <summary>');
    expect((await call('write_memory', added)).content).toContain('stands in the daily log');
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
      content: 'Tier 1 is written. It now says:\n\n### Drinks\ntea, rain\n\nIt no longer holds:\n- tea',
      failed: false,
    });
    expect((await call('write_tiered_memory', { tier: 1, content: '' })).content).toBe(
      'Tier 1 is written. It is empty now.\n\nIt no longer holds:\n- ### Drinks\n- tea, rain',
    );
    expect(await read(OWN)).toBe('## Tier 1\n');
  });

  it('are answered with the lines that the write took away, within bounds', async () => {
    const lines = Array.from({ length: 30 }, (_, n) => `- fact ${n} ${'x'.repeat(300)}`);
    const { call } = await setUp({ [OWN]: `## Tier 1\n- kept\n${lines.join('\n')}\n` });
    await call('read_tiered_memory', { tier: 1 });
    const { content } = await call('write_tiered_memory', { tier: 1, content: '- new\n- kept' });
    const [, told = ''] = content.split('It no longer holds:\n');
    const shown = told.split('\n');
    expect(shown[0]).toMatch(/^- fact 0 x+ …$/);
    expect(shown.slice(-2)).toEqual([expect.stringMatching(/^- fact 19 /), '- and 10 more']);
    expect(told).not.toContain('kept');
    expect(told.length).toBeLessThan(4_000);
    // What only came, or only moved, takes nothing away.
    expect((await call('write_tiered_memory', { tier: 1, content: '- kept\n- new\n- newer' })).content).toBe(
      'Tier 1 is written. It now says:\n\n- kept\n- new\n- newer',
    );
  });

  it('that changed meanwhile are shown instead, and then may be written', async () => {
    const { call, read, groups, context } = await setUp({ [OWN]: '## Tier 1\nby hand\n' });
    context.seen.set(seenKey('terminal_local', 'default', 1), { cut: true });
    const first = await call('write_tiered_memory', { tier: 1, content: 'mine' });
    expect(first).toMatchObject({ failed: true, unsaved: true });
    expect(first.content).toContain('It now says:\n\nby hand\n\nMerge');
    await writeFile(join(groups, OWN), '## Tier 1\nby hand again\n');
    expect((await call('write_tiered_memory', { tier: 1, content: 'mine' })).content).toContain(
      'by hand again',
    );
    expect((await call('write_tiered_memory', { tier: 1, content: 'both' })).failed).toBe(false);
    expect(await read(OWN)).toMatch(/^## Tier 1\n+both\n$/);
  });

  it('that said just that already are not said to be written', async () => {
    const { call, versions } = await setUp({ [OWN]: '## Tier 1\ntea\n' });
    await call('read_tiered_memory', { tier: 1 });
    expect(await call('write_tiered_memory', { tier: 1, content: ' tea\n' })).toEqual({
      content: 'Tier 1 said just that already; nothing was changed. It now says:\n\ntea',
      failed: false,
    });
    expect((await call('write_tiered_memory', { tier: 2, content: '' })).content).toBe(
      'Tier 2 said just that already; nothing was changed. It is empty now.',
    );
    expect(versions.kept).toEqual([]);
  });

  it('are kept in the version before, with the cause', async () => {
    const { call, versions } = await setUp({ [OWN]: '## Tier 1\ntea\n' });
    await call('read_tiered_memory', { tier: 1 });
    await call('write_tiered_memory', { tier: 1, content: 'rain' });
    expect(versions.kept).toMatchObject([{ tier: 1, before: 'tea', after: 'rain', cause }]);
  });

  it('with a truncation marker are refused', async () => {
    const { call } = await setUp();
    const content = 'x\n\n<<truncated due to memory-max-chars=12000>>';
    const refused = await call('write_tiered_memory', { tier: 1, content });
    expect(refused).toMatchObject({ failed: true, content: expect.stringContaining('truncation marker') });
  });

  it('too large for an answer are cut with a marker, and not overwritten', async () => {
    const text = `## Tier 1\n${'x'.repeat(70_000)}\n`;
    const { call, read } = await setUp({ [OWN]: text });
    const shown = await call('read_tiered_memory', { tier: 1 });
    expect(shown.content.endsWith('\n\n<<truncated due to tool-max-chars=64000>>')).toBe(true);
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

  it('does not count what somebody wrote while the whole file was read as seen', async () => {
    const { memory, context, read, groups } = await setUp({ [OWN]: '## Tier 1\ntea\n' });
    const [, writeTier, readMemory] = memoryTools(
      {
        ...memory,
        async readAll(owner) {
          const text = await memory.readAll(owner);
          await writeFile(join(groups, OWN), '## Tier 1\nby hand\n');
          return text;
        },
      },
      'administrators',
    );
    const shown = await readMemory?.execute({ scope: 'chat' } as never, context);
    expect(shown).toMatchObject({ content: '## Tier 1\ntea\n' });
    const written = await writeTier?.execute({ tier: 1, content: 'tea, black' } as never, context);
    expect(written).toMatchObject({ failed: true, unsaved: true });
    expect(await read(OWN)).toBe('## Tier 1\nby hand\n');
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

describe('the daily log', () => {
  const daily = (content: string) => ({ scope: 'chat_daily', content });

  it('has a line once; the second time nothing is added, and that is said', async () => {
    const { call, read, versions } = await setUp();
    await call('write_memory', daily('ate soup'));
    expect(await call('write_memory', daily(' ate\u2028soup'))).toEqual({
      content: 'This very line stands in the daily log of 2026-03-11 already; nothing was added.',
      failed: false,
    });
    expect(await read('terminal_local/memory/2026-03-11.md')).toBe('ate soup\n');
    expect(versions.kept).toMatchObject([{ tier: null, before: '', after: 'ate soup', cause }]);
  });

  it('is answered with the very line that stands in the file', async () => {
    const odd = fc.string({
      unit: fc.constantFrom(
        'a',
        'ä',
        '🙂',
        '\uD800',
        ' ',
        '\t',
        '\n',
        '\r',
        '\v',
        '\f',
        '\u0085',
        '\u2028',
        '\u00A0',
        '#',
        '-',
      ),
    });
    await fc.assert(
      fc.asyncProperty(odd, async (content) => {
        const { call, read, groups } = await setUp();
        const answer = await call('write_memory', daily(content));
        if (answer.failed) expect(await readdir(groups)).toEqual([]);
        else {
          const line = (await read('terminal_local/memory/2026-03-11.md')).slice(0, -1);
          expect(answer.content).toBe(`Added to the daily log of 2026-03-11: ${line}`);
        }
      }),
      { numRuns: rounds({ few: 20, many: 80 }) },
    );
  });
});

describe('a secret', () => {
  const secret = 'hunter2-and-more';
  const tier = (content: string) => ({ tier: 1, content });

  it('is not written: the answer says what it is and where, neither it nor the log says it', async () => {
    const { call, groups, logged, versions } = await setUp();
    const kept = {
      failed: true,
      content: expect.stringMatching(/^Nothing was written: line 3 .* a password/),
    };
    expect(await call('write_tiered_memory', tier(`Tea.\n\n- **Wifi password:** ${secret}`))).toEqual(kept);
    expect(await call('write_memory', { scope: 'chat_daily', content: `a\n\npassword: ${secret}` })).toEqual(
      kept,
    );
    expect(await readdir(groups)).toEqual([]);
    expect(versions.kept).toEqual([]);
    expect(logged).toHaveLength(2);
    const answer = await call('write_tiered_memory', tier(`password: ${secret}`));
    expect(`${answer.content} ${logged.join(' ')}`).not.toContain('hunter2');
  });

  it('that a person put there by hand may stay, move and go; a second one is still refused', async () => {
    const { call, read } = await setUp({ [OWN]: `## Tier 1\n- password: ${secret}\n` });
    await call('read_tiered_memory', { tier: 1 });
    expect((await call('write_tiered_memory', tier(`Likes tea.\n\nPassword is \`${secret}\``))).failed).toBe(
      false,
    );
    const second = await call('write_tiered_memory', tier(`password: ${secret}\npassword: an0ther-one`));
    expect(second).toMatchObject({ failed: true, content: expect.stringContaining('line 2') });
    expect(await read(OWN)).toContain('Likes tea.');
    expect((await call('write_tiered_memory', tier('Likes tea.'))).failed).toBe(false);
    expect(await read(OWN)).not.toContain(secret);
  });

  it('that was not seen there is refused first, and taken once it was seen', async () => {
    const { call } = await setUp({ [OWN]: `## Tier 1\npassword: ${secret}\n` });
    const merged = tier(`password: ${secret}\ntea`);
    expect((await call('write_tiered_memory', merged)).content).toMatch(/^Nothing was written/);
    expect((await call('write_tiered_memory', tier('tea'))).content).toContain('Merge your change');
    expect((await call('write_tiered_memory', merged)).failed).toBe(false);
  });

  it('of another tier is none of this one', async () => {
    const { call } = await setUp({ [OWN]: `## Tier 1\npassword: ${secret}\n` });
    await call('read_tiered_memory', {});
    expect((await call('write_tiered_memory', { tier: 2, content: `password: ${secret}` })).failed).toBe(
      true,
    );
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
    expect(await read(OTHER)).toMatch(/^## Tier 1\n+new\n$/);
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

describe('how much may be written', () => {
  const large = (bytes: number) => `é${'x'.repeat(bytes - 2)}`;

  it('into a tier: as much as limits.tier_bytes, which can be read whole and written anew; not a byte more', async () => {
    const { call, read } = await setUp();
    expect(await call('write_tiered_memory', { tier: 1, content: large(64_001) })).toEqual({
      failed: true,
      content:
        'Tier 1 was not written: the content has 64,001 bytes, and a tier may hold 64,000. Shorten it and write it again.',
    });
    await expect(read(OWN)).rejects.toThrow(/ENOENT/);
    expect((await call('write_tiered_memory', { tier: 1, content: large(64_000) })).failed).toBe(false);
    expect((await call('read_tiered_memory', { tier: 1 })).failed).toBe(false);
    expect((await call('write_tiered_memory', { tier: 1, content: 'shorter' })).failed).toBe(false);
    expect(await read(OWN)).toContain('shorter');
  });

  it('beside a tier that an operator made larger, which stays as it is', async () => {
    const operators = 'y'.repeat(100_000);
    const { call, read } = await setUp({ [OWN]: `## Tier 1\n${operators}\n\n## Tier 2\nold\n` });
    await call('read_tiered_memory', { tier: 2 });
    expect((await call('write_tiered_memory', { tier: 2, content: 'new' })).failed).toBe(false);
    expect(await read(OWN)).toBe(`## Tier 1\n${operators}\n\n## Tier 2\nnew\n`);
    expect((await call('read_tiered_memory', { tier: 1 })).content).toContain('yyyy');
  });

  it('into the daily log: no line of which a prompt would not show the end', async () => {
    const { call, groups } = await setUp();
    const line = { scope: 'chat_daily', content: 'z'.repeat(4_001) };
    expect(await call('write_memory', line)).toEqual({
      failed: true,
      content:
        'Nothing was added: the line has 4,001 characters, and one of the daily log may have 4,000. Shorten it.',
    });
    expect(await readdir(groups)).toEqual([]);
    expect((await call('write_memory', { ...line, content: 'z'.repeat(4_000) })).failed).toBe(false);
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

  it('a write that failed is not said to have happened', async () => {
    const { call, tools, memory } = await setUp();
    const broken = async () => {
      throw new Fault('memory_unavailable', 'no space left');
    };
    tools.splice(
      0,
      tools.length,
      ...memoryTools({ ...memory, writeTier: broken, appendDaily: broken }, 'administrators'),
    );
    for (const [name, parameters] of [
      ['write_tiered_memory', { tier: 1, content: 'x' }],
      ['write_memory', { scope: 'chat_daily', content: 'x' }],
    ] as const) {
      const answer = await call(name, parameters);
      expect(answer).toMatchObject({ failed: true, unsaved: true });
      expect(answer.content).toContain('Nothing was changed.');
      expect(answer.content).not.toMatch(/is written|Added/);
    }
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

describe('tier 1', () => {
  const writing = { tier: 1, content: '- likes tea' };
  const by = (asker: Asker) => ({ authorisation: { ...caller, asker } });

  it.each([
    ['whoever may change things here', askerWho({ change: 'yes' }), 'administrators', true],
    ['whoever may not', askerWho({ change: 'no' }), 'administrators', false],
    ['somebody of whom the platform says nothing', askerWho({ change: 'unknown' }), 'administrators', false],
    ['anybody where anybody may', askerWho({ change: 'no' }), 'anyone', true],
    ['an administrator where owners may', askerWho({ change: 'yes' }), 'owners', false],
    ['an owner', askerWho({ own: true }), 'owners', true],
  ] as const)('on the word of %s', async (_who, asker, tier1By, isWritten) => {
    const { memory, context, read } = await setUp({ [OWN]: '## Tier 1\n' });
    const [, write] = memoryTools(memory, tier1By);
    const result = await write?.execute(writing as never, { ...context, ...by(asker) });
    expect(result).toMatchObject({ failed: !isWritten });
    expect((await read(OWN)).includes('likes tea')).toBe(isWritten);
    // A refusal is no write that failed: a flush goes on after it.
    expect(result).not.toHaveProperty('unsaved');
  });

  it("is told where else it can go, and the other tiers change on anybody's word", async () => {
    const { call } = await setUp({ [OWN]: '## Tier 1\n' });
    const anybody = by(askerWho({ change: 'no' }));
    expect((await call('write_tiered_memory', writing, anybody)).content).toMatch(
      /^Tier 1 was not changed: .*administrators and of owners.*tier 2/,
    );
    for (const tier of [2, 3]) {
      expect(await call('write_tiered_memory', { ...writing, tier }, anybody)).toMatchObject({
        failed: false,
      });
    }
  });
});

describe('from a control chat', () => {
  it('only what an owner asks for reaches others; a member is refused at every tool', async () => {
    const { call, groups } = await setUp({ [OTHER]: '## Tier 2\nsecret\n' });
    const authorisation = { ...control, asker: askerWho({ change: 'yes' }) };
    for (const [name, parameters] of [
      ['read_tiered_memory', { tier: 2 }],
      ['write_tiered_memory', { tier: 2, content: 'x' }],
      ['read_memory', { scope: 'chat' }],
      ['read_memory', { scope: 'chat_daily' }],
      ['write_memory', { scope: 'chat_daily', content: 'x' }],
    ] as const) {
      const { content, failed } = await call(name, { ...parameters, ...other }, { authorisation });
      expect(failed, name).toBe(true);
      expect(content).toContain('Permission denied');
      expect(content).not.toContain('secret');
    }
    expect(await readdir(join(groups, 'telegram_1'))).toEqual(['luna']);
  });
});

describe('the day of a line of the log', () => {
  // In Berlin it is the 11th already.
  it.each([
    ['2026-03-12', true],
    ['2026-03-13', false],
    ['9999-12-31', false],
    ['2016-04-01', true],
    ['2016-02-01', false],
    ['0001-01-01', false],
  ])('%s: %s', async (date, isWritten) => {
    const { call, groups } = await setUp();
    const result = await call('write_memory', { scope: 'chat_daily', content: 'sowed beans', date });
    expect(result.failed).toBe(!isWritten);
    if (!isWritten) expect(result.content).toMatch(/Nothing was written: .*today is 2026-03-11/);
    expect(await readdir(groups)).toHaveLength(isWritten ? 1 : 0);
  });
});
