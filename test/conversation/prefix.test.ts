/**
 * A prefix that stays: a model server keeps what it has read of a prompt only as far as the next one begins in the same
 * way, so memory that changes is told at the end, and the tools are the same in every request.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { toolSet } from '../../src/conversation/turn/call.js';
import type { ModelRequest } from '../../src/core/model.js';
import type { AnyTool } from '../../src/core/tool.js';
import { memoryTools } from '../../src/tools/memory.js';
import { manualClock } from '../fakes/clock.js';
import { sharedPrefix } from '../fakes/shared-prefix.js';
import { type Answer, type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

const MINUTE = 60_000;
const HERE = 'groups/test_1/default';

let on: Workbench;
const clock = manualClock();
afterEach(() => on.close());

/** What the model calls instead of answering, when a message says so. */
const CALLS: Record<string, { name: string; arguments: object }> = {
  'tier 2': { name: 'write_tiered_memory', arguments: { tier: 2, content: '- builds a shed' } },
  'tier 2 again': { name: 'write_tiered_memory', arguments: { tier: 2, content: '- the shed stands' } },
  line: { name: 'write_memory', arguments: { scope: 'chat_daily', content: 'bought nails' } },
};

async function open(options: WorkbenchOptions = {}): Promise<void> {
  on = await workbench({ memoryTools: true, clock, ...options });
  on.answer((request): Answer => {
    const last = request.messages.at(-1);
    if (last?.role !== 'user') return 'done';
    const said = />([^<]*)<\/user_message>$/.exec(last.content)?.[1] ?? '';
    const call = CALLS[said];
    return call ? { calls: [call] } : `answer to ${said}`;
  });
}

/** The request with which the turn began. */
async function say(text: string): Promise<ModelRequest> {
  const from = on.asked.length;
  await on.say(text);
  await on.settled();
  const request = on.asked[from];
  if (request === undefined) throw new Error('nobody was asked');
  return request;
}

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(on.folder, path)), { recursive: true });
  await writeFile(join(on.folder, path), text);
}

const memory = (tier1: string, tier2 = '', more = '') =>
  `# Memory\n\n## Tier 1 — Long term\n\n${tier1}\n\n## Tier 2 — Mid term\n\n${tier2}\n\n## Tier 3 — Short term\n${more}`;
const system = (request: ModelRequest) => request.messages[0]?.content ?? '';
const last = (request: ModelRequest) => request.messages.at(-1)?.content ?? '';

