/** The tools of a turn: chosen for each, told to the model in prompt and request, and called with what they need to know. */
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { checkArguments, toolSet } from '../../src/conversation/turn/call.js';
import type { ModelRequest } from '../../src/core/model.js';
import type { AnyTool, ToolContext, TurnKind } from '../../src/core/tool.js';
import { type Workbench, workbench } from '../harness/conversation.js';

let on: Workbench;
afterEach(() => on.close());

const GROUP = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' }, mentionsBot: true };
const ANNA = { sender: { address: 'anna', name: 'Anna', administrator: true } };

function tool(name: string, more: Partial<AnyTool> = {}): AnyTool {
  return {
    ...{ name, description: `What ${name} does`, risk: 'low', parameters: z.object({}) },
    execute: async () => ({ content: `${name} is done`, failed: false }),
    ...more,
  };
}

const offered = (request: ModelRequest | undefined) => request?.tools.map(({ name }) => name);
/** What the prompt says that it can do. */
const abilities = (request: ModelRequest | undefined) =>
  [...(request?.messages[0]?.content ?? '').matchAll(/^- (\w+: .*)$/gm)].map(([, line]) => line);

describe('the tools of a turn', () => {
  it('are chosen by chat, its kind, persona, sender, channel and kind of turn', async () => {
    const turns: TurnKind[] = [];
    const none = toolSet([]);
    on = await workbench({
      settings: { compactAfterMessages: 4, keepRecentMessages: 2 },
      toolsFor: (turn) => {
        turns.push(turn);
        return none;
      },
    });
    await on.say('/persona new Luna', { ...GROUP, ...ANNA });
    await on.settled();
    await on.say('hello', { ...GROUP, ...ANNA });
    await on.settled();
    await on.say('hello');
    await on.settled();
    const answers = turns.filter(({ kind }) => kind === 'answer');
    expect(answers).toEqual([
      {
        ...{ kind: 'answer', chatId: 'test_-5', personaId: 'luna', senderId: 'test_anna', channel: 'test' },
        ...{ chatKind: 'group', allowed: null },
      },
      {
        ...{ kind: 'answer', chatId: 'test_1', personaId: 'default', senderId: 'test_1', channel: 'test' },
        ...{ chatKind: 'direct', allowed: null },
      },
    ]);
    for (const text of ['two', 'three', 'four']) {
      await on.say(text);
      await on.settled();
    }
    await on.conversation.resting();
    expect(turns.filter(({ kind }) => kind === 'flush')[0]).toEqual({
      ...{
        kind: 'flush',
        chatId: 'test_1',
        personaId: 'default',
        senderId: '',
        channel: 'test',
        allowed: null,
      },
      chatKind: 'direct',
    });
  });

  it('are those that the request offers, that the prompt tells of, and that can be called', async () => {
    const [search, paint] = [tool('search', { hint: 'looks things up' }), tool('paint')];
    const everybody = toolSet([search]);
    const forAnna = toolSet([search, paint]);
    on = await workbench({ toolsFor: ({ senderId }) => (senderId === 'test_anna' ? forAnna : everybody) });
    await on.say('hello', ANNA);
    await on.settled();
    expect(offered(on.asked.at(-1))).toEqual(['search', 'paint']);
    expect(abilities(on.asked.at(-1))).toEqual(['search: looks things up', 'paint: What paint does']);

    on.answer((request) =>
      request.messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name: 'paint', arguments: {} }] },
    );
    await on.say('paint a rose');
    await on.settled();
    expect(offered(on.asked.at(-1))).toEqual(['search']);
    expect(abilities(on.asked.at(-1))).toEqual(['search: looks things up']);
    expect(on.asked.at(-1)?.messages.at(-1)?.content).toMatch(/no tool named paint.*search\./);
    await on.say('paint a rose', ANNA);
    await on.settled();
    expect(on.asked.at(-1)?.messages.at(-1)?.content).toBe('paint is done');
  });

  it('that do not fit into a request are told to owners, once, with the first forty by name', async () => {
    const leftOut = Array.from({ length: 42 }, (_, n) => `mcp_shop_${n}`);
    const set = { ...toolSet([tool('search'), tool('paint')]), leftOut };
    on = await workbench({ rules: { owners: ['test_7'] }, toolsFor: () => set });
    const olga = { address: '7', name: 'Olga', administrator: false };
    for (const text of ['one', 'two']) {
      await on.say(text, { chat: { address: '7', kind: 'direct', title: 'Olga' }, sender: olga });
      await on.settled();
      await on.deliver.idle('test');
    }
    const told = on.texts().filter((text) => text.includes('tools.max_offered'));
    expect(told).toHaveLength(1);
    expect(told[0]).toMatch(/^There are more tools than the 2 that one .*`mcp_shop_39` and 2 more\. List/);
  });

  it('may be none: then the prompt says of none', async () => {
    on = await workbench({ toolsFor: () => toolSet([]) });
    await on.say('hello');
    await on.settled();
    expect(offered(on.asked[0])).toEqual([]);
    expect(on.asked[0]?.messages[0]?.content).not.toMatch(/Beside talking, you can|memory: your tiered/);
  });

  it('may bring a JSON schema instead of zod', async () => {
    const given: unknown[] = [];
    const parameters = { type: 'object' as const, properties: { city: { type: 'string' } } };
    const weather = tool('weather', {
      parameters,
      execute: async (arguments_: never) => {
        given.push(arguments_);
        return { content: 'rain', failed: false };
      },
    });
    on = await workbench({ tools: [weather] });
    on.answer((request) =>
      request.messages.at(-1)?.role === 'tool'
        ? 'it rains'
        : { calls: [{ name: 'weather', arguments: { city: 'Graz' } }] },
    );
    await on.say('how is the weather?');
    await on.settled();
    expect(on.asked[0]?.tools).toEqual([{ name: 'weather', description: 'What weather does', parameters }]);
    expect(given).toEqual([{ city: 'Graz' }]);
    expect(on.texts()).toEqual(['it rains']);
  });

  it('know room, turn and call, and do not run again after an end of the process', async () => {
    const calls: Pick<ToolContext, 'room' | 'turnId' | 'callId' | 'cause'>[] = [];
    const curious = tool('curious', {
      execute: async (_given: never, { room, turnId, callId, cause }) => {
        calls.push({ room, turnId, callId, cause });
        return new Promise<never>(() => {});
      },
    });
    const script = (request: ModelRequest) =>
      request.messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name: 'curious', arguments: {} }] };
    on = await workbench({ tools: [curious] });
    on.answer(script);
    await on.say('look', { ...GROUP, threadId: '45' });
    await expect.poll(() => calls.length).toBe(1);
    on = await on.die();
    on.answer(script);
    await on.settled();
    expect(on.texts()).toEqual([
      'I was cut off while `curious` ran: I cannot tell whether it was done, and do not run it again by myself.',
      'done',
    ]);
    const [first] = calls;
    expect(calls).toHaveLength(1);
    expect(first).toMatchObject({ room: 'test_-5/45', cause: { kind: 'turn', turnId: first?.turnId } });
    expect(on.asked.at(-1)?.messages.at(-1)).toMatchObject({ role: 'tool', callId: first?.callId });
  });
});

describe('arguments', () => {
  const parameters = z.object({
    name: z.string().min(2),
    count: z.int().min(1).optional(),
    seconds: z.number().optional(),
    loud: z.boolean().optional(),
  });
  const check = (given: Record<string, unknown>) => checkArguments(tool('paint', { parameters }), given);

  it('may be numbers and truths in quotes, as some models write them; texts stay texts', () => {
    const quoted = { name: '12', count: '3', seconds: '-1.5', loud: 'True' };
    expect(check(quoted)).toEqual({ ok: true, value: { name: '12', count: 3, seconds: -1.5, loud: true } });
  });

  it.each([
    { name: 'ink', count: '0' },
    { name: 'ink', count: '1.5' },
    { name: 'ink', count: 'three' },
    { name: 'ink', count: '' },
    { name: 'ink', count: ' 3' },
    { name: 'ink', count: '1e3' },
    { name: 'ink', count: '9'.repeat(400) },
    { name: 'ink', loud: 'yes' },
    { name: 'ink', loud: 1 },
    { name: 5 },
  ])('are refused where they are something else: %j', (given) => {
    expect(check(given)).toEqual({ ok: false, faults: expect.stringContaining('do not fit paint') });
  });
});