describe('successive requests', () => {
  it('begin with all that the last one says stays, over ten turns with writes between', async () => {
    await open();
    await put(`${HERE}/MEMORY.md`, memory('- likes tea'));
    let before = await say('hello');
    const shares: number[] = [];
    for (const text of ['and', 'tier 2', 'so', 'on', 'line', 'we', 'tier 2 again', 'go', 'line', 'further']) {
      const now = await say(`${text}`);
      const kept = (before.stableThrough ?? 0) + 1;
      expect(now.messages.slice(0, kept)).toEqual(before.messages.slice(0, kept));
      expect(now.tools).toEqual(before.tools);
      const { shared, total } = sharedPrefix(before, now);
      shares.push(shared / total);
      before = now;
    }
    expect(Math.min(...shares)).toBeGreaterThan(0.8);
    expect(before.stableThrough).toBe(before.messages.length - 2);
    // Nothing of the calls is left in the history but a line.
    expect(before.messages.filter(({ role }) => role === 'tool')).toEqual([]);
    expect(before.messages.map(({ content }) => content).join('\n')).toContain(
      '<event about="your memory">you wrote tier 2</event>',
    );
    expect(JSON.stringify(before.messages.slice(1, -1))).not.toContain('builds a shed');
  });

  it('tell at the end what changed, each tier whole, with the new lines of the day', async () => {
    await open();
    await put(`${HERE}/MEMORY.md`, memory('- likes tea', '- digs a pond'));
    await say('hello');
    await say('tier 2');
    await say('line');
    const now = await say('what now?');
    expect(system(now)).toContain('- digs a pond');
    const [, told = ''] = /<memory_now>\n([\s\S]*)\n<\/memory_now>/.exec(last(now)) ?? [];
    expect(told).toContain('Tier 2, whole:\n\n```text\n- builds a shed\n```');
    expect(told).toMatch(/The daily log of \d{4}-\d\d-\d\d, whole:\n\n```text\nbought nails\n```/);
    expect(told).not.toContain('tea');
    expect(last(now)).toMatch(/<\/memory_now>\n<user_message [^>]*>what now\?<\/user_message>$/);
    await on.memory.appendDaily('test_1', new Date(clock.now()).toISOString().slice(0, 10), 'more nails', {
      cause: { kind: 'turn', personaId: 'default', turnId: null },
    });
    expect(last(await say('and?'))).toContain('bought nails\nmore nails');
  });

  it('have an operator’s edit in the very next one, and say that what it took away is gone', async () => {
    await open();
    await put(`${HERE}/MEMORY.md`, memory('- likes tea\n- is afraid of bees', '- digs a pond'));
    await say('hello');
    await put(`${HERE}/MEMORY.md`, memory('- likes tea'));
    const now = await say('and?');
    expect(system(now)).toContain('afraid of bees');
    expect(last(now)).toContain('lines that it no longer has are gone');
    expect(last(now)).toContain('Tier 1, whole:\n\n```text\n- likes tea\n```');
    expect(last(now)).toContain('Tier 2 is empty now.');
    await put(`${HERE}/MEMORY.md`, memory('- likes tea\n- is afraid of bees', '- digs a pond'));
    expect(last(await say('and now?'))).not.toContain('memory_now');
  });

  it('let a tier that was told at the end be written over, and one that changed since not', async () => {
    await open();
    await put(`${HERE}/MEMORY.md`, memory('- likes tea'));
    await say('hello');
    await put(`${HERE}/MEMORY.md`, memory('- likes tea', '- by hand'));
    await say('tier 2');
    expect(await on.memory.readTier({ chatId: 'test_1', personaId: 'default' }, 2)).toBe('- builds a shed');
    const reply = on.asked.length;
    on.answer(async (request): Promise<Answer> => {
      if (request.messages.at(-1)?.role !== 'user') return 'done';
      await put(`${HERE}/MEMORY.md`, memory('- likes tea', '- while it thought'));
      return { calls: [{ name: 'write_tiered_memory', arguments: { tier: 2, content: 'too late' } }] };
    });
    await say('write');
    expect(on.asked[reply + 1]?.messages.at(-1)?.content).toContain('while it thought');
    expect(await on.memory.readTier({ chatId: 'test_1', personaId: 'default' }, 2)).toBe(
      '- while it thought',
    );
  });
});

describe('a new beginning', () => {
  const edited = memory('- likes tea', '- by hand');
  async function begun(): Promise<void> {
    await open();
    await put(`${HERE}/MEMORY.md`, memory('- likes tea'));
    await say('hello');
    await put(`${HERE}/MEMORY.md`, edited);
  }
  const isAfresh = (request: ModelRequest) =>
    system(request).includes('- by hand') && !last(request).includes('<memory_now>');

  it('is made when no cache can still hold the old one', async () => {
    await begun();
    await clock.advance(9 * MINUTE);
    expect(isAfresh(await say('still there?'))).toBe(false);
    await clock.advance(11 * MINUTE);
    expect(isAfresh(await say('good morning'))).toBe(true);
  });

  it.each([
    ['the principles', 'groups/AGENTS.md', 'Be brief.'],
    ['the persona', `${HERE}/PERSONA.md`, '---\nname: default\n---\nA gardener.'],
    ['its model', `${HERE}/PERSONA.md`, '---\nname: default\nmodel: other\n---\n'],
  ])('is made when %s changed, for all behind that is read anew anyhow', async (_, path, text) => {
    await begun();
    expect(isAfresh(await say('one'))).toBe(false);
    await put(path, text);
    expect(isAfresh(await say('two'))).toBe(true);
  });

  it.each([
    ['beside the tiers', `${edited}\n## About me\n\nBorn in Graz.\n`],
    ['in a tier that is cut', memory('- likes tea', `- by hand\n${'x'.repeat(13_000)}`)],
    ['by more than what stays', memory('- likes tea', `- by hand\n${'much text '.repeat(700)}`)],
  ])('is made when memory changed %s', async (_, text) => {
    await begun();
    await put(`${HERE}/MEMORY.md`, text);
    expect(isAfresh(await say('and?'))).toBe(true);
  });

  it('is made when a day left the log, and when the days together would exceed their budget', async () => {
    await open();
    const [today, before] = [0, 86_400_000].map((ago) =>
      new Date(clock.now() - ago).toISOString().slice(0, 10),
    );
    await put(`groups/test_1/memory/${before}.md`, 'dug\n');
    await put(`groups/test_1/memory/${today}.md`, 'sowed\n');
    await say('hello');
    await put(`groups/test_1/memory/${before}.md`, '');
    const gone = await say('and?');
    expect(system(gone)).not.toContain('dug');
    expect(last(gone)).not.toContain('<memory_now>');
    await put(`groups/test_1/memory/${before}.md`, 'y'.repeat(3_900));
    await put(`groups/test_1/memory/${today}.md`, `sowed\n${'z'.repeat(3_900)}\n`);
    await say('full');
    await put(`groups/test_1/memory/${today}.md`, `sowed\n${'z'.repeat(3_900)}\n${'w'.repeat(80)}\n`);
    const full = await say('fuller');
    expect(last(full) + system(full)).toContain('w'.repeat(80));
    const daily = `${last(full)}\n${system(full)}`.match(/[yzw]{40,}/g)?.join('') ?? '';
    expect(daily.length).toBeLessThanOrEqual(8_000);
  });

  it('is made after a restart', async () => {
    await begun();
    on = await on.die();
    on.answer(() => 'fine');
    expect(isAfresh(await say('back?'))).toBe(true);
  });
});

describe('a flush', () => {
  it('begins as the last answer did, with the same tools; only those of memory can be used', async () => {
    let dug = 0;
    const dig: AnyTool = {
      ...{
        name: 'dig',
        description: 'Digs.',
        parameters: { type: 'object' as const },
        risk: 'medium' as const,
      },
      execute: async () => ({ content: `dug ${++dug}`, failed: false }),
    };
    await open({
      settings: { compactAfterMessages: 8, keepRecentMessages: 4 },
      toolsFor: ({ kind }) =>
        toolSet([...memoryTools(on.memory, 'administrators'), ...(kind === 'flush' ? [] : [dig])]),
    });
    await put(`${HERE}/MEMORY.md`, memory('- likes tea'));
    on.answer((request): Answer => {
      const said = last(request);
      if (said.startsWith('Memory flush.')) return { calls: [{ name: 'dig', arguments: {} }] };
      if (said.endsWith('Conversation summary: write the new one.')) return 'summed up';
      return 'fine';
    });
    await say('a');
    await put(`${HERE}/MEMORY.md`, memory('- likes tea', '- by hand'));
    for (const text of ['b', 'c', 'd', 'e']) await say(text);
    await on.conversation.resting();
    const at = on.asked.findIndex((request) => last(request).startsWith('Memory flush.'));
    const [answer, flush] = [on.asked[at - 1], on.asked[at]];
    if (answer === undefined || flush === undefined) throw new Error('there was no flush');
    expect(flush.tools).toEqual(answer.tools);
    const kept = (answer.stableThrough ?? 0) + 1;
    expect(flush.messages.slice(0, kept)).toEqual(answer.messages.slice(0, kept));
    expect(last(flush)).toContain('- by hand');
    expect(on.asked[at + 1]?.messages.at(-1)?.content).toMatch(
      /^dig cannot be used here, so nothing was done\. There are: read_tiered_memory, /,
    );
    expect(dug).toBe(0);
  });

  it('that is made up for after /memory forget holds nothing of what was forgotten', async () => {
    await open({ settings: { compactAfterMessages: 8, keepRecentMessages: 4 } });
    await put(`${HERE}/MEMORY.md`, memory('- likes tea\n- the word is swordfish'));
    const isFlush = (request: ModelRequest) => last(request).startsWith('Memory flush.');
    let fault: { fault: 'model_unreachable' } | null = { fault: 'model_unreachable' };
    on.answer((request): Answer => {
      if (isFlush(request)) return fault ?? 'done';
      return last(request).endsWith('write the new one.') ? 'summed up' : 'fine';
    });
    for (const text of ['a', 'b', 'c', 'd', 'e', 'f']) await say(text);
    await on.conversation.resting();
    // In the requests over the copy that the turns before the forgetting have left.
    await say('g');
    await on.conversation.resting();
    const before = on.asked.length;
    await on.say('/memory forget swordfish');
    await on.settled();
    await on.say('yes');
    await on.settled();
    expect(await on.memory.readTier({ chatId: 'test_1', personaId: 'default' }, 1)).toBe('- likes tea');
    fault = null;
    await clock.advance(20 * MINUTE);
    await on.conversation.resting();
    const after = on.asked.slice(before);
    expect(after.some(isFlush)).toBe(true);
    expect(JSON.stringify(after)).not.toContain('swordfish');
  });
});
